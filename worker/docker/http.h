/*
 * http.h - requests to the engine over its Unix socket
 *
 * libcurl's multi interface on the event loop; connections are kept alive.
 * An answer is bounded in size and time and is otherwise not looked at.
 */
#ifndef WORKER_DOCKER_HTTP_H
#define WORKER_DOCKER_HTTP_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"

struct event_base;
struct http;
struct http_call;

#define HTTP_PATH_MAX 4096
#define HTTP_HEADERS_MAX 65536 /* bytes of an answer's headers */

struct http_answer {
	int rc;           /* 0: a whole answer, whatever its status; else
			   * ERR_BACKEND, ERR_LIMIT (body too large) */
	long status;      /* HTTP's */
	const char *body; /* a NUL stands behind it; what on_data got is not
			   * in it */
	size_t len;
	const struct err *why; /* when rc is not 0 */
	uint64_t took_us;
};

struct http_ask {
	const char *method; /* a literal */
	const char *path;   /* with query; copied */
	const void *body;   /* copied; NULL: none */
	size_t body_len;
	const char *content_type; /* a literal; NULL: JSON */
	uint32_t timeout_ms;      /* 0: none, for streams */
	size_t max_body;          /* 0: 64 KiB */
	/* Pieces of a successful answer as they come, instead of collecting;
	 * must not free the http.  May be NULL. */
	void (*on_data)(const uint8_t *p, size_t n, void *arg);
	void (*on_done)(const struct http_answer *a, void *arg);
	void *arg;
};

struct http *http_new(struct event_base *base);
void http_free(struct http *h); /* on_done of all calls, with ERR_WRONG_STATE */
/* http_set_socket - for calls from now on; copied */
void http_set_socket(struct http *h, const char *path);
/* http_start - on_done comes exactly once, never inside this call */
struct http_call *http_start(struct http *h, const struct http_ask *ask);
/* http_cancel - on_done will not be called */
void http_cancel(struct http_call *c);

/* http_escape - appends s percent-encoded for a query; -1 over b's limit */
int http_escape(struct buf *b, const char *s) MUSTCHECK;

#endif
