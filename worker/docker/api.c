/*
 * curl tells which sockets and what time it waits for (socket_cb, timer_cb),
 * and the loop tells curl when they are there (api_act).
 *
 * While curl is at work (depth > 0) none of its functions may be called that
 * start or end a transfer.  So calls that are started or cancelled in a
 * callback are only noted, and api_after does what was put off when curl has
 * returned: it ends what is finished, then adds what is new.
 */
#include "worker/docker/api.h"

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
#include "worker/docker/operation.h"
#include "worker/later.h"

#define CONNECT_MS 2000
#define KEPT_CONNECTIONS 4
#define BODY_MAX 65536 /* of calls that name no limit */

struct api_call {
	struct api *h;
	CURL *curl;
	struct curl_slist *headers;
	char *path; /* for texts */
	const char *method;
	uint8_t *body;
	uint32_t timeout_ms;
	uint64_t started_us;
	struct buf in;
	size_t nheaders;
	bool too_large;
	bool added; /* curl has it */
	bool cancelled;
	void (*on_data)(const uint8_t *, size_t, void *);
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
	CURLM *multi;
	struct timer *timer;
	char *socket;
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

static int
socket_cb(CURL *curl, curl_socket_t fd, int what, void *arg, void *sockp)
{
	struct api *h = arg;
	struct api_sock *s = sockp;
	short mask = EV_PERSIST;

	(void)curl;
	if (what == CURL_POLL_REMOVE) {
		if (s != NULL) {
			(void)event_del(s->ev);
			/* perhaps in its callback now */
			later(h->base, sock_free, s);
			(void)curl_multi_assign(h->multi, fd, NULL);
		}
		return 0;
	}
	if ((what & CURL_POLL_IN) != 0)
		mask |= EV_READ;
	if ((what & CURL_POLL_OUT) != 0)
		mask |= EV_WRITE;
	if (s == NULL) {
		s = xcalloc(1, sizeof(*s));
		s->h = h;
		s->ev = event_new(h->base, fd, mask, sock_ready_cb, s);
		if (s->ev == NULL)
			fatal(EXIT_MEMORY, "no memory for an event");
		(void)curl_multi_assign(h->multi, fd, s);
	} else {
		(void)event_del(s->ev);
		(void)event_assign(s->ev, h->base, fd, mask, sock_ready_cb, s);
	}
	(void)event_add(s->ev, NULL);
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

static size_t
write_cb(char *p, size_t size, size_t n, void *arg)
{
	struct api_call *c = arg;
	long status = 0;

	n *= size;
	if (c->cancelled)
		return 0;
	(void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	if (c->on_data != NULL && status >= 200 && status < 300) {
		c->on_data((const uint8_t *)p, n, c->arg);
		return n;
	}
	if (buf_append(&c->in, p, n) != 0) {
		c->too_large = true;
		return 0;
	}
	return n;
}

// NOLINTBEGIN(readability-non-const-parameter): curl's type
static size_t
header_cb(char *p, size_t size, size_t n, void *arg)
{
	struct api_call *c = arg;

	(void)p;
	n *= size;
	c->nheaders += n;
	if (c->nheaders > API_HEADERS_MAX) {
		c->too_large = true;
		return 0;
	}
	return n;
}
// NOLINTEND(readability-non-const-parameter)

/* ---- the end of a call */

static void
call_free(struct api_call *c)
{
	TAILQ_REMOVE(&c->h->calls, c, link);
	if (c->added)
		(void)curl_multi_remove_handle(c->h->multi, c->curl);
	curl_easy_cleanup(c->curl);
	curl_slist_free_all(c->headers);
	buf_clear(&c->in);
	free(c->path);
	free(c->body);
	free(c);
}

/* A text that says what a person can do about it. */
static int
call_explain(struct api_call *c, CURLcode code, struct err *e)
{
	long sys = 0;

	(void)curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &sys);
	if (c->too_large)
		return err_set(e, ERR_LIMIT,
		    "the engine's answer to %s %.100s is larger than %zu bytes",
		    c->method, c->path, c->in.max);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_set(e, ERR_BACKEND,
		    "the engine at %s did not answer %s %.100s within %u ms",
		    c->h->socket, c->method, c->path, c->timeout_ms);
	if (code == CURLE_COULDNT_CONNECT) {
		if (sys == EACCES || sys == EPERM)
			return err_set(e, ERR_BACKEND,
			    "no permission on the engine's socket %s: let the "
			    "worker's user into its group (usually docker)",
			    c->h->socket);
		return err_set(e, ERR_BACKEND,
		    "no Docker engine at %s: %s; start it or set DOCKER_HOST",
		    c->h->socket, sys != 0 ? strerror((int)sys) : "no answer");
	}
	return err_set(e, ERR_BACKEND,
	    "the engine at %s broke off its answer to %s %.100s: %s",
	    c->h->socket, c->method, c->path, curl_easy_strerror(code));
}

static void
call_end(struct api_call *c, CURLcode code)
{
	void (*on_done)(const struct api_answer *, void *) = c->on_done;
	struct api_answer a = {0};
	void *arg = c->arg;
	struct err e;
	struct buf in;

	(void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &a.status);
	a.took_us = clock_mono_us() - c->started_us;
	operation_ended(operation_of(c->method, c->path),
	    code == CURLE_OK ? a.status : 0, a.took_us);
	if (c->h->freeing)
		a.rc = err_set(&e, ERR_WRONG_STATE, "the worker is ending");
	else if (code != CURLE_OK)
		a.rc = call_explain(c, code, &e);
	a.why = &e;
	in = c->in;
	buf_init(&c->in, 0);
	call_free(c);
	if (a.rc == 0) {
		uint8_t *end;

		buf_set_max(&in, in.max + 1); /* room for the NUL */
		end = buf_reserve(&in, 1);
		if (end == NULL)
			fatal(EXIT_MEMORY, "no room for an answer's end");
		*end = '\0';
		a.body = (const char *)buf_data(&in);
		a.len = buf_len(&in);
	}
	on_done(&a, arg);
	buf_clear(&in);
}

static void
api_add_waiting(struct api *h)
{
	struct api_call *c, *next;

	for (c = TAILQ_FIRST(&h->calls); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->cancelled) {
			call_free(c);
			continue;
		}
		if (c->added)
			continue;
		c->added = true;
		if (curl_multi_add_handle(h->multi, c->curl) != CURLM_OK)
			fatal(EXIT_MEMORY, "curl takes no more requests");
	}
}

/* What had to wait while curl was at work: ended calls, new and cancelled
 * ones.  Callbacks may start and cancel further calls. */
static void
api_after(struct api *h)
{
	struct api_call *c;
	CURLMsg *m;
	int left;

	if (h->depth > 0)
		return;
	while ((m = curl_multi_info_read(h->multi, &left)) != NULL) {
		char *private = NULL;
		CURLcode code;

		if (m->msg != CURLMSG_DONE)
			continue;
		code = m->data.result;
		(void)curl_easy_getinfo(
		    m->easy_handle, CURLINFO_PRIVATE, &private);
		memcpy(&c, &private, sizeof(c));
		if (c->cancelled)
			call_free(c);
		else
			call_end(c, code);
	}
	api_add_waiting(h);
}

/* ---- public */

struct api *
api_new(struct event_base *base)
{
	struct api *h = xcalloc(1, sizeof(*h));

	if (curl_global_init(CURL_GLOBAL_NOTHING) != 0)
		fatal(EXIT_MEMORY, "libcurl does not start");
	h->base = base;
	h->multi = curl_multi_init();
	h->timer = timer_new(base, timer_fired_cb, h);
	if (h->multi == NULL)
		fatal(EXIT_MEMORY, "no memory for libcurl");
	h->socket = xstrdup("");
	TAILQ_INIT(&h->calls);
	(void)curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, socket_cb);
	(void)curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
	(void)curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, timer_cb);
	(void)curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
	(void)curl_multi_setopt(
	    h->multi, CURLMOPT_MAXCONNECTS, (long)KEPT_CONNECTIONS);
	return h;
}

