/*
 * post.h - requests to servers that we do not trust
 *
 * By libcurl on our loop, which is given addresses (resolver.h) and looks no
 * name up.  A request has POST_TIME_MS in all; redirects are not
 * followed, there is no proxy and no cookie, certificates are verified, and of
 * an answer its status and Retry-After count: what its body has more than
 * POST_BODY_MAX ends it, as an answer.
 */
#ifndef COURIER_POST_H
#define COURIER_POST_H

#include "common/base.h"
#include "common/err.h"

#define POST_COUNT_MAX 64 /* under way at a time */
#define POST_TIME_MS 15000L
#define POST_CONNECT_MS 5000L
#define POST_BODY_MAX 4096
#define POST_HEADERS_MAX 16384
#define POST_WHY_MAX 300
#define POST_RETRY_MAX_S 86400

struct event_base;
struct outside_allow;
struct postman;
struct resolver;
struct weburl;

struct post_ask {
	uint64_t id;    /* given back */
	uint64_t owner; /* who has names looked up: resolver.h */
	const char *url;
	const struct weburl *to; /* what url says */
	/* Header lines, the last one NULL; a Content-Type is added. */
	const char *const *headers;
	struct span body;
	const struct outside_allow *allow; /* NULL: any address; kept */
};
struct post_answer {
	uint64_t id;
	uint32_t status; /* 0: none, and why says why */
	uint32_t retry_after_s;
	char why[POST_WHY_MAX + 1];
};
typedef void (*post_done_cb)(const struct post_answer *a, void *arg);

/* postman_new - names is kept; ca_file: authorities, "": the system's; never
 * freed */
struct postman *postman_new(struct event_base *base, struct resolver *names,
    const char *ca_file, post_done_cb done, void *arg);
/* postman_send - all of *ask is copied.  done is called once, in a later turn
 * of the loop; ERR_PROTO: POST_COUNT_MAX are under way */
int postman_send(
    struct postman *m, const struct post_ask *ask, struct err *e) MUSTCHECK;
uint32_t postman_count(const struct postman *m);

#endif
