/*
 * limiter.h - how much one address may ask for, before it is known who asks
 *
 * Three things are counted per address: connections that are open, requests
 * (a bucket of so many that fills again by so many a second), and logins that
 * failed (the same, by the minute).  An IPv6 address stands for its /64, which
 * is what one customer has; a /48 as a whole has LIMITER_SITE times as much.
 *
 * The table has a bound, and nobody makes room in it by asking under many
 * addresses: only what is as good as new leaves it.  Where there is no room the
 * newcomers share what one address has, LIMITER_CROWD times; who was counted
 * before goes on being counted as before.
 */
#ifndef HTTP_LIMITER_H
#define HTTP_LIMITER_H

#include "common/base.h"
#include "common/netaddr.h"

#define LIMITER_SITE 16
#define LIMITER_CROWD 4

struct limiter;

/* 0 is no limit. */
struct limiter_rates {
	uint32_t connections;
	uint32_t requests_per_s;
	uint32_t requests_burst; /* at least one second's */
	uint32_t failed_logins_per_min;
	bool loopback; /* does all of this hold for loopback, too? */
};

enum limiter_reason {
	LIMITER_CONNECTIONS,
	LIMITER_REQUESTS,
	LIMITER_LOGINS,
	LIMITER_REASONS
};

/* entries: of the table, 1024 or more, a power of two; what is known after
 * fewer addresses */
struct limiter *limiter_new(size_t entries);
void limiter_free(struct limiter *l); /* NULL is fine */
/* limiter_set_rates - from now on; counts stay */
void limiter_set_rates(struct limiter *l, const struct limiter_rates *rates);

/* limiter_connect - one more connection; false: it is one too many and was not
 * counted.  Each one counted is given back by limiter_disconnect. */
bool limiter_connect(struct limiter *l, const struct netaddr *a) MUSTCHECK;
void limiter_disconnect(struct limiter *l, const struct netaddr *a);
/* limiter_admit - 0: a request of this address may be looked at; else how many
 * seconds it is to wait, at least 1 */
uint32_t limiter_admit(struct limiter *l, const struct netaddr *a) MUSTCHECK;
/* limiter_login_wait - for who sent a wrong token.  0: it is one more; else how
 * many seconds it is to wait: too many before were wrong */
uint32_t limiter_login_wait(
    struct limiter *l, const struct netaddr *a) MUSTCHECK;
/* limiter_failed_login - its token was wrong */
void limiter_failed_login(struct limiter *l, const struct netaddr *a);

/* limiter_refused - how often since the start */
uint64_t limiter_refused(const struct limiter *l, enum limiter_reason reason);
#endif
