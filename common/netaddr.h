/*
 * netaddr.h - addresses of peers, and blocks of them
 *
 * An IPv4 address is kept as the IPv4-mapped IPv6 address that it is on a
 * socket for both families, so that one that comes both ways is one.
 */
#ifndef COMMON_NETADDR_H
#define COMMON_NETADDR_H

#include "common/base.h"
#include "common/err.h"

#define NETADDR_BYTES 16
#define NETADDR_TEXT_MAX 46 /* INET6_ADDRSTRLEN */

enum netaddr_kind {
	NETADDR_NONE, /* not known */
	NETADDR_UNIX, /* a Unix socket: somebody on this machine */
	NETADDR_V4,
	NETADDR_V6
};

struct netaddr {
	enum netaddr_kind kind;
	uint8_t bytes[NETADDR_BYTES];
};

struct sockaddr;

/* netaddr_from_sockaddr - NETADDR_NONE for another family */
struct netaddr netaddr_from_sockaddr(const struct sockaddr *sa);
/* netaddr_parse - "192.0.2.1", "2001:db8::1", and nothing else: n bytes */
int netaddr_parse(const char *p, size_t n, struct netaddr *out) MUSTCHECK;
/* netaddr_format - the same back; "unix", and "unknown" when it is not known */
const char *netaddr_format(const struct netaddr *a, char out[NETADDR_TEXT_MAX]);
bool netaddr_is_loopback(const struct netaddr *a); /* Unix sockets, too */

/* Addresses that begin with the same bits. */
struct netblock {
	struct netaddr first; /* NETADDR_UNIX: all Unix sockets */
	unsigned int bits;    /* 0..128, of the bytes above */
};
/* netblock_parse - an address, ADDRESS/BITS, or "unix"; ERR_INVAL, also for
 * bits that are set behind the prefix */
int netblock_parse(
    const char *text, struct netblock *out, struct err *e) MUSTCHECK;
bool netblock_has(const struct netblock *b, const struct netaddr *a);

#endif
