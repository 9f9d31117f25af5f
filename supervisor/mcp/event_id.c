/*
 * event_id.c
 *
 *	form 1 | flags 1 | session 18 | stream 8 | connection 4 | number 4 |
 *	time 5 | progress 8 | tool | token | request id | progress token
 *
 * bytes, the last four with a byte of length before each, then zeros to a
 * multiple of three, under a MAC, as base64url.
 */
#include "supervisor/mcp/event_id.h"

#include <stdio.h>

#include <openssl/rand.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define FORM 1
#define FLAG_LAST 1
#define FLAG_PROGRESSED 2
#define AT_FLAGS 1
#define AT_SESSION 2
#define AT_STREAM (AT_SESSION + SESSION_ID_LEN)
#define AT_CONNECTION (AT_STREAM + EVENT_ID_STREAM_LEN)
#define AT_NUMBER (AT_CONNECTION + 4)
#define AT_TIME (AT_NUMBER + 4)
#define AT_PROGRESS (AT_TIME + 5)
#define AT_PARTS (AT_PROGRESS + 8)
#define ALL_MAX (EVENT_ID_TEXT_MAX / 4 * 3) /* with the MAC */
#define PAYLOAD_MAX (ALL_MAX - SIGNED_MAC_LEN)

static const char domain[] = "mcp event 1";

static void
random_bytes(void *p, size_t n)
{
	if (RAND_bytes(p, (int)n) != 1)
		fatal(EXIT_BUG, "no random bytes for an event id");
}

bool
event_id_begin(struct event_id *id)
{
	random_bytes(id->stream, sizeof(id->stream));
	id->progressed = false;
	id->progress = 0;
	return AT_PARTS + 4 + strlen(id->tool) + id->ntoken +
	    strlen(id->request) + strlen(id->progress_token) <=
	    PAYLOAD_MAX;
}

static size_t
put_part(uint8_t *p, size_t at, const void *part, size_t n)
{
	p[at] = (uint8_t)n;
	memcpy(p + at + 1, part, n);
	return at + 1 + n;
}

/* With the zeros behind n bytes. */
static size_t
padded(size_t n)
{
	return (n + SIGNED_MAC_LEN + 2) / 3 * 3 - SIGNED_MAC_LEN;
}

void
event_id_format(const struct text_signer *s, struct event_id *id,
    const struct principal *who, int64_t now_s, char out[EVENT_ID_TEXT_MAX + 1])
{
	uint8_t p[PAYLOAD_MAX + 3] = {FORM};
	size_t n = AT_PARTS;

	p[AT_FLAGS] = (uint8_t)((id->place == EVENT_IS_LAST ? FLAG_LAST : 0) |
	    (id->progressed ? FLAG_PROGRESSED : 0));
	memcpy(p + AT_SESSION, id->session, SESSION_ID_LEN);
	memcpy(p + AT_STREAM, id->stream, EVENT_ID_STREAM_LEN);
	signed_put(p + AT_CONNECTION, 4, id->connection);
	signed_put(p + AT_NUMBER, 4, id->number++);
	signed_put(p + AT_TIME, 5, (uint64_t)now_s);
	signed_put(p + AT_PROGRESS, 8, id->progress);
	n = put_part(p, n, id->tool, strlen(id->tool));
	n = put_part(p, n, id->token, id->ntoken);
	n = put_part(p, n, id->request, strlen(id->request));
	n = put_part(p, n, id->progress_token, strlen(id->progress_token));
	signed_text_make(s, domain, p, padded(n), who, out);
}

/* What we wrote once is read without a doubt, but never beyond n. */
static bool
get_part(
    const uint8_t *p, size_t n, size_t *at, void *out, size_t max, size_t *len)
{
	if (*at >= n || p[*at] > max || p[*at] > n - *at - 1)
		return false;
	*len = p[*at];
	memcpy(out, p + *at + 1, *len);
	*at += 1 + *len;
	return true;
}

static bool
get_text(const uint8_t *p, size_t n, size_t *at, char *out, size_t max)
{
	size_t len;

	if (!get_part(p, n, at, out, max, &len))
		return false;
	out[len] = '\0';
	return true;
}

/* And nothing behind them but the zeros. */
static bool
get_parts(const uint8_t *p, size_t n, struct event_id *id)
{
	size_t at = AT_PARTS;

	return get_text(p, n, &at, id->tool, REGISTRY_NAME_MAX) &&
	    get_part(p, n, &at, id->token, MCP_TOKEN_MAX, &id->ntoken) &&
	    get_text(p, n, &at, id->request, EVENT_ID_PART_MAX) &&
	    get_text(p, n, &at, id->progress_token, EVENT_ID_PART_MAX) &&
	    padded(at) == n;
}

int
event_id_parse(const struct text_signer *s, const char *text,
    const struct session *session, const struct principal *who, int64_t now_s,
    struct event_id *out)
{
	uint8_t p[ALL_MAX];
	size_t n = signed_text_read(s, domain, text, who, p, sizeof(p));
	struct event_id id = {0};

	if (n < AT_PARTS || p[0] != FORM ||
	    memcmp(p + AT_SESSION, session->id, SESSION_ID_LEN) != 0 ||
	    !get_parts(p, n, &id))
		return ERR_NOTFOUND;
	id.sent_s = (int64_t)signed_get(p + AT_TIME, 5);
	if (now_s - id.sent_s > EVENT_ID_AGE_MAX_S)
		return ERR_NOTFOUND;
	memcpy(id.session, p + AT_SESSION, SESSION_ID_LEN);
	memcpy(id.stream, p + AT_STREAM, EVENT_ID_STREAM_LEN);
	id.connection = (uint32_t)signed_get(p + AT_CONNECTION, 4);
	id.number = (uint32_t)signed_get(p + AT_NUMBER, 4);
	id.place =
	    (p[AT_FLAGS] & FLAG_LAST) != 0 ? EVENT_IS_LAST : EVENT_GOES_ON;
	id.progressed = (p[AT_FLAGS] & FLAG_PROGRESSED) != 0;
	id.progress = signed_get(p + AT_PROGRESS, 8);
	*out = id;
	return 0;
}

/* ---- of a connection */

struct event_ids {
	struct exchange_ids base; /* first */
	const struct text_signer *signer;
	struct principal *who;
	struct event_id id;
};

static void
ids_next(struct exchange_ids *base, enum exchange_event what,
    char out[EXCHANGE_EVENT_ID_MAX + 1])
{
	struct event_ids *ids = (struct event_ids *)base;

	ids->id.place =
	    what == EXCHANGE_LAST_EVENT ? EVENT_IS_LAST : EVENT_GOES_ON;
	event_id_format(
	    ids->signer, &ids->id, ids->who, clock_wall_ms() / 1000, out);
}

static void
ids_free(struct exchange_ids *base)
{
	struct event_ids *ids = (struct event_ids *)base;

	principal_unref(ids->who);
	free(ids);
}

struct exchange_ids *
event_ids_new(const struct text_signer *s, const struct event_id *id,
    struct principal *who)
{
	struct event_ids *ids = xcalloc(1, sizeof(*ids));

	ids->base.next = ids_next;
	ids->base.free = ids_free;
	ids->signer = s;
	ids->who = principal_ref(who);
	ids->id = *id;
	ids->id.number = 0;
	random_bytes(&ids->id.connection, sizeof(ids->id.connection));
	return &ids->base;
}

void
event_ids_progress(struct exchange_ids *base, uint64_t progress)
{
	struct event_ids *ids = (struct event_ids *)base;

	ids->id.progressed = true;
	ids->id.progress = progress;
}
