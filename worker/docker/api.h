/*
 * api.h - requests to the engine over its Unix socket
 *
 * HTTP/1.1 on the event loop; connections are kept alive.  An answer is
 * bounded in size and time and is otherwise not looked at.
 */
#ifndef WORKER_DOCKER_API_H
#define WORKER_DOCKER_API_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"

struct event_base;
struct api;
struct api_call;

#define API_PATH_MAX 4096

struct api_answer {
	int rc;           /* 0: a whole answer, whatever its status; else
			   * ERR_BACKEND, ERR_LIMIT (body too large) */
	long status;      /* HTTP's */
	const char *body; /* a NUL stands behind it; what on_data got is not
			   * in it */
	size_t len;
	const struct err *why; /* when rc is not 0 */
	uint64_t took_us;
};

struct api_ask {
	const char *method; /* a literal */
	const char *path;   /* with query; copied */
	const void *body;   /* copied; NULL: none */
	size_t body_len;
	const char *content_type; /* a literal; NULL: JSON */
	uint32_t timeout_ms;      /* 0: none, for streams */
	size_t max_body;          /* 0: 64 KiB */
	/* Pieces of a successful answer as they come, instead of collecting;
	 * must not free the api.  May be NULL. */
	void (*on_data)(const uint8_t *p, size_t n, void *arg);
	void (*on_done)(const struct api_answer *a, void *arg);
	void *arg;
};

struct api *api_new(struct event_base *base);
void api_free(struct api *h); /* on_done of all calls, with ERR_WRONG_STATE */
/* api_set_socket - for calls from now on; copied */
void api_set_socket(struct api *h, const char *path);
/* api_start - on_done comes exactly once, never inside this call */
struct api_call *api_start(struct api *h, const struct api_ask *ask);
/* api_cancel - on_done will not be called */
void api_cancel(struct api_call *c);

/* api_escape - appends s percent-encoded for a query; -1 over b's limit */
int api_escape(struct buf *b, const char *s) MUSTCHECK;

#endif
