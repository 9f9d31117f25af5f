/*
 * event_id.h - ids of events, by which an answer is taken up again
 *
 * An id says all that is needed for it, in any process that has the server's
 * key: whose request it was (session, id), which tool answers it, and the
 * token by which that tool can say the answer again (offer.h).  It is signed
 * for its principal (signed_text.h), so nothing is kept for streams that nobody
 * comes back to, and an answer survives the server (MCP 2025-11-25, transports,
 * resumability; docs/decisions/0108).
 */
#ifndef MCP_EVENT_ID_H
#define MCP_EVENT_ID_H

#include "common/base.h"
#include "supervisor/mcp/exchange.h"
#include "supervisor/mcp/offer.h"
#include "supervisor/mcp/registry.h"
#include "supervisor/mcp/signed_text.h"
#include "supervisor/mcp/session.h"

#define EVENT_ID_TEXT_MAX EXCHANGE_EVENT_ID_MAX
#define EVENT_ID_STREAM_LEN 8
#define EVENT_ID_AGE_MAX_S 86400
#define EVENT_ID_PART_MAX 255 /* bytes of each text in it */

enum event_id_place {
	EVENT_GOES_ON,
	EVENT_IS_LAST /* whoever has it has the answer */
};

struct event_id {
	uint8_t session[SESSION_ID_LEN];
	uint8_t stream[EVENT_ID_STREAM_LEN]; /* random: of the request */
	uint32_t connection;                 /* random: of who carries it now */
	uint32_t number;                     /* of the event on it */
	enum event_id_place place;
	int64_t sent_s;
	bool progressed; /* the client was told this much: */
	uint64_t progress;
	char tool[REGISTRY_NAME_MAX + 1];
	uint8_t token[MCP_TOKEN_MAX];
	size_t ntoken;
	char request[EVENT_ID_PART_MAX + 1];        /* its id, JSON text */
	char progress_token[EVENT_ID_PART_MAX + 1]; /* likewise; "": none */
};

/* event_id_begin - a new stream: random numbers, no progress; false when the
 * rest, which is set, is too long for an id */
bool event_id_begin(struct event_id *id);
/* event_id_format - its text, and the next one has the next number */
void event_id_format(const struct text_signer *s, struct event_id *id,
    const struct principal *who, int64_t now_s,
    char out[EVENT_ID_TEXT_MAX + 1]);
/* event_id_parse - ERR_NOTFOUND for whatever is no id of this session and
 * principal, or too old */
int event_id_parse(const struct text_signer *s, const char *text,
    const struct session *session, const struct principal *who, int64_t now_s,
    struct event_id *out) MUSTCHECK;

/* event_ids_new - for exchange_set_ids: ids of the stream of *id, which is
 * copied, on a connection of their own */
struct exchange_ids *event_ids_new(const struct text_signer *s,
    const struct event_id *id, struct principal *who);
/* event_ids_progress - what the client is about to be told */
void event_ids_progress(struct exchange_ids *base, uint64_t progress);

#endif
