/*
 * curl tells which sockets and what time it waits for (socket_cb, timer_cb),
 * and the loop tells curl when they are there (api_act).
 *
 * While curl is at work (depth > 0) none of its functions may be called that
 * start or end a transfer.  So calls that are started or cancelled in a
 * callback are only noted, and api_after does what was put off when curl has
 * returned: it ends what is finished, then adds what is new.
 *
 *	CALL_NEW	not given to curl yet
 *	CALL_WAITS	the server's queue of connections is full: given to
 *			curl again in CONNECT_AGAIN_MS
 *	CALL_DIALS	curl had no connection to use again, and the dialer
 *			makes one (open_cb): given to curl again with it
 *	CALL_ADDED	curl has it
 *	CALL_SWITCHES	curl has connected; request and answer are upgrade.h's
 *	CALL_STREAM	the server switched: the connection is the asker's
 */
#include "worker/http/api.h"

#include <errno.h>
#include <stdio.h>
#include <sys/queue.h>

#include <curl/curl.h>
#include <event2/event.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/http/server_address.h"
#include "worker/http/dialer.h"
#include "worker/http/certs.h"
#include "worker/http/upgrade.h"
#include "worker/later.h"

#define CONNECT_MS 2000 /* also while the server's queue is full */
#define DIAL_CONNECT_MS 5000
#define CONNECT_AGAIN_MS 10
#define KEPT_CONNECTIONS 4
#define BODY_MAX 65536 /* of calls that name no limit */
#define FIRST_FINAL 200
#define UNIX_URL "http://localhost/" /* its host is not looked up */
/* What curl takes for the address, so that it looks nothing up: the connection
 * is the dialer's. */
#define CONNECT_TO "::127.0.0.1:"

enum call_stage {
	CALL_NEW,
	CALL_WAITS,
	CALL_DIALS,
	CALL_ADDED, /* curl has it, and in what follows */
	CALL_SWITCHES,
	CALL_STREAM
};

struct api_call {
	struct api *h;
	CURL *curl;
	struct curl_slist *headers;
	char *path;
	size_t prefix_len; /* of the path */
	const char *method;
	uint8_t *body;
	char *protocol; /* to switch to; NULL: none */
	uint32_t timeout_ms;
	uint64_t started_us;
	struct buf in;
	struct buf line; /* of on_line, as far as it came */
	bool skips_line; /* it is too long */
	size_t nheaders;
	size_t over_limit; /* its answer has more bytes; 0: not so */
	struct buf head;   /* the last one: its lines, each ended by NULs */
	bool has_head;     /* the final answer's, whole */
	enum call_stage stage;
	bool cancelled;
	bool is_unix;
	bool wants_dial; /* curl asked for a connection, and there was none */
	int dialed;      /* for curl to take; -1: none */
	char error[CURL_ERROR_SIZE];
	const char *why; /* what curl does not say, static; NULL: nothing */
	size_t max_body;
	size_t body_len;         /* of body */
	struct timer *deadline;  /* while curl has not the call */
	struct upgrade *upgrade; /* from CALL_SWITCHES on */
	long status; /* of an upgrade's final head; 0: curl says it */
	void (*on_line)(const char *, size_t, void *);
	void (*on_done)(const struct api_answer *, void *);
	void *arg;
	TAILQ_ENTRY(api_call) link;
};
TAILQ_HEAD(api_calls, api_call);

struct api_sock {
	struct event *ev;
	struct api *h;
};

struct api {
	struct event_base *base;
	const struct api_server *server;
	CURLM *multi;
	struct timer *timer;
	struct timer *again; /* for CALL_WAITS */
	char *where;         /* the socket's path or the address, for texts */
	char *url;           /* without a path */
	char *host;          /* header of each request */
	char *prefix;        /* of each path */
	bool is_unix;
	struct dialer *dialer;         /* NULL: a Unix socket */
	int dial_number;               /* of the last connection that failed */
	char dial_why[DIALER_WHY_MAX]; /* "": the number says it */
	struct curl_slist *to;         /* CONNECT_TO */
	/* NULL: no TLS; no certificate of ours. */
	char *ca, *cert, *key;
	bool is_pem;
	int64_t peer_expires_ms;
	unsigned int depth; /* inside curl: its functions must not be called */
	bool freeing;
	struct api_calls calls;
};

