/*
 * forwarded.h - who is behind a proxy, as far as that can be believed
 *
 * Anybody can send X-Forwarded-For.  Each proxy puts the address it was asked
 * from at the end of it, so what a proxy of ours wrote is the last element, and
 * what that one says is as true as the address in it is another proxy of ours:
 * the list is read from its end, and the first address that is none of our
 * proxies is the client.
 */
#ifndef HTTP_FORWARDED_H
#define HTTP_FORWARDED_H

#include "common/base.h"
#include "common/err.h"
#include "common/netaddr.h"

#define FORWARDED_HOPS_MAX 32 /* elements looked at, from the end */
#define FORWARDED_PROXIES_MAX 64

struct forwarded_proxies {
	struct netblock blocks[FORWARDED_PROXIES_MAX];
	size_t n;
};

/* forwarded_parse_proxies - a list as conf_list gives it; ERR_INVAL, ERR_LIMIT
 * with the entry that is wrong */
int forwarded_parse_proxies(
    char *const *list, struct forwarded_proxies *out, struct err *e) MUSTCHECK;
bool forwarded_is_proxy(
    const struct forwarded_proxies *p, const struct netaddr *a);

/* A walk from the end of the list; *client begins as the peer. */
struct forwarded_walk {
	const struct forwarded_proxies *proxies;
	struct netaddr *client;
	unsigned int hops;
	bool ended;
};
/* forwarded_step - the elements of one header line, the last line of a request
 * first.  *client is the best that is known afterwards: what is malformed ends
 * the walk at who sent it. */
void forwarded_step(struct forwarded_walk *w, const char *line);

/* forwarded_last - the last element of a list, without blanks, as *n bytes of
 * it; NULL: it is empty */
const char *forwarded_last(const char *line, size_t *n);

#endif
