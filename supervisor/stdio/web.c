/*
 * curl tells which sockets and what time it waits for (socket_cb, timer_cb),
 * and the loop tells curl when they are there (act).
 *
 * While curl is at work (depth > 0) none of its functions may be called that
 * start or end a transfer. So calls that are started or cancelled in a
 * callback are only noted, and settle does what was put off when curl has
 * returned.
 */
#include "supervisor/stdio/web.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>
#include <sys/queue.h>

#include <curl/curl.h>
#include <event2/event.h>

#include "common/conf.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"

#define CONNECT_MS 5000L
#define KEEPALIVE_S 30L

struct web_call {
	struct web *w;
	CURL *curl;
	struct curl_slist *headers;
	const struct web_ops *ops;
	void *arg;
	size_t nheaders;
	char session[WEB_SESSION_MAX + 1];
	char why[CURL_ERROR_SIZE];
	bool is_added; /* curl has it */
	bool is_held;  /* curl waits for web_go_on */
	bool is_cancelled;
	TAILQ_ENTRY(web_call) link;
};
TAILQ_HEAD(web_calls, web_call);

struct web_watch { /* of a socket */
	struct web *w;
	struct event *event;
	struct web_watch *next; /* of those that are not used any more */
};

struct web {
	struct event_base *base;
	CURLM *multi;
	struct timer *timer;
	struct web_watch *gone;
	char *url;
	char *socket_path; /* NULL: TCP */
	char *ca_file;     /* NULL: the system's authorities */
	char *bearer;      /* a header line; NULL: none */
	unsigned int depth;
	bool is_held;
	struct web_calls calls;
};

static void settle(struct web *w);

/* ---- curl's wishes about sockets and time */

static void
act(struct web *w, curl_socket_t fd, int what)
{
	int running;

	w->depth++;
	(void)curl_multi_socket_action(w->multi, fd, what, &running);
	w->depth--;
	settle(w);
}

static void
watch_cb(evutil_socket_t fd, short what, void *arg)
{
	const struct web_watch *t = arg;

	act(t->w, fd,
	    ((what & EV_READ) != 0 ? CURL_CSELECT_IN : 0) |
		((what & EV_WRITE) != 0 ? CURL_CSELECT_OUT : 0));
}

/* A socket whose wish changes gets a new event: the old one may be in its
 * callback. */
static int
socket_cb(CURL *curl, curl_socket_t fd, int what, void *arg, void *sockp)
{
	struct web_watch *t = sockp;
	struct web *w = arg;
	short mask = EV_PERSIST;

	(void)curl;
	if (t != NULL) {
		(void)event_del(t->event);
		t->next = w->gone;
		w->gone = t;
	}
	(void)curl_multi_assign(w->multi, fd, NULL);
	if (what == CURL_POLL_REMOVE)
		return 0;
	if ((what & CURL_POLL_IN) != 0)
		mask |= EV_READ;
	if ((what & CURL_POLL_OUT) != 0)
		mask |= EV_WRITE;
	t = xcalloc(1, sizeof(*t));
	t->w = w;
	t->event = event_new(w->base, fd, mask, watch_cb, t);
	if (t->event == NULL || event_add(t->event, NULL) == -1)
		fatal(EXIT_MEMORY, "no event");
	(void)curl_multi_assign(w->multi, fd, t);
	return 0;
}

static int
timer_cb(CURLM *multi, long ms, void *arg)
{
	struct web *w = arg;

	(void)multi;
	if (ms < 0)
		timer_stop(w->timer);
	else
		timer_set_ms(w->timer, (uint64_t)ms);
	return 0;
}

static void
time_cb(void *arg)
{
	act(arg, CURL_SOCKET_TIMEOUT, 0);
}

/* Of sockets that curl has done with; none is in its callback now. */
static void
free_gone(struct web *w)
{
	struct web_watch *t;

	while ((t = w->gone) != NULL) {
		w->gone = t->next;
		event_free(t->event);
		free(t);
	}
}

/* ---- what comes in */

