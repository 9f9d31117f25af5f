/*
 * etag.h - entity tags of what the API shows, and conditions on them
 *
 * The tag of a representation is made of its bytes, so it is strong and needs
 * no counter: two answers with the same tag are the same.  A client that
 * changes a thing says with If-Match which state of it it has seen, and is
 * refused with 412 when that is no longer the one; If-None-Match: * says that
 * there is to be none yet; and on a GET, If-None-Match asks for 304 when
 * nothing is new (RFC 9110, sections 8.8.3, 13.1 and 13.2.2).
 */
#ifndef FRONT_ETAG_H
#define FRONT_ETAG_H

#include <jansson.h>

#include "common/base.h"

struct http_exchange;

#define ETAG_BYTES 35 /* 32 digits, quotes, NUL */

void etag_of_bytes(const void *p, size_t n, char out[ETAG_BYTES]);

enum etag_comparison {
	ETAG_STRONG, /* If-Match: no tag with W/ is equal to another */
	ETAG_WEAK    /* If-None-Match */
};
enum etag_found {
	ETAG_NO,
	ETAG_YES,
	ETAG_MALFORMED
};
/* etag_find - is the tag (with its quotes) in a list, or the list "*"?  NULL:
 * there is no representation, and so no tag */
enum etag_found etag_find(
    const char *list, const char *tag, enum etag_comparison how);

enum etag_verdict {
	ETAG_GO_ON,
	ETAG_SAME,    /* answer 304 */
	ETAG_ANSWERED /* x was, with 412, or 400: a condition is malformed */
};
/* etag_judge - x's conditions; tag as in etag_find.  A malformed If-None-Match
 * of a GET is none */
enum etag_verdict etag_judge(
    struct http_exchange *x, const char *tag) MUSTCHECK;

/* etag_may_change - before a thing is changed or deleted: now is what a GET
 * would show, NULL: there is none; it is taken.  false: x was answered */
bool etag_may_change(struct http_exchange *x, json_t *now) MUSTCHECK;
/* etag_add - the header, for an answer that shows o as a GET would */
void etag_add(struct http_exchange *x, const json_t *o);
/* etag_reply_json - the answer to a GET, 200 with o (which it takes) and its
 * tag, or what the conditions ask for */
void etag_reply_json(struct http_exchange *x, json_t *o);
/* etag_reply - the same with n bytes of JSON that stay where they are, and
 * their tag */
void etag_reply(
    struct http_exchange *x, const char *tag, const char *text, size_t n);

#endif
