/*
 * ctl_request.h - one request to the server and its JSON answer
 *
 * Over the admin socket in DATA_DIR, found by its directory's descriptor (a
 * path may be longer than a socket's name can be), or over HTTP with a token.
 * The only file beside the worker's that knows libcurl.
 */
#ifndef CTL_REQUEST_H
#define CTL_REQUEST_H

#include <stdio.h>

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"
#include "supervisor/ctl/ctl_options.h"

struct ctl_link;

int ctl_link_open(const struct ctl_options *o, struct ctl_link **out,
    struct err *e) MUSTCHECK;
/* ctl_link_hurry - an answer that takes longer is none */
void ctl_link_hurry(struct ctl_link *l, long seconds);
void ctl_link_close(struct ctl_link *l); /* NULL is fine */
/*
 * ctl_request - method and path ("/api/v1/..."); body may be NULL, and stays
 * the caller's
 *
 * 0 with *out, the caller's, for an answer 2xx; ERR_NOTFOUND for a 404, else
 * ERR_BACKEND, with what the server says.
 */
int ctl_request(struct ctl_link *l, const char *method, const char *path,
    const json_t *body, json_t **out, struct err *e) MUSTCHECK;
/* ctl_request_bytes - the same with a body that is no JSON; it stays the
 * caller's, to wipe */
int ctl_request_bytes(struct ctl_link *l, const char *method, const char *path,
    const struct span *body, json_t **out, struct err *e) MUSTCHECK;

/* What a run printed, from an offset on; bytes are the link's, until it is
 * asked again. */
struct ctl_output {
	struct span bytes;
	uint64_t next;    /* the offset behind them */
	uint64_t missing; /* bytes that were counted and are not there */
	bool is_complete; /* nothing comes behind them */
};
/* ctl_request_output - GET; ERR_LOST when no server answers, or not now */
int ctl_request_output(struct ctl_link *l, const char *path,
    struct ctl_output *out, struct err *e) MUSTCHECK;
/* ctl_request_pipe - GET, however much it is, into f as it comes */
int ctl_request_pipe(
    struct ctl_link *l, const char *path, FILE *f, struct err *e) MUSTCHECK;

#endif