static void api_after(struct api *h);

/* ---- curl's wishes about sockets and time */

static void
api_act(struct api *h, curl_socket_t s, int what)
{
	int running;

	h->depth++;
	(void)curl_multi_socket_action(h->multi, s, what, &running);
	h->depth--;
	api_after(h);
}

static void
sock_ready_cb(evutil_socket_t fd, short what, void *arg)
{
	struct api_sock *s = arg;
	int mask = ((what & EV_READ) != 0 ? CURL_CSELECT_IN : 0) |
	    ((what & EV_WRITE) != 0 ? CURL_CSELECT_OUT : 0);

	api_act(s->h, fd, mask);
}

static void
sock_free(void *arg)
{
	struct api_sock *s = arg;

	event_free(s->ev);
	free(s);
}

static struct event *
event_must(struct api *h, int fd, short what, event_callback_fn cb, void *arg)
{
	struct event *ev = event_new(h->base, fd, what, cb, arg);

	if (ev == NULL || event_add(ev, NULL) == -1)
		fatal(EXIT_MEMORY, "no memory for an event");
	return ev;
}

/* A socket whose wish changes gets a new event: the old one may be in its
 * callback. */
static int
socket_cb(CURL *curl, curl_socket_t fd, int what, void *arg, void *sockp)
{
	struct api *h = arg;
	struct api_sock *s = sockp;
	short mask = EV_PERSIST;

	(void)curl;
	if (s != NULL) {
		(void)event_del(s->ev);
		later(h->base, sock_free, s);
	}
	s = NULL;
	if (what != CURL_POLL_REMOVE) {
		if ((what & CURL_POLL_IN) != 0)
			mask |= EV_READ;
		if ((what & CURL_POLL_OUT) != 0)
			mask |= EV_WRITE;
		s = xcalloc(1, sizeof(*s));
		s->h = h;
		s->ev = event_must(h, fd, mask, sock_ready_cb, s);
	}
	(void)curl_multi_assign(h->multi, fd, s);
	return 0;
}

static int
timer_cb(CURLM *multi, long ms, void *arg)
{
	struct api *h = arg;

	(void)multi;
	if (ms < 0)
		timer_stop(h->timer);
	else
		timer_set_ms(h->timer, (uint64_t)ms);
	return 0;
}

static void
timer_fired_cb(void *arg)
{
	api_act(arg, CURL_SOCKET_TIMEOUT, 0);
}

/* ---- what comes in */

static void
line_end(struct api_call *c)
{
	if (!c->skips_line && buf_len(&c->line) > 0)
		c->on_line((const char *)buf_data(&c->line), buf_len(&c->line),
		    c->arg);
	buf_consume(&c->line, buf_len(&c->line));
	c->skips_line = false;
}

static void
take_lines(struct api_call *c, const char *p, size_t n)
{
	while (n > 0 && !c->cancelled) {
		const char *end = memchr(p, '\n', n);
		size_t len = end != NULL ? (size_t)(end - p) : n;

		if (!c->skips_line && buf_append(&c->line, p, len) != 0)
			c->skips_line = true;
		if (end != NULL) {
			line_end(c);
			len++;
		}
		p += len;
		n -= len;
	}
}

