/*
 * curl says which sockets and what time it waits for (socket_cb, timer_cb), and
 * the loop tells curl when they are there (act).
 *
 * The name is looked up first (resolver.h), and its addresses are given to
 * curl: a thread of curl's own that hangs in a look-up keeps the loop when its
 * request has had its time, since curl waits for it.  Each address comes by
 * open_cb before a socket is made for it: what is checked there is what is
 * connected to, whatever the name means a moment later.  Why a host could not
 * be reached is not told apart (TEXT_AWAY): a receiver that is in a private
 * network, one that does not listen there, and a name that is nobody's look the
 * same to who set the webhook, who else could map our network by them.
 */
#include "supervisor/courier/post.h"

#include <arpa/inet.h>
#include <stdio.h>

#include <curl/curl.h>
#include <event2/event.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/outside.h"
#include "common/timer.h"
#include "common/weburl.h"
#include "common/xmalloc.h"
#include "supervisor/courier/resolver.h"

#define KEPT_CONNECTIONS 16L
#define KEPT_S 30L
#define TEXT_AWAY "its host cannot be reached, or may not be (WEBHOOK_ALLOW)"

struct post {
	struct postman *m;
	CURL *curl;
	struct curl_slist *headers;
	struct curl_slist *addrs; /* for CURLOPT_RESOLVE */
	uint64_t id;
	uint64_t until_ms;
	char *host;
	uint32_t port;
	uint8_t *body;
	size_t nbody, nheaders; /* bytes of the answer */
	const struct outside_allow *allow;
};

struct post_watch { /* a socket of curl's */
	struct event *event;
	struct postman *m;
	struct post_watch *next; /* of those that are not watched any more */
};

struct postman {
	struct event_base *base;
	struct resolver *names;
	CURLM *multi;
	struct timer *timer;
	char *ca_file;
	post_done_cb done;
	void *arg;
	uint32_t count;
	struct post_watch *gone; /* freed when curl has returned */
};

/* ---- curl's wishes about sockets and time */

static void
free_gone(struct postman *m)
{
	while (m->gone != NULL) {
		struct post_watch *w = m->gone;

		m->gone = w->next;
		event_free(w->event);
		free(w);
	}
}

static void finish_all(struct postman *m);

static void
act(struct postman *m, curl_socket_t s, int what)
{
	int running;

	(void)curl_multi_socket_action(m->multi, s, what, &running);
	finish_all(m);
	free_gone(m);
}

static void
watch_cb(evutil_socket_t fd, short what, void *arg)
{
	const struct post_watch *w = arg;

	act(w->m, fd,
	    ((what & EV_READ) != 0 ? CURL_CSELECT_IN : 0) |
		((what & EV_WRITE) != 0 ? CURL_CSELECT_OUT : 0));
}

static int
socket_cb(CURL *curl, curl_socket_t fd, int what, void *arg, void *sockp)
{
	struct postman *m = arg;
	struct post_watch *w = sockp;
	short mask = EV_PERSIST;

	(void)curl;
	if (w != NULL) {
		(void)event_del(w->event);
		w->next = m->gone;
		m->gone = w;
	}
	(void)curl_multi_assign(m->multi, fd, NULL);
	if (what == CURL_POLL_REMOVE)
		return 0;
	if ((what & CURL_POLL_IN) != 0)
		mask |= EV_READ;
	if ((what & CURL_POLL_OUT) != 0)
		mask |= EV_WRITE;
	w = xcalloc(1, sizeof(*w));
	w->m = m;
	w->event = event_new(m->base, fd, mask, watch_cb, w);
	if (w->event == NULL || event_add(w->event, NULL) == -1)
		fatal(EXIT_MEMORY, "no event");
	(void)curl_multi_assign(m->multi, fd, w);
	return 0;
}

static int
timer_cb(CURLM *multi, long ms, void *arg)
{
	struct postman *m = arg;

	(void)multi;
	if (ms < 0)
		timer_stop(m->timer);
	else
		timer_set_ms(m->timer, (uint64_t)ms);
	return 0;
}

static void
time_cb(void *arg)
{
	act(arg, CURL_SOCKET_TIMEOUT, 0);
}

/* ---- one request */

