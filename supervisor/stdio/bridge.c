/*
 * An errand is a message of the client, from its line to its answer:
 *
 *	waits	for its turn: fewer than BRIDGE_FLYING_MAX of its kind are under
 *		way, and no gate stands before it.  relay is NULL
 *	goes	it has a relay
 *
 * A gate is an initialize, and the notification that follows it: what belongs
 * to a session waits until it was answered.
 *
 * A session that the server does not know any more (404) is made anew: two
 * errands that no client asked for, the initialize that is kept and the
 * notification, go before all others.  The errand that met the 404 waits
 * again, once.
 */
#include "supervisor/stdio/bridge.h"

#include <stdio.h>
#include <sys/queue.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/stdio/message.h"
#include "supervisor/stdio/outlet.h"
#include "supervisor/stdio/relay.h"
#include "supervisor/stdio/web.h"

#define GOODBYE_MS 1000

enum errand_origin {
	ERRAND_OF_CLIENT,
	ERRAND_OF_OURS /* its answer is not the client's */
};

struct errand {
	struct bridge *b;
	char *line;
	size_t len;
	struct message m;
	enum errand_origin origin;
	bool is_gate;
	bool was_repeated;    /* after a 404 */
	unsigned int session; /* the number of the one that it was sent in */
	struct relay *relay;  /* NULL: it waits */
	TAILQ_ENTRY(errand) link;
};
TAILQ_HEAD(errands, errand);

struct kept_line {
	char *line; /* NULL: none */
	size_t len;
};

struct bridge {
	struct event_base *base;
	struct web *web;
	struct outlet *output;
	const struct bridge_ops *ops;
	void *arg;
	struct errands errands;
	size_t count, bytes;
	uint64_t done, done_seen, taken_seen; /* bridge_moves */
	unsigned int flying[2];               /* under way: others, requests */
	unsigned int gates;
	char *session, *revision;
	unsigned int session_number;
	struct kept_line initialize, initialized;
	struct relay *listener;
	struct message nothing; /* the listener's */
	struct timer *turn;     /* the next errands are looked for */
	bool input_ended, was_reached, is_done;
	struct web_call *goodbye;
	struct timer *goodbye_late;
};

static const struct relay_ops errand_ops;
static const struct relay_ops listener_ops;

/* ---- to the client */

static void
say(struct bridge *b, const char *text, size_t n)
{
	outlet_put(b->output, text, n);
	if (outlet_is_full(b->output))
		web_hold(b->web);
}

static void
say_error(
    struct bridge *b, const char *id, enum message_code code, const char *text)
{
	AUTO(auto_free) char *error = message_error(id, code, text);

	say(b, error, strlen(error));
}

/* Of all its requests that are not answered; a notification has none. */
static void
answer_errors(struct errand *d, enum message_code code, const char *text)
{
	if (d->m.nids == 0 || d->origin == ERRAND_OF_OURS)
		log_warn("%s: %s",
		    d->m.method != NULL ? d->m.method : "a response", text);
	else
		for (size_t i = 0; i < d->m.nids; i++)
			say_error(d->b, d->m.ids[i], code, text);
}

/* ---- errands */

static bool
is_method(const struct errand *d, const char *method)
{
	return d->m.method != NULL && strcmp(d->m.method, method) == 0;
}

/* Of an era with sessions. */
static bool
is_legacy(const struct errand *d)
{
	return d->m.claim == NULL;
}

static bool
is_initialize(const struct errand *d)
{
	return is_legacy(d) && d->m.kind == MESSAGE_REQUEST &&
	    is_method(d, "initialize");
}

static bool
is_initialized(const struct errand *d)
{
	return is_legacy(d) && is_method(d, "notifications/initialized");
}

/* Of d's message; line is copied. */
static struct errand *
errand_new(struct bridge *b, const char *line, size_t n, struct message *m)
{
	struct errand *d = xcalloc(1, sizeof(*d));

	d->b = b;
	d->line = xmemdup(line, n);
	d->len = n;
	d->m = *m;
	d->is_gate = is_initialize(d) || is_initialized(d);
	b->count++;
	b->bytes += n;
	return d;
}

static bool
is_request(const struct errand *d)
{
	return d->m.kind == MESSAGE_REQUEST || d->m.kind == MESSAGE_BATCH;
}

static void
errand_goes(struct errand *d)
{
	d->b->flying[is_request(d)]++;
	d->b->gates += d->is_gate ? 1 : 0;
}