static size_t
write_cb(char *p, size_t size, size_t n, void *arg)
{
	struct api_call *c = arg;
	long status = 0;

	n *= size;
	if (c->cancelled)
		return 0;
	(void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	if (c->on_line != NULL && status >= 200 && status < 300) {
		take_lines(c, p, n);
		return c->cancelled ? 0 : n;
	}
	if (buf_len(&c->in) + n > c->max_body || buf_append(&c->in, p, n) != 0)
		c->over_limit = c->max_body;
	return c->over_limit != 0 ? 0 : n;
}

/* n bytes of a head are lines that end with NUL.  Within API_HEADERS_MAX. */
static void
keep_head(struct api_call *c, const char *p, size_t n)
{
	uint8_t *to = buf_reserve(&c->head, n);

	if (to == NULL)
		fatal(EXIT_BUG, "a head is larger than its bounds");
	for (size_t i = 0; i < n; i++)
		to[i] = p[i] == '\r' || p[i] == '\n' ? '\0' : (uint8_t)p[i];
	buf_commit(&c->head, n);
}

/* A line at a time; an empty one ends a head. */
// NOLINTBEGIN(readability-non-const-parameter): curl's type
static size_t
header_cb(char *p, size_t size, size_t n, void *arg)
{
	struct api_call *c = arg;
	long status = 0;

	n *= size;
	c->nheaders += n;
	if (c->nheaders > API_HEADERS_MAX) {
		c->over_limit = API_HEADERS_MAX;
		return 0;
	}
	if (strncmp(p, "HTTP/", n < 5 ? n : 5) == 0)
		buf_consume(&c->head, buf_len(&c->head));
	keep_head(c, p, n);
	(void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status == UPGRADE_SWITCHED)
		c->why = "it would change its protocol";
	if (status >= FIRST_FINAL && (p[0] == '\r' || p[0] == '\n'))
		c->has_head = true;
	return c->why != NULL ? 0 : n;
}
// NOLINTEND(readability-non-const-parameter)

/* ---- the end of a call */

static void
call_free(struct api_call *c)
{
	TAILQ_REMOVE(&c->h->calls, c, link);
	timer_free(c->deadline);
	upgrade_free(c->upgrade);
	if (c->stage >= CALL_ADDED)
		(void)curl_multi_remove_handle(c->h->multi, c->curl);
	curl_easy_cleanup(c->curl);
	if (c->dialed != -1)
		(void)close(c->dialed);
	curl_slist_free_all(c->headers);
	buf_clear(&c->in);
	buf_clear(&c->line);
	buf_clear(&c->head);
	free(c->path);
	free(c->body);
	free(c->protocol);
	free(c);
}

static int
call_errno(const struct api_call *c)
{
	long number = 0;

	(void)curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &number);
	return (int)number;
}

/* The queue of a Unix socket is full: curl takes EAGAIN for a connection under
 * way, which then is none, or cannot be sent on. */
static bool
call_found_full_queue(const struct api_call *c, CURLcode code)
{
	int number = call_errno(c);

	return c->is_unix &&
	    ((code == CURLE_COULDNT_CONNECT && number == 0) ||
		(code == CURLE_SEND_ERROR && number == ENOTCONN));
}

static enum api_failure_kind
call_failure_kind(const struct api_call *c, CURLcode code)
{
	long verify = 0;

	if (c->h->freeing)
		return API_ENDING;
	if (c->over_limit != 0)
		return API_TOO_LARGE;
	if (code == CURLE_URL_MALFORMAT)
		return API_UNSENDABLE;
	if (code == CURLE_OPERATION_TIMEDOUT)
		return API_LATE;
	if (code == CURLE_COULDNT_CONNECT || call_found_full_queue(c, code))
		return API_NOBODY;
	if (c->h->ca == NULL)
		return API_BROKEN;
	(void)curl_easy_getinfo(c->curl, CURLINFO_SSL_VERIFYRESULT, &verify);
	return certs_judge(code, verify, c->error);
}

/* errno, or 0. */
static int
call_number(const struct api_call *c, CURLcode code)
{
	if (c->h->dialer != NULL && code == CURLE_COULDNT_CONNECT)
		return c->h->dial_number;
	return call_found_full_queue(c, code) ? 0 : call_errno(c);
}

static const char *
call_why(const struct api_call *c, CURLcode code)
{
	if (c->why != NULL)
		return c->why;
	if (c->h->dialer != NULL && code == CURLE_COULDNT_CONNECT)
		return c->h->dial_why;
	return c->error[0] != '\0' ? c->error : curl_easy_strerror(code);
}

