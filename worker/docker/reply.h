/*
 * reply.h - an answer of HTTP/1, cut out of bytes as they come
 *
 * http_parser reads it; here is which end of it is good.  What comes before
 * the final answer (100 Continue) is skipped.  A connection that would change
 * its protocol is none of ours.
 */
#ifndef WORKER_DOCKER_REPLY_H
#define WORKER_DOCKER_REPLY_H

#include <http_parser.h>

#include "common/base.h"

#define REPLY_HEADERS_MAX 65536 /* bytes of status line and headers */

enum reply_state {
	REPLY_MORE,    /* it is not whole yet */
	REPLY_WHOLE,   /* feed no more */
	REPLY_STOPPED, /* by on_body; feed no more */
	REPLY_HEADERS, /* larger than REPLY_HEADERS_MAX; feed no more */
	REPLY_BROKEN   /* no HTTP, or it ended too early; feed no more */
};

struct reply {
	/* A piece of the body, of an answer whose status is known.  False: no
	 * more of it is wanted. */
	bool (*on_body)(
	    unsigned int status, const uint8_t *p, size_t n, void *arg);
	void *arg;
	struct http_parser parser;
	enum reply_state state;
	bool keep; /* when whole: the connection may take another request */
};

void reply_init(struct reply *r,
    bool (*on_body)(unsigned int status, const uint8_t *p, size_t n, void *arg),
    void *arg);
enum reply_state reply_feed(struct reply *r, const uint8_t *p, size_t n);
/* reply_end - no more bytes come: WHOLE or BROKEN */
enum reply_state reply_end(struct reply *r);
unsigned int reply_status(const struct reply *r);
/* reply_why - what is wrong with one that is BROKEN; static text */
const char *reply_why(const struct reply *r);

#endif
