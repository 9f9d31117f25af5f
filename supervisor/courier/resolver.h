/*
 * resolver.h - addresses of names, looked up beside the loop
 *
 * A name is looked up by a thread of its own, by the C library, which may wait
 * for as long as its name servers like: nobody waits for that thread.  Who asks
 * says how long to wait, and hears then that there is no answer.  There are
 * RESOLVER_THREADS_MAX such threads at most, of one owner (a tenant)
 * RESOLVER_PER_OWNER, and one for each name, whose answer is for all who asked:
 * a thread that hangs is in nobody's way but its owner's.  Where few are left,
 * who has some gets no more than half as many as are.
 *
 * What was found is known for RESOLVER_KNOWN_MS.
 */
#ifndef COURIER_RESOLVER_H
#define COURIER_RESOLVER_H

#include "common/base.h"
#include "common/netaddr.h"

#define RESOLVER_THREADS_MAX 32
#define RESOLVER_PER_OWNER 4
#define RESOLVER_ADDRS_MAX 16
#define RESOLVER_KNOWN_MAX 128
#define RESOLVER_KNOWN_MS 30000

struct event_base;
struct resolver;

/* addrs: in the order in which they are to be tried, lent; n 0: there are none,
 * or none in time.  Called once, in a later turn of the loop. */
typedef void (*resolver_cb)(const struct netaddr *addrs, size_t n, void *arg);

/* resolver_new - cannot fail; never freed: its threads may outlive anybody */
struct resolver *resolver_new(struct event_base *base);
/* resolver_find - host is copied.  The caller bounds how many ask */
void resolver_find(struct resolver *r, uint64_t owner, const char *host,
    uint64_t within_ms, resolver_cb cb, void *arg);

#endif