static int
call_explain(const struct api_call *c, CURLcode code, struct err *e)
{
	const struct api_failure f = {.kind = call_failure_kind(c, code),
	    .method = c->method,
	    .path = c->path,
	    .where = c->h->where,
	    .number = call_number(c, code),
	    .why = call_why(c, code),
	    .timeout_ms = c->timeout_ms,
	    .limit = c->over_limit};

	return c->h->server->explain(&f, e);
}

static void
call_count(const struct api_call *c, long status, uint64_t us)
{
	const struct api_server *s = c->h->server;

	if (s->on_ended != NULL)
		s->on_ended(c->method, c->path + c->prefix_len, status, us);
}

/* A connection that is used again says nothing new. */
static void
call_note_expiry(const struct api_call *c)
{
	int64_t ms = c->h->ca != NULL ? certs_read_expiry(c->curl) : 0;

	if (ms != 0)
		c->h->peer_expires_ms = ms;
}

/* The call is gone when on_done is told. */
static void
call_end(struct api_call *c, CURLcode code)
{
	void (*on_done)(const struct api_answer *, void *) = c->on_done;
	struct api_answer a = {.status = c->status};
	void *arg = c->arg;
	struct err e;
	struct buf in, head;

	if (a.status == 0)
		(void)curl_easy_getinfo(
		    c->curl, CURLINFO_RESPONSE_CODE, &a.status);
	a.took_us = clock_mono_us() - c->started_us;
	if (code != CURLE_OK)
		a.rc = call_explain(c, code, &e);
	call_note_expiry(c);
	a.why = &e;
	call_count(c, code == CURLE_OK ? a.status : 0, a.took_us);
	in = c->in;
	head = c->head;
	buf_init(&c->in, 0);
	buf_init(&c->head, 0);
	call_free(c);
	if (buf_append(&head, "", 1) != 0)
		fatal(EXIT_BUG, "no room for a head's end");
	a.head = (const char *)buf_data(&head);
	a.head_len = buf_len(&head);
	if (a.rc == 0) {
		if (buf_append(&in, "", 1) != 0)
			fatal(EXIT_BUG, "no room for an answer's end");
		a.body = (const char *)buf_data(&in);
		a.len = buf_len(&in) - 1;
	}
	on_done(&a, arg);
	buf_clear(&in);
	buf_clear(&head);
}

/* ---- a connection that the server switches */

static uint64_t
call_age_ms(const struct api_call *c)
{
	return (clock_mono_us() - c->started_us) / 1000;
}

static uint64_t
call_left_ms(const struct api_call *c)
{
	uint64_t age = call_age_ms(c);

	return age < c->timeout_ms ? c->timeout_ms - age : 1;
}

static void
switched(struct api_call *c, const struct upgrade_end *end)
{
	const struct api_answer a = {.status = end->status,
	    .took_us = clock_mono_us() - c->started_us,
	    .body = "",
	    .head = (const char *)buf_data(&c->head),
	    .head_len = buf_len(&c->head),
	    .stream = c};

	timer_free(c->deadline);
	c->deadline = NULL;
	call_count(c, a.status, a.took_us);
	c->stage = CALL_STREAM;
	c->on_done(&a, c->arg);
}

static void
upgraded_cb(const struct upgrade_end *end, void *arg)
{
	struct api_call *c = arg;

	keep_head(c, end->head, end->head_len);
	if (end->code == CURLE_OK && end->status == UPGRADE_SWITCHED) {
		switched(c, end);
		return;
	}
	c->status = end->status;
	c->over_limit = end->over_limit;
	if (end->code == CURLE_OK && buf_append(&c->in, end->body, end->len))
		fatal(EXIT_BUG, "an answer is larger than its bounds");
	call_end(c, end->code);
}

static void
switch_late_cb(void *arg)
{
	call_end(arg, CURLE_OPERATION_TIMEDOUT);
}

