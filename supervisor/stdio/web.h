/*
 * web.h - HTTP requests to the one server, whose answers come in pieces
 *
 * libcurl's multi interface on the event loop. Each request is a connection of
 * its own: curl sends a request again, unasked, when a kept connection turns
 * out to be closed, and the server may have acted on it. No redirect is
 * followed, there is no proxy and no cookie, and certificates are verified
 * against what libcurl trusts.
 */
#ifndef STDIO_WEB_H
#define STDIO_WEB_H

#include "common/base.h"
#include "common/err.h"

#define WEB_HEADERS_MAX 65536
#define WEB_SESSION_MAX 1024
#define WEB_WHY_MAX 300

struct event_base;
struct web;
struct web_call;

enum web_method {
	WEB_POST,
	WEB_GET,
	WEB_DELETE
};

enum web_end {
	WEB_WHOLE,   /* an answer with its end, whatever its status */
	WEB_NOBODY,  /* nothing was sent: no connection, or none in time */
	WEB_REFUSED, /* nothing was sent: its certificate is not good */
	WEB_BROKEN   /* sent, wholly or in part, and no whole answer */
};

struct web_ops {
	/* Of an answer that goes on; non-zero ends the call, as WEB_BROKEN.
	 * Calls may be started and cancelled in it, this one too. */
	int (*on_bytes)(struct web_call *c, const char *p, size_t n, void *arg);
	/* The call is gone when it returns.  why is "" for WEB_WHOLE. */
	void (*on_end)(
	    struct web_call *c, enum web_end end, const char *why, void *arg);
};

struct web_ask {
	enum web_method method;
	const char *const *headers; /* lines, the last one NULL; copied */
	const void *body;           /* copied; NULL: none */
	size_t len;
	const struct web_ops *ops;
	void *arg;
};

struct web_site { /* copied */
	const char *url;
	const char *token;   /* NULL: none */
	const char *ca_file; /* authorities; "": the system's */
};
/* web_new_url - ERR_INVAL names what is wrong with it */
int web_new_url(struct event_base *base, const struct web_site *site,
    struct web **out, struct err *e) MUSTCHECK;
/* web_new_socket - a Unix socket of this path, whose server has its endpoint
 * at path; both copied */
struct web *web_new_socket(
    struct event_base *base, const char *socket_path, const char *path);
/* web_free - calls that are under way end without a word */
void web_free(struct web *w);
/* web_start - on_end comes exactly once, never inside this call */
struct web_call *web_start(struct web *w, const struct web_ask *ask);
/* web_cancel - closes its connection; ops are not called any more */
void web_cancel(struct web_call *c);
/* web_hold, web_go_on - no answer is read meanwhile */
void web_hold(struct web *w);
void web_go_on(struct web *w);

/* Of the answer, from the first on_bytes on. */
long web_status(const struct web_call *c);
bool web_is_stream(const struct web_call *c);      /* text/event-stream */
const char *web_session(const struct web_call *c); /* Mcp-Session-Id, or "" */

#endif
