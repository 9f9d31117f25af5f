/*
 *	RELAY_POSTS	the message is under way, or its answer is
 *	RELAY_PAUSES	until it is sent or taken up again
 *	RELAY_GETS	a stream that broke is asked for again; or the
 *			session's
 *
 * A relay has been sent when a POST of it ended neither with WEB_NOBODY nor
 * with 503: from then on it is only asked for.
 */
#include "supervisor/stdio/relay.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/stdio/header.h"
#include "supervisor/stdio/sse_reader.h"
#include "supervisor/stdio/web.h"

#define TEXT_MAX 600

enum relay_stage {
	RELAY_POSTS,
	RELAY_PAUSES,
	RELAY_GETS
};

struct relay {
	struct web *web;
	struct relay_ask ask;
	char *session, *revision; /* NULL: none */
	enum relay_stage stage;
	struct web_call *call; /* NULL: RELAY_PAUSES */
	struct timer *again;
	struct sse_reader events;
	struct buf body;     /* of an answer that is no stream */
	uint64_t down_at_ms; /* since when nothing comes; 0: all is well */
	uint32_t pause_ms;   /* the last one */
	bool is_large;       /* the answer was */
	bool is_unwanted;    /* cancelled */
};

static const struct web_ops web_ops;

/* ---- headers */

struct lines_of_headers {
	char *lines[8];
	size_t n;
};

static void
add_header(struct lines_of_headers *h, const char *name, const char *value)
{
	h->lines[h->n++] = xasprintf("%s: %s", name, value);
}

static void
add_encoded(struct lines_of_headers *h, const char *name, const char *text)
{
	AUTO(auto_free) char *value = header_encode(text);

	add_header(h, name, value);
}

/* MCP 2026-07-28, transports.  A claim that cannot be a header is left out,
 * and the server says what it thinks of it. */
static void
add_claims(struct lines_of_headers *h, const struct message *m)
{
	if (header_is_plain(m->claim))
		add_header(h, "MCP-Protocol-Version", m->claim);
	add_encoded(h, "Mcp-Method", m->method);
	if (m->name != NULL)
		add_encoded(h, "Mcp-Name", m->name);
}

static void
add_session(struct lines_of_headers *h, const struct relay *r)
{
	if (r->session != NULL)
		add_header(h, "Mcp-Session-Id", r->session);
	if (r->revision != NULL)
		add_header(h, "MCP-Protocol-Version", r->revision);
}

static void
request(struct relay *r, enum web_method method, struct lines_of_headers *h)
{
	buf_clear(&r->body);
	r->call = web_start(r->web,
	    &(struct web_ask){.method = method,
		.headers = (const char *const *)h->lines,
		.body = method == WEB_POST ? r->ask.line : NULL,
		.len = method == WEB_POST ? r->ask.len : 0,
		.ops = &web_ops,
		.arg = r});
	for (size_t i = 0; i < h->n; i++)
		free(h->lines[i]);
}

static void
post(struct relay *r)
{
	struct lines_of_headers h = {.n = 0};

	add_header(&h, "Content-Type", "application/json");
	add_header(&h, "Accept", "application/json, text/event-stream");
	if (r->ask.message->claim != NULL)
		add_claims(&h, r->ask.message);
	else
		add_session(&h, r);
	r->stage = RELAY_POSTS;
	request(r, WEB_POST, &h);
}

static void
get(struct relay *r)
{
	struct lines_of_headers h = {.n = 0};

	add_header(&h, "Accept", "text/event-stream");
	add_session(&h, r);
	if (r->events.last_id[0] != '\0')
		add_header(&h, "Last-Event-ID", r->events.last_id);
	sse_begin(&r->events);
	r->stage = RELAY_GETS;
	request(r, WEB_GET, &h);
}

/* ---- ends and pauses */

static bool
is_listener(const struct relay *r)
{
	return r->ask.line == NULL;
}

static bool
is_tool_call(const struct relay *r)
{
	return r->ask.message->method == NULL ||
	    strcmp(r->ask.message->method, "tools/call") == 0;
}

void
relay_drop(struct relay *r)
{
	if (r->call != NULL)
		web_cancel(r->call);
	timer_free(r->again);
	sse_clear(&r->events);
	buf_clear(&r->body);
	free(r->session);
	free(r->revision);
	free(r);
}

static void
over(struct relay *r, enum relay_over how, enum message_code code,
    const char *text)
{
	r->ask.ops->on_over(how, code, text, r->ask.arg);
	relay_drop(r);
}

static void
done(struct relay *r)
{
	over(r, RELAY_DONE, MESSAGE_REFUSED, "");
}

/* It may have been received. */
static void
fail_broken(struct relay *r, const char *why)
{
	char text[TEXT_MAX];

	if (r->is_unwanted) {
		done(r);
		return;
	}
	(void)snprintf(text, sizeof(text),
	    "the connection to the server broke before the answer came (%s): "
	    "%s",
	    why,
	    is_tool_call(r) ? "the call may have been done, and what it runs "
			      "may go on; list_runs says which runs there "
			      "are, and get_run has their output" :
			      "ask again");
	over(r, RELAY_FAILED, MESSAGE_BROKEN, text);
}