/* curl has connected. */
static void
switch_start(struct api_call *c)
{
	c->stage = CALL_SWITCHES;
	c->upgrade = upgrade_new(c->h->base, c->curl,
	    &(struct upgrade_ask){.method = c->method,
		.path = c->path,
		.protocol = c->protocol,
		.headers = c->headers,
		.body = c->body,
		.body_len = c->body_len,
		.max_headers = API_HEADERS_MAX,
		.max_body = c->max_body},
	    upgraded_cb, c);
	if (c->timeout_ms != 0) {
		c->deadline = timer_new(c->h->base, switch_late_cb, c);
		timer_set_ms(c->deadline, call_left_ms(c));
	}
}

/* ---- what was said of the answer */

const char *
api_header(const struct api_answer *a, const char *name)
{
	const char *end = a->head + a->head_len;
	size_t n = strlen(name);

	for (const char *s = a->head; s < end;
	     s += strnlen(s, (size_t)(end - s)) + 1)
		if (strncasecmp(s, name, n) == 0 && s[n] == ':')
			return s + n + 1 + strspn(s + n + 1, " \t");
	return NULL;
}

int
api_fd(const struct api_call *c)
{
	return upgrade_fd(c->upgrade);
}

ssize_t
api_recv(struct api_call *c, void *p, size_t n)
{
	return upgrade_recv(c->upgrade, p, n);
}

ssize_t
api_send(struct api_call *c, const void *p, size_t n)
{
	return upgrade_send(c->upgrade, p, n);
}

/* ---- a call's way to curl and back */

static void
call_add(struct api_call *c)
{
	c->stage = CALL_ADDED;
	if (c->timeout_ms != 0)
		(void)curl_easy_setopt(
		    c->curl, CURLOPT_TIMEOUT_MS, (long)call_left_ms(c));
	if (curl_multi_add_handle(c->h->multi, c->curl) != CURLM_OK)
		fatal(EXIT_MEMORY, "curl takes no more requests");
}

static void
api_add_new(struct api *h)
{
	struct api_call *c, *next;

	for (c = TAILQ_FIRST(&h->calls); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->cancelled)
			call_free(c);
		else if (c->stage == CALL_NEW)
			call_add(c);
	}
}

static uint32_t
dial_time_ms(const struct api_call *c)
{
	uint64_t left = call_left_ms(c);

	return c->timeout_ms != 0 && left < DIAL_CONNECT_MS ? (uint32_t)left :
							      DIAL_CONNECT_MS;
}

static void
dial_late_cb(void *arg)
{
	struct api_call *c = arg;

	c->h->dial_number = ETIMEDOUT;
	c->h->dial_why[0] = '\0';
	call_end(c, CURLE_COULDNT_CONNECT);
}

static void
dial_start(struct api_call *c)
{
	c->wants_dial = false;
	c->stage = CALL_DIALS;
	c->deadline = timer_new(c->h->base, dial_late_cb, c);
	timer_set_ms(c->deadline, dial_time_ms(c));
	dialer_ask(c->h->dialer);
}

static struct api_call *
dial_first(struct api *h)
{
	struct api_call *c;

	TAILQ_FOREACH (c, &h->calls, link)
		if (c->stage == CALL_DIALS && !c->cancelled)
			return c;
	return NULL;
}

/* One connection is for the first that waits; a failure is everybody's, so that
 * nobody waits for one failure after the other. */
static void
dialed_cb(int fd, int number, const char *why, void *arg)
{
	struct api *h = arg;
	struct api_call *c = dial_first(h);

	if (fd != -1 && c != NULL) {
		timer_free(c->deadline);
		c->deadline = NULL;
		c->dialed = fd;
		call_add(c);
		return;
	}
	if (fd != -1) {
		(void)close(fd);
		return;
	}
	h->dial_number = number;
	(void)snprintf(h->dial_why, sizeof(h->dial_why), "%s", why);
	for (; c != NULL; c = dial_first(h))
		call_end(c, CURLE_COULDNT_CONNECT);
}

static curl_socket_t
open_cb(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct api_call *c = arg;
	int fd = c->dialed;

	(void)purpose;
	(void)address;
	c->dialed = -1;
	c->wants_dial = fd == -1;
	return fd == -1 ? CURL_SOCKET_BAD : fd;
}

static int
opened_cb(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	(void)arg;
	(void)fd;
	(void)purpose;
	return CURL_SOCKOPT_ALREADY_CONNECTED;
}