static void
errand_is_back(struct errand *d)
{
	d->b->flying[is_request(d)]--;
	d->b->gates -= d->is_gate ? 1 : 0;
	d->relay = NULL;
}

static void
errand_free(struct errand *d)
{
	struct bridge *b = d->b;

	TAILQ_REMOVE(&b->errands, d, link);
	b->count--;
	b->done++;
	b->bytes -= d->len;
	message_clear(&d->m);
	free(d->line);
	free(d);
	timer_set_ms(b->turn, 0);
}

static void
errand_send(struct errand *d)
{
	struct bridge *b = d->b;
	bool in_session = is_legacy(d) && !is_initialize(d);

	errand_goes(d);
	d->session = b->session_number;
	d->relay = relay_start(b->base, b->web,
	    &(struct relay_ask){.line = d->line,
		.len = d->len,
		.message = &d->m,
		.session = in_session ? b->session : NULL,
		.revision = in_session ? b->revision : NULL,
		.ops = &errand_ops,
		.arg = d});
}

static bool
may_go(const struct errand *d)
{
	if (is_legacy(d) && d->b->gates > 0)
		return false;
	return is_initialize(d) ||
	    d->b->flying[is_request(d)] < BRIDGE_FLYING_MAX;
}

/* ---- the end */

static void
tell_done(struct bridge *b)
{
	if (!b->is_done)
		b->ops->on_done(b->arg);
	b->is_done = true;
}

static int
goodbye_bytes_cb(struct web_call *c, const char *p, size_t n, void *arg)
{
	(void)c;
	(void)p;
	(void)n;
	(void)arg;
	return 0;
}

static void
goodbye_end_cb(struct web_call *c, enum web_end end, const char *why, void *arg)
{
	struct bridge *b = arg;

	(void)c;
	(void)end;
	(void)why;
	b->goodbye = NULL;
	tell_done(b);
}

static void
goodbye_late_cb(void *arg)
{
	tell_done(arg);
}

static const struct web_ops goodbye_ops = {
    .on_bytes = goodbye_bytes_cb, .on_end = goodbye_end_cb};

static void
drop_listener(struct bridge *b)
{
	if (b->listener != NULL)
		relay_drop(b->listener);
	b->listener = NULL;
}

/* MCP 2025-03-26, session management: who needs a session no more says so. */
static void
say_goodbye(struct bridge *b)
{
	AUTO(auto_free) char *session = NULL;
	AUTO(auto_free) char *revision = NULL;
	const char *headers[3] = {NULL, NULL, NULL};

	drop_listener(b);
	if (b->session == NULL || !b->was_reached) {
		tell_done(b);
		return;
	}
	session = xasprintf("Mcp-Session-Id: %s", b->session);
	revision = xasprintf("MCP-Protocol-Version: %s", b->revision);
	headers[0] = session;
	headers[1] = revision;
	b->goodbye = web_start(b->web,
	    &(struct web_ask){.method = WEB_DELETE,
		.headers = headers,
		.ops = &goodbye_ops,
		.arg = b});
	timer_set_ms(b->goodbye_late, GOODBYE_MS);
}

static void
check_end(struct bridge *b)
{
	if (b->input_ended && b->count == 0 && outlet_is_empty(b->output) &&
	    b->goodbye == NULL && !b->is_done)
		say_goodbye(b);
}

/* From the loop, never inside a callback: errands come and go in there. */
static void
turn_cb(void *arg)
{
	struct bridge *b = arg;
	struct errand *d;

	TAILQ_FOREACH (d, &b->errands, link)
		if (d->relay == NULL && may_go(d))
			errand_send(d);
	b->ops->on_room(b->arg);
	check_end(b);
}

/* ---- sessions */

static void
keep_line(struct kept_line *k, const struct errand *d)
{
	free(k->line);
	k->line = xmemdup(d->line, d->len);
	k->len = d->len;
}

static void
forget_session(struct bridge *b)
{
	drop_listener(b);
	free(b->session);
	free(b->revision);
	b->session = b->revision = NULL;
	b->session_number++;
}

static void
take_session(struct bridge *b, const char *text, size_t n, const char *session)
{
	char *revision = message_revision(text, n);

	if (revision == NULL) /* refused, or no answer at all */
		return;
	forget_session(b);
	b->revision = revision;
	if (session[0] != '\0')
		b->session = xstrdup(session);
}

static void
start_listener(struct bridge *b)
{
	drop_listener(b);
	if (b->session == NULL || b->input_ended)
		return;
	b->listener = relay_start(b->base, b->web,
	    &(struct relay_ask){.message = &b->nothing,
		.session = b->session,
		.revision = b->revision,
		.ops = &listener_ops,
		.arg = b});
}