static curl_socket_t
open_cb(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
	const struct post *p = arg;
	struct netaddr a = netaddr_from_sockaddr(&to->addr);

	if (purpose != CURLSOCKTYPE_IPCXN ||
	    (p->allow != NULL && !outside_may_reach(p->allow, p->host, &a)))
		return CURL_SOCKET_BAD;
	return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

// NOLINTBEGIN(readability-non-const-parameter): curl's types
static size_t
body_cb(char *bytes, size_t size, size_t n, void *arg)
{
	struct post *p = arg;

	(void)bytes;
	p->nbody += size * n;
	return p->nbody > POST_BODY_MAX ? 0 : size * n;
}

static size_t
header_cb(char *bytes, size_t size, size_t n, void *arg)
{
	struct post *p = arg;

	(void)bytes;
	p->nheaders += size * n;
	return p->nheaders > POST_HEADERS_MAX ? 0 : size * n;
}
// NOLINTEND(readability-non-const-parameter)

static void
explain(CURLcode code, char *out)
{
	static const struct {
		CURLcode code;
		const char *text;
	} texts[] = {
	    {CURLE_COULDNT_RESOLVE_HOST, TEXT_AWAY},
	    {CURLE_COULDNT_CONNECT, TEXT_AWAY},
	    {CURLE_OPERATION_TIMEDOUT, "it did not answer in time"},
	    {CURLE_PEER_FAILED_VERIFICATION,
		"its certificate is not good: it is for another name, out of "
		"its time, or of an authority that is not known here "
		"(COURIER_CA_FILE)"},
	    {CURLE_SSL_CONNECT_ERROR, "it does not speak TLS as we do"},
	    {CURLE_GOT_NOTHING, "it closed the connection without an answer"},
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (texts[i].code == code) {
			(void)snprintf(
			    out, POST_WHY_MAX + 1, "%s", texts[i].text);
			return;
		}
	(void)snprintf(out, POST_WHY_MAX + 1, "its answer broke off: %s",
	    curl_easy_strerror(code));
}

/* Whether a whole head came: then it is an answer, however its body went. */
static bool
is_answer(const struct post *p, CURLcode code)
{
	return code == CURLE_OK ||
	    (code == CURLE_WRITE_ERROR && p->nheaders <= POST_HEADERS_MAX);
}

static void
post_free(struct post *p)
{
	(void)curl_multi_remove_handle(p->m->multi, p->curl);
	curl_easy_cleanup(p->curl);
	curl_slist_free_all(p->headers);
	curl_slist_free_all(p->addrs);
	p->m->count--;
	free(p->host);
	free(p->body);
	free(p);
}

static void
finish(struct post *p, CURLcode code)
{
	struct postman *m = p->m;
	struct post_answer a = {.id = p->id};
	curl_off_t wait_s = 0;
	long status = 0;

	(void)curl_easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(p->curl, CURLINFO_RETRY_AFTER, &wait_s);
	if (is_answer(p, code) && status >= 100 && status <= 999) {
		a.status = (uint32_t)status;
		if (wait_s > 0)
			a.retry_after_s = (uint32_t)(wait_s > POST_RETRY_MAX_S ?
				POST_RETRY_MAX_S :
				wait_s);
	} else {
		explain(code, a.why);
	}
	post_free(p);
	m->done(&a, m->arg);
}

static void
finish_all(struct postman *m)
{
	const CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(m->multi, &left)) != NULL) {
		char *private = NULL;
		struct post *p;

		if (msg->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(
		    msg->easy_handle, CURLINFO_PRIVATE, &private);
		memcpy(&p, &private, sizeof(p));
		finish(p, msg->data.result);
	}
}

/* ---- sending */

static void
set_what(struct post *p, const struct post_ask *ask)
{
	CURL *c = p->curl;

	for (size_t i = 0; ask->headers[i] != NULL; i++)
		p->headers = curl_slist_append(p->headers, ask->headers[i]);
	p->headers =
	    curl_slist_append(p->headers, "Content-Type: application/json");
	/* Else it is waited a second for "100 Continue". */
	p->headers = curl_slist_append(p->headers, "Expect:");
	(void)curl_easy_setopt(c, CURLOPT_URL, ask->url);
	(void)curl_easy_setopt(c, CURLOPT_HTTPHEADER, p->headers);
	(void)curl_easy_setopt(c, CURLOPT_POST, 1L);
	(void)curl_easy_setopt(c, CURLOPT_POSTFIELDS, (char *)p->body);
	(void)curl_easy_setopt(
	    c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->body.n);
}

static void
set_how(struct post *p)
{
	CURL *c = p->curl;
	void *self = p;

	(void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(
	    c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(c, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
	(void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, POST_CONNECT_MS);
	(void)curl_easy_setopt(c, CURLOPT_MAXAGE_CONN, KEPT_S);
	(void)curl_easy_setopt(c, CURLOPT_USERAGENT, "mcp-sandboxd");
	(void)curl_easy_setopt(
	    c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (p->m->ca_file[0] != '\0')
		(void)curl_easy_setopt(c, CURLOPT_CAINFO, p->m->ca_file);
	(void)curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_cb);
	(void)curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, self);
	(void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, body_cb);
	(void)curl_easy_setopt(c, CURLOPT_WRITEDATA, self);
	(void)curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, header_cb);
	(void)curl_easy_setopt(c, CURLOPT_HEADERDATA, self);
	(void)curl_easy_setopt(c, CURLOPT_PRIVATE, self);
}

static void
start(struct post *p)
{
	uint64_t now = clock_mono_ms();
	uint64_t left = p->until_ms > now ? p->until_ms - now : 1;

	(void)curl_easy_setopt(p->curl, CURLOPT_RESOLVE, p->addrs);
	(void)curl_easy_setopt(p->curl, CURLOPT_TIMEOUT_MS, (long)left);
	if (curl_multi_add_handle(p->m->multi, p->curl) != CURLM_OK)
		fatal(EXIT_MEMORY, "out of memory");
}

/* "+": curl forgets it after a while. */
static void
set_addrs(struct post *p, const struct netaddr *addrs, size_t n)
{
	char text[NETADDR_TEXT_MAX];
	AUTO(auto_free) char *line = NULL;
	struct buf b = {0};

	(void)buf_printf(&b, "+%s:%u:", p->host, p->port);
	for (size_t i = 0; i < n; i++)
		(void)buf_printf(&b,
		    addrs[i].kind == NETADDR_V6 ? "%s[%s]" : "%s%s",
		    i == 0 ? "" : ",", netaddr_format(&addrs[i], text));
	line = xstrndup((const char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	p->addrs = curl_slist_append(NULL, line);
}

static void
resolved_cb(const struct netaddr *addrs, size_t n, void *arg)
{
	struct post *p = arg;

	if (n == 0) {
		finish(p, CURLE_COULDNT_RESOLVE_HOST);
		return;
	}
	set_addrs(p, addrs, n);
	start(p);
}

/* An address is none to be looked up, in whatever notation: curl reads all that
 * the C library reads. */
static bool
is_address(const char *host)
{
	struct in6_addr v6;
	struct in_addr v4;

	return inet_aton(host, &v4) != 0 || inet_pton(AF_INET6, host, &v6) == 1;
}

int
postman_send(struct postman *m, const struct post_ask *ask, struct err *e)
{
	struct post *p;

	if (m->count == POST_COUNT_MAX)
		return err_set(e, ERR_PROTO, "more than %d requests at a time",
		    POST_COUNT_MAX);
	p = xcalloc(1, sizeof(*p));
	p->m = m;
	p->id = ask->id;
	p->until_ms = clock_mono_ms() + POST_TIME_MS;
	p->host = xstrdup(ask->to->host);
	p->port = ask->to->port;
	p->body = xmemdup(ask->body.p, ask->body.n);
	p->allow = ask->allow;
	p->curl = curl_easy_init();
	if (p->curl == NULL)
		fatal(EXIT_MEMORY, "out of memory");
	set_what(p, ask);
	set_how(p);
	m->count++;
	if (is_address(p->host))
		start(p);
	else
		resolver_find(m->names, ask->owner, p->host, POST_CONNECT_MS,
		    resolved_cb, p);
	return 0;
}

uint32_t
postman_count(const struct postman *m)
{
	return m->count;
}

struct postman *
postman_new(struct event_base *base, struct resolver *names,
    const char *ca_file, post_done_cb done, void *arg)
{
	struct postman *m = xcalloc(1, sizeof(*m));

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
		fatal(EXIT_MEMORY, "libcurl does not start");
	m->multi = curl_multi_init();
	if (m->multi == NULL)
		fatal(EXIT_MEMORY, "out of memory");
	m->base = base;
	m->names = names;
	m->timer = timer_new(base, time_cb, m);
	m->ca_file = xstrdup(ca_file);
	m->done = done;
	m->arg = arg;
	(void)curl_multi_setopt(m->multi, CURLMOPT_SOCKETFUNCTION, socket_cb);
	(void)curl_multi_setopt(m->multi, CURLMOPT_SOCKETDATA, m);
	(void)curl_multi_setopt(m->multi, CURLMOPT_TIMERFUNCTION, timer_cb);
	(void)curl_multi_setopt(m->multi, CURLMOPT_TIMERDATA, m);
	(void)curl_multi_setopt(
	    m->multi, CURLMOPT_MAXCONNECTS, KEPT_CONNECTIONS);
	return m;
}