static bool
call_may_wait(const struct api_call *c)
{
	uint64_t age = call_age_ms(c);

	return age < CONNECT_MS && (c->timeout_ms == 0 || age < c->timeout_ms);
}

static void
call_finish(struct api_call *c, CURLcode code)
{
	if (code == CURLE_OK && c->on_line != NULL && !c->cancelled) {
		c->h->depth++; /* on_line may cancel the call */
		line_end(c);
		c->h->depth--;
	}
	if (c->cancelled) {
		call_free(c);
	} else if (c->wants_dial) {
		(void)curl_multi_remove_handle(c->h->multi, c->curl);
		dial_start(c);
	} else if (call_found_full_queue(c, code) && call_may_wait(c)) {
		(void)curl_multi_remove_handle(c->h->multi, c->curl);
		c->stage = CALL_WAITS;
		if (!timer_is_set(c->h->again))
			timer_set_ms(c->h->again, CONNECT_AGAIN_MS);
	} else if (code == CURLE_OK && c->protocol != NULL) {
		switch_start(c);
	} else if (code == CURLE_OK && !c->has_head) {
		c->why = "it ended in the middle"; /* curl lets it pass */
		call_end(c, CURLE_PARTIAL_FILE);
	} else {
		call_end(c, code);
	}
}

/* What had to wait while curl was at work: ended calls, new and cancelled
 * ones.  Callbacks may start and cancel further calls. */
static void
api_after(struct api *h)
{
	const CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(h->multi, &left)) != NULL) {
		char *private = NULL;
		struct api_call *c;

		if (m->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(
		    m->easy_handle, CURLINFO_PRIVATE, &private);
		memcpy(&c, &private, sizeof(c));
		call_finish(c, m->data.result);
	}
	api_add_new(h);
}

static void
again_cb(void *arg)
{
	struct api *h = arg;
	struct api_call *c;

	TAILQ_FOREACH (c, &h->calls, link)
		if (c->stage == CALL_WAITS)
			c->stage = CALL_NEW;
	api_add_new(h);
}

/* ---- public */

struct api *
api_new(struct event_base *base, const struct api_server *server)
{
	struct api *h = xcalloc(1, sizeof(*h));

	if (curl_global_init(CURL_GLOBAL_NOTHING) != 0)
		fatal(EXIT_MEMORY, "libcurl does not start");
	h->base = base;
	h->server = server;
	h->multi = curl_multi_init();
	h->timer = timer_new(base, timer_fired_cb, h);
	h->again = timer_new(base, again_cb, h);
	h->to = curl_slist_append(NULL, CONNECT_TO);
	if (h->multi == NULL || h->to == NULL)
		fatal(EXIT_MEMORY, "no memory for libcurl");
	TAILQ_INIT(&h->calls);
	api_set_socket(h, "");
	(void)curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, socket_cb);
	(void)curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
	(void)curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, timer_cb);
	(void)curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
	(void)curl_multi_setopt(
	    h->multi, CURLMOPT_MAXCONNECTS, (long)KEPT_CONNECTIONS);
	return h;
}

static void
secret_free(char *s)
{
	if (s != NULL)
		explicit_bzero(s, strlen(s));
	free(s);
}

void
api_renew_tls(struct api *h, const struct api_tls *tls)
{
	free(h->ca);
	free(h->cert);
	secret_free(h->key);
	h->ca = h->cert = h->key = NULL;
	if (tls == NULL)
		return;
	h->is_pem = tls->is_pem;
	h->ca = xstrdup(tls->ca);
	if (tls->cert != NULL) {
		h->cert = xstrdup(tls->cert);
		h->key = xstrdup(tls->key);
	}
}

struct api_place {
	const char *where; /* for texts */
	const char *url, *host, *prefix;
};