/* An errand of ours; *after NULL: before all others. */
static struct errand *
add_ours(struct bridge *b, const struct kept_line *k, struct errand *after)
{
	struct message m;
	struct errand *d;
	struct err e;

	if (message_read(k->line, k->len, &m, &e) != 0)
		return NULL; /* it was read before */
	d = errand_new(b, k->line, k->len, &m);
	d->origin = ERRAND_OF_OURS;
	if (after == NULL)
		TAILQ_INSERT_HEAD(&b->errands, d, link);
	else
		TAILQ_INSERT_AFTER(&b->errands, after, d, link);
	return d;
}

static void
renew_session(struct bridge *b)
{
	struct errand *d;

	log_info("the server knows the session no more: it is made anew");
	forget_session(b);
	d = add_ours(b, &b->initialize, NULL);
	if (d != NULL && b->initialized.line != NULL)
		(void)add_ours(b, &b->initialized, d);
}

/* The server did not know its session, and did nothing. */
static void
send_in_another(struct errand *d)
{
	struct bridge *b = d->b;

	if (d->was_repeated || b->initialize.line == NULL) {
		answer_errors(d, MESSAGE_UNREACHABLE,
		    "the server knows the session no more, and a new one "
		    "neither: initialize again");
		errand_free(d);
		return;
	}
	d->was_repeated = true;
	if (d->session == b->session_number)
		renew_session(b);
	timer_set_ms(b->turn, 0);
}

/* Those that wait for a session that cannot be made. */
static void
fail_waiting(struct bridge *b, enum message_code code, const char *text)
{
	struct errand *d, *next;

	for (d = TAILQ_FIRST(&b->errands); d != NULL; d = next) {
		next = TAILQ_NEXT(d, link);
		if (d->relay != NULL || !is_legacy(d) || is_initialize(d))
			continue;
		answer_errors(d, code, text);
		errand_free(d);
	}
}

/* ---- what relays say */

static void
message_cb(const char *text, size_t n, const char *session, void *arg)
{
	struct errand *d = arg;

	if (is_initialize(d) && d->m.nids == 0)
		take_session(d->b, text, n, session);
	if (d->origin == ERRAND_OF_CLIENT)
		say(d->b, text, n);
}

static void
reached_cb(void *arg)
{
	struct errand *d = arg;

	d->b->was_reached = true;
}

static void
nobody_cb(void *arg)
{
	struct errand *d = arg;

	d->b->ops->on_nobody(d->b->arg);
}

static void
errand_is_done(struct errand *d)
{
	struct bridge *b = d->b;

	if (is_initialized(d)) {
		if (d->origin == ERRAND_OF_CLIENT)
			keep_line(&b->initialized, d);
		start_listener(b);
	}
	errand_free(d);
}

static void
over_cb(
    enum relay_over over, enum message_code code, const char *text, void *arg)
{
	struct errand *d = arg;
	struct bridge *b = d->b;
	bool was_ours = d->origin == ERRAND_OF_OURS && is_initialize(d);

	errand_is_back(d);
	if (over == RELAY_DONE) {
		errand_is_done(d);
	} else if (over == RELAY_NO_SESSION) {
		send_in_another(d);
	} else {
		answer_errors(d, code, text);
		errand_free(d);
		if (was_ours)
			fail_waiting(b, code, text);
	}
}

static const struct relay_ops errand_ops = {.on_message = message_cb,
    .on_reached = reached_cb,
    .on_nobody = nobody_cb,
    .on_over = over_cb};

static void
heard_cb(const char *text, size_t n, const char *session, void *arg)
{
	(void)session;
	say(arg, text, n);
}

/* A session's own stream wants no server started. */
static void
listener_is_well_cb(void *arg)
{
	(void)arg;
}

static void
listener_over_cb(
    enum relay_over over, enum message_code code, const char *text, void *arg)
{
	struct bridge *b = arg;

	(void)code;
	if (over == RELAY_FAILED)
		log_warn("the session's stream: %s", text);
	b->listener = NULL;
}

static const struct relay_ops listener_ops = {.on_message = heard_cb,
    .on_reached = listener_is_well_cb,
    .on_nobody = listener_is_well_cb,
    .on_over = listener_over_cb};

/* ---- what the client says */

static struct errand *
find_request(const struct bridge *b, const char *id)
{
	struct errand *d;

	TAILQ_FOREACH_REVERSE (d, &b->errands, errands, link)
		if (d->origin == ERRAND_OF_CLIENT && message_has_id(&d->m, id))
			return d;
	return NULL;
}