void
api_free(struct api *h)
{
	struct api_call *c;

	if (h == NULL)
		return;
	h->freeing = true;
	while ((c = TAILQ_FIRST(&h->calls)) != NULL) {
		if (c->cancelled)
			call_free(c);
		else
			call_end(c, CURLE_ABORTED_BY_CALLBACK);
	}
	(void)curl_multi_cleanup(h->multi);
	timer_free(h->timer);
	curl_global_cleanup();
	free(h->socket);
	free(h);
}

void
api_set_socket(struct api *h, const char *path)
{
	free(h->socket);
	h->socket = xstrdup(path);
}

static void
call_set_body(struct api_call *c, const struct api_ask *ask)
{
	char type[128];

	if (strcmp(ask->method, "GET") == 0)
		return;
	(void)curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
	(void)curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, ask->method);
	c->body = xmemdup(ask->body, ask->body_len);
	(void)curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, (char *)c->body);
	(void)curl_easy_setopt(
	    c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->body_len);
	(void)snprintf(type, sizeof(type), "Content-Type: %s",
	    ask->content_type != NULL ? ask->content_type : "application/json");
	c->headers = curl_slist_append(c->headers, type);
	/* Else curl waits a second for "100 Continue" before a large body. */
	c->headers = curl_slist_append(c->headers, "Expect:");
	(void)curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
}

static void
call_set_options(struct api_call *c)
{
	CURL *curl = c->curl;
	char url[API_PATH_MAX + 16];
	void *self = c;

	(void)snprintf(url, sizeof(url), "http://engine%s", c->path);
	(void)curl_easy_setopt(curl, CURLOPT_URL, url);
	(void)curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, c->h->socket);
	(void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
	(void)curl_easy_setopt(
	    curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)c->timeout_ms);
	(void)curl_easy_setopt(
	    curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, write_cb);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, self);
	(void)curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, header_cb);
	(void)curl_easy_setopt(curl, CURLOPT_HEADERDATA, self);
	(void)curl_easy_setopt(curl, CURLOPT_PRIVATE, self);
}

struct api_call *
api_start(struct api *h, const struct api_ask *ask)
{
	struct api_call *c = xcalloc(1, sizeof(*c));

	c->h = h;
	c->method = ask->method;
	c->path = xstrndup(ask->path, API_PATH_MAX);
	c->timeout_ms = ask->timeout_ms;
	c->started_us = clock_mono_us();
	c->on_data = ask->on_data;
	c->on_done = ask->on_done;
	c->arg = ask->arg;
	buf_init(&c->in, ask->max_body != 0 ? ask->max_body : BODY_MAX);
	c->curl = curl_easy_init();
	if (c->curl == NULL)
		fatal(EXIT_MEMORY, "no memory for libcurl");
	call_set_options(c);
	call_set_body(c, ask);
	TAILQ_INSERT_TAIL(&h->calls, c, link);
	if (h->depth == 0 && !h->freeing)
		api_add_waiting(h);
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

int
api_escape(struct buf *b, const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM"
				    "NOPQRSTUVWXYZ0123456789-._~";

	for (; *s != '\0'; s++) {
		int rc = strchr(plain, *s) != NULL ?
		    buf_append(b, s, 1) :
		    buf_printf(b, "%%%02X", (unsigned char)*s);

		if (rc != 0)
			return -1;
	}
	return 0;
}