/* Where calls go that are started from now on. */
static void
api_set_where(
    struct api *h, const struct api_place *at, const struct api_tls *tls)
{
	free(h->where);
	free(h->url);
	free(h->host);
	free(h->prefix);
	h->where = xstrdup(at->where);
	h->url = xstrdup(at->url);
	h->host = xasprintf("Host: %s", at->host);
	h->prefix = xstrdup(at->prefix);
	h->peer_expires_ms = 0;
	api_renew_tls(h, tls);
	dialer_free(h->dialer);
	h->dialer = NULL;
}

void
api_free(struct api *h)
{
	struct api_call *c;

	if (h == NULL)
		return;
	h->freeing = true;
	while ((c = TAILQ_FIRST(&h->calls)) != NULL) {
		if (c->cancelled || c->stage == CALL_STREAM)
			call_free(c);
		else
			call_end(c, CURLE_ABORTED_BY_CALLBACK);
	}
	(void)curl_multi_cleanup(h->multi);
	timer_free(h->timer);
	timer_free(h->again);
	curl_slist_free_all(h->to);
	curl_global_cleanup();
	api_renew_tls(h, NULL);
	dialer_free(h->dialer);
	free(h->where);
	free(h->url);
	free(h->host);
	free(h->prefix);
	free(h);
}

void
api_set_socket(struct api *h, const char *path)
{
	api_set_where(
	    h, &(struct api_place){path, UNIX_URL, "localhost", ""}, NULL);
	h->is_unix = true;
}

int
api_set_address(
    struct api *h, const char *url, const struct api_tls *tls, struct err *e)
{
	AUTO(auto_free) char *text = NULL, *host = NULL;
	struct server_address at;

	if (server_address_parse(url, &at, e) != 0)
		return ERR_INVAL;
	if (at.is_https && tls == NULL)
		return err_set(e, ERR_INVAL, "\"%.100s\" without TLS", url);
	host = server_address_authority(&at, NULL);
	text = server_address_url(
	    &at, tls != NULL, tls != NULL ? tls->name : NULL);
	api_set_where(h, &(struct api_place){url, text, host, at.prefix}, tls);
	h->is_unix = false;
	h->dialer = dialer_new(h->base, at.name, at.port, dialed_cb, h);
	return 0;
}

int64_t
api_peer_expires_ms(const struct api *h)
{
	return h->peer_expires_ms;
}

/* A blank or a control character would end the path, or its line. */
static bool
path_is_plain(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s <= ' ' || *s == 0x7f)
			return false;
	return true;
}

static void
call_add_header(struct api_call *c, const char *line)
{
	struct curl_slist *all = curl_slist_append(c->headers, line);

	if (all == NULL)
		fatal(EXIT_MEMORY, "no memory for libcurl");
	c->headers = all;
}

static void
call_set_headers(struct api_call *c, const struct api_ask *ask)
{
	call_add_header(c, c->h->host);
	for (const char *const *p = ask->headers; p != NULL && *p != NULL; p++)
		call_add_header(c, *p);
}

static void
call_set_body(struct api_call *c, const struct api_ask *ask)
{
	char type[128];

	if (strcmp(ask->method, "GET") == 0)
		return;
	(void)snprintf(type, sizeof(type), "Content-Type: %s",
	    ask->content_type != NULL ? ask->content_type : "application/json");
	call_add_header(c, type);
	/* Else curl waits a second for "100 Continue" before a large body. */
	call_add_header(c, "Expect:");
	c->body = xmemdup(ask->body, ask->body_len);
	c->body_len = ask->body_len;
	(void)curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
	(void)curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, ask->method);
	(void)curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, (char *)c->body);
	(void)curl_easy_setopt(
	    c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->body_len);
}

static bool
is_safe_to_repeat(const struct api_call *c)
{
	return c->protocol == NULL &&
	    (strcmp(c->method, "GET") == 0 ||
		strcmp(c->method, "DELETE") == 0 ||
		strcmp(c->method, "PUT") == 0);
}

static void
call_set_dialer(struct api_call *c)
{
	void *self = c;

	(void)curl_easy_setopt(c->curl, CURLOPT_CONNECT_TO, c->h->to);
	(void)curl_easy_setopt(c->curl, CURLOPT_OPENSOCKETFUNCTION, open_cb);
	(void)curl_easy_setopt(c->curl, CURLOPT_OPENSOCKETDATA, self);
	(void)curl_easy_setopt(c->curl, CURLOPT_SOCKOPTFUNCTION, opened_cb);
}