static void
pause_for(struct relay *r, uint32_t least_ms)
{
	uint32_t ms = r->pause_ms * 2;

	if (ms < RELAY_PAUSE_MIN_MS)
		ms = RELAY_PAUSE_MIN_MS;
	if (ms > RELAY_PAUSE_MAX_MS)
		ms = RELAY_PAUSE_MAX_MS;
	r->pause_ms = ms;
	r->stage = RELAY_PAUSES;
	r->call = NULL; /* it has ended */
	timer_set_ms(r->again, ms < least_ms ? least_ms : ms);
}

/* Who tests it has no minute. */
static uint32_t
patience_ms(void)
{
	const char *text = getenv(RELAY_PATIENCE_VARIABLE);
	long ms = text != NULL ? strtol(text, NULL, 10) : 0;

	return ms > 0 && ms < RELAY_PATIENCE_MS ? (uint32_t)ms :
						  RELAY_PATIENCE_MS;
}

/* false: for too long. */
static bool
has_patience(struct relay *r)
{
	uint64_t now = clock_mono_ms();

	if (r->down_at_ms == 0)
		r->down_at_ms = now;
	return is_listener(r) || now - r->down_at_ms < patience_ms();
}

/* A stream that can be taken up again. */
static void
resume(struct relay *r, const char *why)
{
	int64_t least_ms = r->events.retry_ms;

	if (!has_patience(r)) {
		fail_broken(r, why);
		return;
	}
	log_debug("a stream ended early (%s), and is taken up again", why);
	pause_for(r, least_ms < 0 ? 0 : (uint32_t)least_ms);
}

static bool
has_id(const struct relay *r)
{
	return r->events.last_id[0] != '\0';
}

static bool
is_initialize(const struct relay *r)
{
	return r->ask.message->method != NULL &&
	    strcmp(r->ask.message->method, "initialize") == 0;
}

static void
send_again(struct relay *r, const char *why)
{
	char text[TEXT_MAX];

	if (r->is_unwanted) {
		done(r);
		return;
	}
	if (has_patience(r)) {
		pause_for(r, 0);
		return;
	}
	(void)snprintf(text, sizeof(text),
	    "the server was not reached for %u s (%s); nothing was sent: start "
	    "it, or see to MCP_SANDBOXD_URL, and ask again",
	    patience_ms() / 1000, why);
	over(r, RELAY_FAILED, MESSAGE_UNREACHABLE, text);
}

/* Nothing of this request was sent. */
static void
take_nobody(struct relay *r, const char *why)
{
	r->ask.ops->on_nobody(r->ask.arg);
	if (is_listener(r) || has_id(r))
		resume(r, why);
	else
		send_again(r, why);
}

static void
take_break(struct relay *r, const char *why)
{
	if (!is_listener(r) && r->ask.message->nids == 0 &&
	    web_status(r->call) / 100 == 2)
		done(r); /* answered: how it ends is no matter */
	else if (is_listener(r) || has_id(r))
		resume(r, why);
	else if (is_initialize(r))
		send_again(r, why);
	else
		fail_broken(r, why);
}

/* ---- answers */

static void
pass_on(struct relay *r, const char *text, size_t n)
{
	if (message_take_answer(r->ask.message, text, n) != 0)
		log_warn("the server sent what is no JSON; left out");
	else
		r->ask.ops->on_message(
		    text, n, web_session(r->call), r->ask.arg);
}

static void
event_cb(const char *data, size_t n, void *arg)
{
	struct relay *r = arg;

	r->pause_ms = 0;
	pass_on(r, data, n);
}

static int
bytes_cb(struct web_call *c, const char *p, size_t n, void *arg)
{
	struct relay *r = arg;
	struct err e;

	if (web_status(c) == 200 && web_is_stream(c)) {
		r->down_at_ms = 0; /* there is a server that knows of it */
		r->is_large = sse_feed(&r->events, p, n, &e) != 0;
	} else {
		r->is_large = buf_append(&r->body, p, n) != 0;
	}
	return r->is_large ? -1 : 0;
}

static void
refuse(struct relay *r, long status)
{
	const char *body = (const char *)buf_data(&r->body);
	size_t n = buf_len(&r->body);
	AUTO(auto_free) char *said = message_complaint(body, n);
	char text[TEXT_MAX];

	(void)snprintf(text, sizeof(text), "the server answered HTTP %ld%s%s%s",
	    status, said[0] != '\0' ? ": " : "", said,
	    status == 401 ? " (a token goes into MCP_SANDBOXD_TOKEN or "
			    "MCP_SANDBOXD_TOKEN_FILE)" :
		status / 100 == 3 || status == 404 ?
			    " (MCP_SANDBOXD_URL is to be that of the MCP "
			    "endpoint)" :
			    "");
	over(r, RELAY_FAILED, MESSAGE_REFUSED, text);
}