static size_t
body_cb(char *p, size_t size, size_t n, void *arg)
{
	struct web_call *c = arg;

	n *= size;
	if (c->is_cancelled)
		return 0;
	if (c->w->is_held) { /* curl gives these bytes again */
		c->is_held = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (c->ops->on_bytes(c, p, n, c->arg) != 0)
		return 0;
	return c->is_cancelled ? 0 : n;
}

static void
keep_session(struct web_call *c, const char *line, size_t n)
{
	static const char name[] = "Mcp-Session-Id:";
	size_t at = sizeof(name) - 1;

	if (n < at || strncasecmp(line, name, at) != 0)
		return;
	while (at < n && (line[at] == ' ' || line[at] == '\t'))
		at++;
	while (n > at && line[n - 1] <= ' ')
		n--;
	for (size_t i = at; i < n; i++)
		if (line[i] < '!' || line[i] > '~')
			return; /* MCP 2025-03-26, session management */
	if (n - at <= WEB_SESSION_MAX) {
		memcpy(c->session, line + at, n - at);
		c->session[n - at] = '\0';
	}
}

// NOLINTBEGIN(readability-non-const-parameter): curl's type
static size_t
header_cb(char *p, size_t size, size_t n, void *arg)
{
	struct web_call *c = arg;

	n *= size;
	c->nheaders += n;
	keep_session(c, p, n);
	return c->nheaders > WEB_HEADERS_MAX ? 0 : n;
}
// NOLINTEND(readability-non-const-parameter)

long
web_status(const struct web_call *c)
{
	long status = 0;

	(void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

bool
web_is_stream(const struct web_call *c)
{
	static const char type[] = "text/event-stream";
	char *found = NULL;

	(void)curl_easy_getinfo(c->curl, CURLINFO_CONTENT_TYPE, &found);
	return found != NULL &&
	    strncasecmp(found, type, sizeof(type) - 1) == 0 &&
	    strchr("; \t", found[sizeof(type) - 1]) != NULL;
}

const char *
web_session(const struct web_call *c)
{
	return c->session;
}

/* ---- the end of a call */

static void
call_free(struct web_call *c)
{
	TAILQ_REMOVE(&c->w->calls, c, link);
	if (c->is_added)
		(void)curl_multi_remove_handle(c->w->multi, c->curl);
	curl_easy_cleanup(c->curl);
	curl_slist_free_all(c->headers);
	free(c);
}

/* The queue of a Unix socket is full: curl takes EAGAIN for a connection under
 * way, which cannot be sent on. */
static bool
met_full_queue(const struct web_call *c, CURLcode code)
{
	long number = 0;

	(void)curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &number);
	return c->w->socket_path != NULL && code == CURLE_SEND_ERROR &&
	    number == ENOTCONN;
}

static enum web_end
end_of(const struct web_call *c, CURLcode code)
{
	curl_off_t sent_us = 0;

	if (code == CURLE_OK)
		return WEB_WHOLE;
	if (code == CURLE_PEER_FAILED_VERIFICATION ||
	    code == CURLE_SSL_CACERT_BADFILE)
		return WEB_REFUSED;
	(void)curl_easy_getinfo(c->curl, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
	return sent_us == 0 || code == CURLE_COULDNT_CONNECT ||
		met_full_queue(c, code) ?
	    WEB_NOBODY :
	    WEB_BROKEN;
}

static void
call_end(struct web_call *c, CURLcode code)
{
	const char *why = c->why[0] != '\0' ? c->why : curl_easy_strerror(code);
	char text[WEB_WHY_MAX + 1];

	if (!c->is_cancelled) {
		(void)snprintf(
		    text, sizeof(text), "%s", code == CURLE_OK ? "" : why);
		c->is_cancelled = true; /* not by on_end any more */
		c->ops->on_end(c, end_of(c, code), text, c->arg);
	}
	call_free(c);
}

static void
call_add(struct web_call *c)
{
	c->is_added = true;
	if (curl_multi_add_handle(c->w->multi, c->curl) != CURLM_OK)
		fatal(EXIT_MEMORY, "curl takes no more requests");
}

static void
end_finished(struct web *w)
{
	const CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(w->multi, &left)) != NULL) {
		char *private = NULL;
		struct web_call *c;

		if (m->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(
		    m->easy_handle, CURLINFO_PRIVATE, &private);
		memcpy(&c, &private, sizeof(c));
		call_end(c, m->data.result);
	}
}

/* What had to wait while curl was at work. */
static void
settle(struct web *w)
{
	struct web_call *c, *next;

	if (w->depth > 0)
		return;
	w->depth++; /* callbacks start and cancel calls */
	end_finished(w);
	w->depth--;
	for (c = TAILQ_FIRST(&w->calls); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->is_cancelled)
			call_free(c);
		else if (!c->is_added)
			call_add(c);
	}
	free_gone(w);
}

/* ---- a request */

static void
set_what(struct web_call *c, const struct web_ask *ask)
{
	static const char *const methods[] = {
	    [WEB_POST] = "POST", [WEB_GET] = "GET", [WEB_DELETE] = "DELETE"};

	for (size_t i = 0; ask->headers[i] != NULL; i++)
		c->headers = curl_slist_append(c->headers, ask->headers[i]);
	if (c->w->bearer != NULL)
		c->headers = curl_slist_append(c->headers, c->w->bearer);
	/* Else it is waited a second for "100 Continue". */
	c->headers = curl_slist_append(c->headers, "Expect:");
	(void)curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
	(void)curl_easy_setopt(c->curl, CURLOPT_URL, c->w->url);
	if (ask->method == WEB_POST) {
		(void)curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
		(void)curl_easy_setopt(
		    c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->len);
		(void)curl_easy_setopt(
		    c->curl, CURLOPT_COPYPOSTFIELDS, ask->body);
	} else {
		(void)curl_easy_setopt(
		    c->curl, CURLOPT_CUSTOMREQUEST, methods[ask->method]);
	}
}

static void
set_how(struct web_call *c)
{
	CURL *h = c->curl;
	void *self = c;

	(void)curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(
	    h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(h, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(h, CURLOPT_FRESH_CONNECT, 1L);
	(void)curl_easy_setopt(h, CURLOPT_FORBID_REUSE, 1L);
	(void)curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	(void)curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl_easy_setopt(h, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S);
	(void)curl_easy_setopt(h, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S);
	(void)curl_easy_setopt(h, CURLOPT_USERAGENT, "mcp-sandboxd-stdio");
	(void)curl_easy_setopt(
	    h, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (c->w->socket_path != NULL)
		(void)curl_easy_setopt(
		    h, CURLOPT_UNIX_SOCKET_PATH, c->w->socket_path);
	if (c->w->ca_file != NULL)
		(void)curl_easy_setopt(h, CURLOPT_CAINFO, c->w->ca_file);
	(void)curl_easy_setopt(h, CURLOPT_ERRORBUFFER, c->why);
	(void)curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, body_cb);
	(void)curl_easy_setopt(h, CURLOPT_WRITEDATA, self);
	(void)curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, header_cb);
	(void)curl_easy_setopt(h, CURLOPT_HEADERDATA, self);
	(void)curl_easy_setopt(h, CURLOPT_PRIVATE, self);
}

struct web_call *
web_start(struct web *w, const struct web_ask *ask)
{
	struct web_call *c = xcalloc(1, sizeof(*c));

	c->w = w;
	c->ops = ask->ops;
	c->arg = ask->arg;
	c->curl = curl_easy_init();
	if (c->curl == NULL)
		fatal(EXIT_MEMORY, "no memory for libcurl");
	set_what(c, ask);
	set_how(c);
	TAILQ_INSERT_TAIL(&w->calls, c, link);
	if (w->depth == 0)
		call_add(c);
	return c;
}

void
web_cancel(struct web_call *c)
{
	c->is_cancelled = true;
	if (c->w->depth == 0)
		call_free(c);
}

void
web_hold(struct web *w)
{
	w->is_held = true;
}

/* curl may give what it kept inside curl_easy_pause, and that may be held
 * again. */
void
web_go_on(struct web *w)
{
	struct web_call *c;

	w->is_held = false;
	w->depth++;
	TAILQ_FOREACH (c, &w->calls, link)
		if (c->is_held && !w->is_held) {
			c->is_held = false;
			(void)curl_easy_pause(c->curl, CURLPAUSE_CONT);
		}
	w->depth--;
	act(w, CURL_SOCKET_TIMEOUT, 0);
}

/* ---- a server */

static struct web *
web_new(struct event_base *base)
{
	struct web *w = xcalloc(1, sizeof(*w));

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
		fatal(EXIT_MEMORY, "libcurl does not start");
	w->base = base;
	w->multi = curl_multi_init();
	if (w->multi == NULL)
		fatal(EXIT_MEMORY, "no memory for libcurl");
	w->timer = timer_new(base, time_cb, w);
	TAILQ_INIT(&w->calls);
	(void)curl_multi_setopt(w->multi, CURLMOPT_SOCKETFUNCTION, socket_cb);
	(void)curl_multi_setopt(w->multi, CURLMOPT_SOCKETDATA, w);
	(void)curl_multi_setopt(w->multi, CURLMOPT_TIMERFUNCTION, timer_cb);
	(void)curl_multi_setopt(w->multi, CURLMOPT_TIMERDATA, w);
	return w;
}

static int
check_url(const char *url, struct err *e)
{
	char *user = NULL, *fragment = NULL;
	CURLU *u = curl_url();
	CURLUcode code;

	if (u == NULL)
		fatal(EXIT_MEMORY, "no memory for libcurl");
	code = curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME);
	(void)curl_url_get(u, CURLUPART_USER, &user, 0);
	(void)curl_url_get(u, CURLUPART_FRAGMENT, &fragment, 0);
	if (code == CURLUE_OK && strncasecmp(url, "http://", 7) != 0 &&
	    strncasecmp(url, "https://", 8) != 0)
		code = CURLUE_UNSUPPORTED_SCHEME;
	curl_url_cleanup(u);
	if (code != CURLUE_OK || user != NULL || fragment != NULL)
		(void)err_set(e, ERR_INVAL,
		    "MCP_SANDBOXD_URL: want the http or https URL of an MCP "
		    "endpoint, such as http://127.0.0.1:8080/mcp, without user "
		    "and fragment; a token goes into MCP_SANDBOXD_TOKEN");
	else
		e->code = 0;
	curl_free(user);
	curl_free(fragment);
	return e->code;
}

int
web_new_url(struct event_base *base, const struct web_site *site,
    struct web **out, struct err *e)
{
	struct web *w;

	if (check_url(site->url, e) != 0)
		return e->code;
	if (site->ca_file[0] != '\0' && access(site->ca_file, R_OK) != 0)
		return err_set(e, ERR_INVAL, "MCP_SANDBOXD_CA_FILE: %.200s: %s",
		    site->ca_file, strerror(errno));
	w = web_new(base);
	w->url = xstrdup(site->url);
	if (site->ca_file[0] != '\0')
		w->ca_file = xstrdup(site->ca_file);
	if (site->token != NULL)
		w->bearer = xasprintf("Authorization: Bearer %s", site->token);
	if (site->token != NULL && !conf_is_safe_url(site->url))
		log_warn("MCP_SANDBOXD_URL is http, and not on this machine: "
			 "the token goes over the network as it is");
	*out = w;
	return 0;
}

struct web *
web_new_socket(
    struct event_base *base, const char *socket_path, const char *path)
{
	struct web *w = web_new(base);

	w->url = xasprintf("http://localhost%s", path);
	w->socket_path = xstrdup(socket_path);
	return w;
}

void
web_free(struct web *w)
{
	struct web_call *c;

	while ((c = TAILQ_FIRST(&w->calls)) != NULL)
		call_free(c);
	free_gone(w);
	(void)curl_multi_cleanup(w->multi);
	free_gone(w);
	timer_free(w->timer);
	if (w->bearer != NULL)
		explicit_bzero(w->bearer, strlen(w->bearer));
	free(w->bearer);
	free(w->url);
	free(w->ca_file);
	free(w->socket_path);
	free(w);
	curl_global_cleanup();
}