static bool
headers_are_plain(const struct curl_slist *s)
{
	for (; s != NULL; s = s->next)
		for (const char *p = s->data; *p != '\0'; p++)
			if ((unsigned char)*p < ' ' || *p == 0x7f)
				return false;
	return true;
}

static void
call_set_server(struct api_call *c)
{
	const struct api *h = c->h;
	CURL *curl = c->curl;

	c->is_unix = h->is_unix;
	/* Without a URL the call ends with CURLE_URL_MALFORMAT. */
	(void)curl_easy_setopt(curl, CURLOPT_URL,
	    path_is_plain(c->path) && headers_are_plain(c->headers) ? h->url :
								      "");
	(void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	if (h->is_unix)
		(void)curl_easy_setopt(
		    curl, CURLOPT_UNIX_SOCKET_PATH, h->where);
	(void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
	    h->is_unix ? (long)CONNECT_MS : (long)DIAL_CONNECT_MS);
	if (h->dialer != NULL)
		call_set_dialer(c);
	if (h->ca != NULL)
		certs_set_options(curl,
		    &(struct api_tls){.ca = h->ca,
			.cert = h->cert,
			.key = h->key,
			.is_pem = h->is_pem});
}

static void
call_set_options(struct api_call *c)
{
	CURL *curl = c->curl;
	void *self = c;

	(void)curl_easy_setopt(curl, CURLOPT_REQUEST_TARGET, c->path);
	(void)curl_easy_setopt(
	    curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, c->error);
	(void)curl_easy_setopt(
	    curl, CURLOPT_FRESH_CONNECT, is_safe_to_repeat(c) ? 0L : 1L);
	(void)curl_easy_setopt(
	    curl, CURLOPT_CONNECT_ONLY, c->protocol != NULL ? 1L : 0L);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, write_cb);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, self);
	(void)curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, header_cb);
	(void)curl_easy_setopt(curl, CURLOPT_HEADERDATA, self);
	(void)curl_easy_setopt(curl, CURLOPT_PRIVATE, self);
	(void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, c->headers);
}

struct api_call *
api_start(struct api *h, const struct api_ask *ask)
{
	struct api_call *c = xcalloc(1, sizeof(*c));

	c->h = h;
	c->dialed = -1;
	c->method = ask->method;
	c->path = xasprintf("%s%.*s", h->prefix, API_PATH_MAX, ask->path);
	c->prefix_len = strlen(h->prefix);
	c->protocol = ask->upgrade != NULL ? xstrdup(ask->upgrade) : NULL;
	c->timeout_ms = ask->timeout_ms;
	c->started_us = clock_mono_us();
	c->on_line = ask->on_line;
	buf_init(&c->line, ask->max_line != 0 ? ask->max_line : API_LINE_MAX);
	c->on_done = ask->on_done;
	c->arg = ask->arg;
	c->max_body = ask->max_body != 0 ? ask->max_body : BODY_MAX;
	buf_init(&c->in, c->max_body + 1);
	buf_init(&c->head, API_HEADERS_MAX + 1);
	c->curl = curl_easy_init();
	if (c->curl == NULL)
		fatal(EXIT_MEMORY, "no memory for libcurl");
	call_set_headers(c, ask);
	call_set_body(c, ask);
	call_set_server(c);
	call_set_options(c);
	TAILQ_INSERT_TAIL(&h->calls, c, link);
	if (h->depth == 0 && !h->freeing)
		api_add_new(h);
	return c;
}

void
api_cancel(struct api_call *c)
{
	struct api *h = c->h;

	c->cancelled = true;
	if (h->depth == 0 && !h->freeing)
		call_free(c);
}

char *
api_escape(const char *s)
{
	char *escaped = curl_easy_escape(NULL, s, 0);
	char *out = xstrdup(escaped != NULL ? escaped : "");

	curl_free(escaped);
	return out;
}