/* An error of the server's, as the answer to the one request that it is for:
 * a client of stdio sees no HTTP answer that it could belong to. */
static bool
pass_error_on(struct relay *r)
{
	const struct message *m = r->ask.message;
	const char *body = (const char *)buf_data(&r->body);
	size_t n = buf_len(&r->body);
	AUTO(auto_free) char *text = NULL;

	if (m->nids != 1)
		return false;
	text = message_error_for(m->ids[0], body, n);
	if (text != NULL)
		pass_on(r, text, strlen(text));
	else if (message_error_code(body, n) != 0)
		pass_on(r, body, n);
	return m->nids == 0;
}

/* 2xx, which is no stream. */
static void
take_json(struct relay *r, long status)
{
	if (r->ask.message->nids > 0 && buf_len(&r->body) > 0)
		pass_on(r, (const char *)buf_data(&r->body), buf_len(&r->body));
	if (r->ask.message->nids == 0 || r->is_unwanted)
		done(r);
	else
		refuse(r, status);
}

static void
take_posted(struct relay *r, long status)
{
	if (status / 100 == 2)
		take_json(r, status);
	else if (status == 503)
		send_again(r, "HTTP 503");
	else if (status == 404 && r->session != NULL &&
	    r->ask.message->claim == NULL)
		over(r, RELAY_NO_SESSION, MESSAGE_REFUSED, "");
	else if (pass_error_on(r) || r->is_unwanted)
		done(r);
	else
		refuse(r, status);
}

static void
take_gotten(struct relay *r, long status)
{
	char why[TEXT_MAX];

	(void)snprintf(
	    why, sizeof(why), "it cannot be taken up again: HTTP %ld", status);
	if (status == 503 || status == 429)
		resume(r, why);
	else if (is_listener(r))
		over(r, RELAY_NO_STREAM, MESSAGE_REFUSED, "");
	else
		fail_broken(r, why);
}

static void
take_whole(struct relay *r)
{
	long status = web_status(r->call);

	if (status == 200 && web_is_stream(r->call)) {
		if (!is_listener(r) && r->ask.message->nids == 0)
			done(r);
		else if (is_listener(r) || has_id(r))
			resume(r, "the server ended it");
		else
			fail_broken(r, "the server ended its stream");
	} else if (r->stage == RELAY_POSTS) {
		take_posted(r, status);
	} else {
		take_gotten(r, status);
	}
}

static void
end_cb(struct web_call *c, enum web_end end, const char *why, void *arg)
{
	struct relay *r = arg;
	char text[TEXT_MAX];

	(void)c;
	if (end == WEB_WHOLE || end == WEB_BROKEN)
		r->ask.ops->on_reached(r->ask.arg);
	if (r->is_large) {
		(void)snprintf(text, sizeof(text),
		    "the server's answer is larger than %u bytes",
		    RELAY_ANSWER_MAX);
		r->call = NULL;
		over(r, RELAY_FAILED, MESSAGE_REFUSED, text);
		return;
	}
	switch (end) {
	case WEB_WHOLE:
		take_whole(r);
		break;
	case WEB_NOBODY:
		take_nobody(r, why);
		break;
	case WEB_REFUSED:
		(void)snprintf(text, sizeof(text),
		    "the server's certificate is not good (%s): "
		    "MCP_SANDBOXD_CA_FILE names authorities beside the "
		    "system's",
		    why);
		over(r, RELAY_FAILED, MESSAGE_UNREACHABLE, text);
		break;
	case WEB_BROKEN:
		take_break(r, why);
		break;
	}
}

static const struct web_ops web_ops = {.on_bytes = bytes_cb, .on_end = end_cb};

/* ---- public */

static void
again_cb(void *arg)
{
	struct relay *r = arg;

	if (is_listener(r) || has_id(r))
		get(r);
	else
		post(r);
}

struct relay *
relay_start(
    struct event_base *base, struct web *web, const struct relay_ask *ask)
{
	struct relay *r = xcalloc(1, sizeof(*r));

	r->web = web;
	r->ask = *ask;
	r->session = ask->session != NULL ? xstrdup(ask->session) : NULL;
	r->revision = ask->revision != NULL ? xstrdup(ask->revision) : NULL;
	r->again = timer_new(base, again_cb, r);
	sse_init(&r->events, RELAY_ANSWER_MAX, event_cb, r);
	buf_init(&r->body, RELAY_ANSWER_MAX);
	again_cb(r);
	return r;
}

bool
relay_is_sent(const struct relay *r)
{
	return r->stage != RELAY_PAUSES || has_id(r);
}

void
relay_expect_no_answer(struct relay *r)
{
	r->is_unwanted = true;
}

void
relay_hurry(struct relay *r)
{
	if (r->stage == RELAY_PAUSES)
		timer_set_ms(r->again, 0);
}
