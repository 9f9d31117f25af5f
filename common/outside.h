/*
 * outside.h - which addresses are of the public Internet
 *
 * What a stranger has us connect to must not be what only this machine or its
 * networks can reach: loopback, private, link-local (and so the clouds'
 * metadata), shared (RFC 6598), multicast, reserved, unspecified, and the forms
 * in which IPv6 carries such an IPv4 address.  An address is judged as the
 * kernel is about to be given it, so no notation and no name goes around it.
 */
#ifndef COMMON_OUTSIDE_H
#define COMMON_OUTSIDE_H

#include "common/base.h"
#include "common/err.h"
#include "common/netaddr.h"

#define OUTSIDE_ALLOW_MAX 64

/* Blocks, and names of hosts whose addresses may be any. */
struct outside_allow {
	struct netblock blocks[OUTSIDE_ALLOW_MAX];
	size_t nblocks;
	const char *names[OUTSIDE_ALLOW_MAX]; /* the list's own */
	size_t nnames;
};

/* outside_parse - a list as conf_list gives it, kept; ERR_INVAL, ERR_LIMIT */
int outside_parse(
    char *const *list, struct outside_allow *out, struct err *e) MUSTCHECK;
bool outside_is_public(const struct netaddr *a);
/* outside_may_reach - host: as weburl.h has it; a: one of its addresses */
bool outside_may_reach(const struct outside_allow *allow, const char *host,
    const struct netaddr *a);

#endif
