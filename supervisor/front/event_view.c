#include "supervisor/front/event_view.h"

#include <inttypes.h>
#include <stdio.h>

#include <event2/buffer.h>

#include "common/clock.h"
#include "supervisor/front/sse.h"

#define DIGITS_MAX 18

/* ---- ids */

void
event_id_format(const struct event_place *at, char out[EVENT_ID_TEXT_MAX])
{
	if (at->at_ms > 0)
		(void)snprintf(out, EVENT_ID_TEXT_MAX, "%" PRIu64 ".%" PRId64,
		    at->seq, at->at_ms);
	else
		(void)snprintf(out, EVENT_ID_TEXT_MAX, "%" PRIu64, at->seq);
}

static bool
parse_digits(const char *text, size_t n, uint64_t *out)
{
	if (n == 0 || n > DIGITS_MAX || strspn(text, "0123456789") < n)
		return false;
	*out = strtoull(text, NULL, 10);
	return true;
}

int
event_id_parse(const char *text, struct event_place *at)
{
	size_t n = strspn(text, "0123456789");
	uint64_t seq, at_ms = 0;

	if (!parse_digits(text, n, &seq))
		return ERR_INVAL;
	if (text[n] != '\0' &&
	    (text[n] != '.' ||
		!parse_digits(text + n + 1, strlen(text + n + 1), &at_ms)))
		return ERR_INVAL;
	*at = (struct event_place){seq, (int64_t)at_ms};
	return 0;
}

/* ---- events */

void
event_view_json(struct evbuffer *out, const struct store_event *row)
{
	const struct event_place at = {row->seq, row->at_ms};
	char id[EVENT_ID_TEXT_MAX], time[CLOCK_TEXT_MAX];
	char run[UUID_TEXT_LEN + 1];

	event_id_format(&at, id);
	clock_format(row->at_ms, time);
	(void)evbuffer_add_printf(out,
	    "{\"id\":\"%s\",\"seq\":%" PRIu64 ",\"at\":\"%s\",\"kind\":\"%s\"",
	    id, row->seq, time, event_kind_word(row->kind));
	/* Letters, digits, "_" and "-". */
	if (row->identifier[0] != '\0')
		(void)evbuffer_add_printf(
		    out, ",\"identifier\":\"%s\"", row->identifier);
	if (!uuid_is_zero(&row->run)) {
		uuid_format(&row->run, run);
		(void)evbuffer_add_printf(out, ",\"run_id\":\"%s\"", run);
	}
	(void)evbuffer_add_printf(
	    out, ",\"data\":%s}", row->data[0] == '\0' ? "{}" : row->data);
}

void
event_view_sse(struct evbuffer *out, const struct store_event *row)
{
	const struct event_place at = {row->seq, row->at_ms};
	char id[EVENT_ID_TEXT_MAX];

	event_id_format(&at, id);
	sse_add(out, id, event_kind_word(row->kind));
	event_view_json(out, row);
	(void)evbuffer_add_printf(out, SSE_END);
}

/* With the id of the place behind it: who goes on there is not told again. */
void
event_view_sse_gap(struct evbuffer *out, const struct event_gap *gap)
{
	uint64_t id = gap->is_restored ? gap->from - 1 : gap->to;

	(void)evbuffer_add_printf(out,
	    "id: %" PRIu64 "\nevent: gap\ndata: {\"from\":%" PRIu64
	    ",\"to\":%" PRIu64 ",\"reason\":\"%s\"}\n\n",
	    id, gap->from, gap->to, gap->is_restored ? "restored" : "trimmed");
}

void
event_view_sse_place(struct evbuffer *out, const struct event_place *at)
{
	char id[EVENT_ID_TEXT_MAX];

	event_id_format(at, id);
	(void)evbuffer_add_printf(out, "id: %s\n\n", id);
}
