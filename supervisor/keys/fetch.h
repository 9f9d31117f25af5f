/*
 * fetch.h - one document of another server, by libcurl
 *
 * Bounded in bytes and time, redirects are not followed, no proxy, no cookie,
 * no password; certificates are judged by the system's authorities or by those
 * of one file.  The loop goes on meanwhile.
 */
#ifndef KEYS_FETCH_H
#define KEYS_FETCH_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"

#define FETCH_MAX 60000 /* bytes: what one message of ours holds */

struct event_base;
struct fetch;

/* Once per fetch_start; rc 0: body is the document, until it returns.  Else
 * ERR_NOTFOUND: the server has no such document (any status 4xx: many
 * say 400 or 403); ERR_BACKEND; *why names the URL. */
typedef void (*fetch_done_cb)(
    int rc, const struct buf *body, const struct err *why, void *arg);

/* fetch_new - ca_file "": the system's.  Cannot fail */
struct fetch *fetch_new(struct event_base *base, const char *ca_file,
    fetch_done_cb done, void *arg);
void fetch_free(struct fetch *f);
/* fetch_start - url is copied; one at a time */
void fetch_start(struct fetch *f, const char *url);

#endif