/* false: the server is to be told.  A batch goes as one. */
static bool
cancel(struct bridge *b, const struct message *m)
{
	struct errand *d =
	    m->cancels == NULL ? NULL : find_request(b, m->cancels);

	if (d == NULL || d->m.kind != MESSAGE_REQUEST)
		return m->claim != NULL; /* over: of that era nothing is said */
	if (is_initialize(d))
		return false;
	if (is_legacy(d) && d->relay != NULL && relay_is_sent(d->relay)) {
		relay_expect_no_answer(d->relay);
		return false;
	}
	if (d->relay != NULL) {
		relay_drop(d->relay);
		errand_is_back(d);
	}
	errand_free(d);
	return true;
}

void
bridge_take_line(struct bridge *b, const char *line, size_t n)
{
	struct message m;
	struct errand *d;
	struct err e;

	if (message_read(line, n, &m, &e) != 0) {
		say_error(b, NULL, MESSAGE_PARSE_ERROR, e.msg);
		return;
	}
	if (m.method != NULL &&
	    strcmp(m.method, "notifications/cancelled") == 0 && cancel(b, &m)) {
		message_clear(&m);
		return;
	}
	d = errand_new(b, line, n, &m);
	TAILQ_INSERT_TAIL(&b->errands, d, link);
	if (is_initialize(d))
		keep_line(&b->initialize, d);
	timer_set_ms(b->turn, 0);
}

void
bridge_take_too_long(struct bridge *b, const struct glimpse *what)
{
	char text[160];

	(void)snprintf(text, sizeof(text),
	    "the message is longer than %u bytes, the most that MAX_BODY_BYTES "
	    "of a server can be: send less",
	    BRIDGE_LINE_MAX);
	if (glimpse_is_response(what))
		log_warn("a response: %s", text);
	else
		say_error(b, glimpse_is_request(what) ? what->id : NULL,
		    MESSAGE_INVALID_REQUEST, text);
}

bool
bridge_is_full(const struct bridge *b)
{
	return b->count >= BRIDGE_WAITING_MAX || b->bytes >= BRIDGE_BYTES_MAX ||
	    outlet_is_full(b->output);
}

void
bridge_output_has_room(struct bridge *b)
{
	if (!outlet_is_full(b->output))
		web_go_on(b->web);
	timer_set_ms(b->turn, 0);
}

void
bridge_end_input(struct bridge *b)
{
	b->input_ended = true;
	timer_set_ms(b->turn, 0);
}

size_t
bridge_left(const struct bridge *b)
{
	return b->count;
}

bool
bridge_moves(struct bridge *b)
{
	uint64_t taken = outlet_taken(b->output);
	bool moves = b->done != b->done_seen ||
	    (taken != b->taken_seen && !outlet_is_empty(b->output));

	b->done_seen = b->done;
	b->taken_seen = taken;
	return moves;
}

bool
bridge_was_reached(const struct bridge *b)
{
	return b->was_reached;
}

void
bridge_give_up(struct bridge *b, const char *why)
{
	struct errand *d, *next;

	for (d = TAILQ_FIRST(&b->errands); d != NULL; d = next) {
		next = TAILQ_NEXT(d, link);
		answer_errors(d, MESSAGE_UNREACHABLE, why);
		if (d->relay != NULL) {
			relay_drop(d->relay);
			errand_is_back(d);
		}
		errand_free(d);
	}
}

struct bridge *
bridge_new(struct event_base *base, struct web *web, struct outlet *output,
    const struct bridge_ops *ops, void *arg)
{
	struct bridge *b = xcalloc(1, sizeof(*b));

	b->base = base;
	b->web = web;
	b->output = output;
	b->ops = ops;
	b->arg = arg;
	TAILQ_INIT(&b->errands);
	b->turn = timer_new(base, turn_cb, b);
	b->goodbye_late = timer_new(base, goodbye_late_cb, b);
	return b;
}

void
bridge_free(struct bridge *b)
{
	struct errand *d;

	drop_listener(b);
	if (b->goodbye != NULL)
		web_cancel(b->goodbye);
	while ((d = TAILQ_FIRST(&b->errands)) != NULL) {
		if (d->relay != NULL)
			relay_drop(d->relay);
		errand_free(d);
	}
	timer_free(b->turn);
	timer_free(b->goodbye_late);
	free(b->session);
	free(b->revision);
	free(b->initialize.line);
	free(b->initialized.line);
	free(b);
}
