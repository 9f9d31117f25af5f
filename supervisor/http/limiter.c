/*
 * limiter.c - buckets of addresses in a table that cannot be flushed
 *
 * The table is sets of WAYS places; an address belongs to one set, by a keyed
 * hash that nobody outside can compute.  A place is free again when all that
 * it says is what a new one says: the buckets are full and no connection is
 * open.  So to leave the table takes time and nothing else.  When all places
 * of a set are in use, the newcomer is counted as the crowd, an entry beside
 * the table.  An attacker with many addresses makes newcomers share; whoever
 * has a place keeps it, and what it says.
 *
 * A request under IPv6 is counted twice, at its /64 and at its /48.
 */
#include "supervisor/http/limiter.h"

#include <errno.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/siphash.h"
#include "common/xmalloc.h"

#define WAYS 8
#define NET_BYTES 8  /* a /64 */
#define SITE_BYTES 6 /* a /48 */
#define PER_MINUTE 60000
#define PER_SECOND 1000

/* What is missing in a bucket, in thousandths of a piece: 0 is full, so that
 * zeroed memory is as good as new. */
struct bucket {
	uint64_t missing;
	uint64_t at_ms;
};

struct limiter_place {
	uint8_t key[NETADDR_BYTES];
	uint8_t key_len; /* 0: never used */
	uint32_t connections;
	struct bucket requests;
	struct bucket logins;
};

struct limiter {
	struct limiter_rates rates;
	uint8_t hash_key[SIPHASH_KEY_BYTES];
	struct limiter_place *entries;
	size_t nsets;
	struct limiter_place crowd[2]; /* of addresses, of IPv6 sites */
	uint64_t refused[LIMITER_REASONS];
};

/* How fast a bucket fills, and what it holds. */
struct filling {
	uint64_t pieces;    /* in */
	uint64_t period_ms; /* so much time */
	uint64_t burst;
};

struct limiter *
limiter_new(size_t entries)
{
	struct limiter *l = xcalloc(1, sizeof(*l));

	if (getrandom(l->hash_key, sizeof(l->hash_key), 0) < 0)
		fatal(EXIT_BUG, "getrandom: %s", strerror(errno));
	l->nsets = entries / WAYS;
	l->entries = xcalloc(l->nsets * WAYS, sizeof(*l->entries));
	return l;
}

void
limiter_free(struct limiter *l)
{
	if (l == NULL)
		return;
	free(l->entries);
	free(l);
}

void
limiter_set_rates(struct limiter *l, const struct limiter_rates *rates)
{
	l->rates = *rates;
	if (l->rates.requests_burst < l->rates.requests_per_s)
		l->rates.requests_burst = l->rates.requests_per_s;
}

/* ---- buckets */

/* times: how much of what one address may have. */
static struct filling
filling_of(const struct limiter *l, enum limiter_reason what, uint64_t times)
{
	const struct limiter_rates *r = &l->rates;

	if (what == LIMITER_LOGINS)
		return (struct filling){times * r->failed_logins_per_min,
		    PER_MINUTE, times * r->failed_logins_per_min};
	return (struct filling){
	    times * r->requests_per_s, PER_SECOND, times * r->requests_burst};
}

static struct bucket *
bucket_of(struct limiter_place *e, enum limiter_reason what)
{
	return what == LIMITER_LOGINS ? &e->logins : &e->requests;
}

static uint64_t
bucket_missing(const struct bucket *b, const struct filling *f, uint64_t now_ms)
{
	uint64_t passed = now_ms - b->at_ms, back;

	if (b->missing == 0 || f->pieces == 0)
		return 0;
	if (passed > f->period_ms * (f->burst / f->pieces + 1))
		return 0;
	back = passed * 1000 * f->pieces / f->period_ms;
	return back >= b->missing ? 0 : b->missing - back;
}

/* 0: a piece is there; else how many seconds until it is. */
static uint32_t
bucket_wait(const struct bucket *b, const struct filling *f, uint64_t now_ms)
{
	uint64_t lacks = bucket_missing(b, f, now_ms) + 1000;

	if (f->pieces == 0 || lacks <= 1000 * f->burst)
		return 0;
	lacks -= 1000 * f->burst;
	return (uint32_t)(lacks * f->period_ms / (f->pieces * 1000) / 1000 + 1);
}

static void
bucket_take(struct bucket *b, const struct filling *f, uint64_t now_ms)
{
	uint64_t missing = bucket_missing(b, f, now_ms) + 1000;

	b->missing = missing < 1000 * f->burst ? missing : 1000 * f->burst;
	b->at_ms = now_ms;
}

/* ---- the table */

static bool
entry_is_new(
    const struct limiter *l, const struct limiter_place *e, uint64_t now_ms)
{
	uint64_t times = e->key_len == SITE_BYTES ? LIMITER_SITE : 1;
	const struct filling requests = filling_of(l, LIMITER_REQUESTS, times);
	const struct filling logins = filling_of(l, LIMITER_LOGINS, times);

	return e->connections == 0 &&
	    bucket_missing(&e->requests, &requests, now_ms) == 0 &&
	    bucket_missing(&e->logins, &logins, now_ms) == 0;
}

static struct limiter_place *
set_of(struct limiter *l, const uint8_t *key, size_t n)
{
	uint64_t h = siphash(l->hash_key, key, n);

	return &l->entries[(size_t)(h % l->nsets) * WAYS];
}

/* The entry of a key that has one, or NULL. */
static struct limiter_place *
entry_find(struct limiter *l, const uint8_t *key, size_t n)
{
	struct limiter_place *set = set_of(l, key, n);

	for (size_t i = 0; i < WAYS; i++)
		if (set[i].key_len == n && memcmp(set[i].key, key, n) == 0)
			return &set[i];
	return NULL;
}

/* The key's entry, or a new one; NULL: its set is full.  given, an entry in
 * which nothing was counted yet, looks free and is left alone. */
static struct limiter_place *
entry_of(struct limiter *l, const uint8_t *key, size_t n,
    const struct limiter_place *given, uint64_t now_ms)
{
	struct limiter_place *set = set_of(l, key, n);
	struct limiter_place *known = entry_find(l, key, n);

	if (known != NULL)
		return known;
	for (size_t i = 0; i < WAYS; i++) {
		if (&set[i] == given || !entry_is_new(l, &set[i], now_ms))
			continue;
		set[i] = (struct limiter_place){.key_len = (uint8_t)n};
		memcpy(set[i].key, key, n);
		return &set[i];
	}
	return NULL;
}

/* By which keys an address is counted, the narrow one first. */
struct keys {
	size_t length[2]; /* so many of its bytes */
	size_t n;
};

static struct keys
keys_of(const struct netaddr *a)
{
	if (a->kind == NETADDR_V6)
		return (struct keys){{NET_BYTES, SITE_BYTES}, 2};
	return (struct keys){{NETADDR_BYTES, 0}, 1};
}

struct counted {
	struct limiter_place *entry[2];
	uint64_t times[2]; /* of what one address may have */
	size_t n;
};

static struct counted
count_as(struct limiter *l, const struct netaddr *a, uint64_t now_ms)
{
	const struct keys k = keys_of(a);
	struct counted c = {.n = k.n};

	for (size_t i = 0; i < c.n; i++) {
		c.entry[i] = entry_of(l, a->bytes, k.length[i],
		    i == 0 ? NULL : c.entry[0], now_ms);
		c.times[i] = i == 1 ? LIMITER_SITE : 1;
		if (c.entry[i] == NULL) {
			c.entry[i] = &l->crowd[i];
			c.times[i] *= LIMITER_CROWD;
		}
	}
	return c;
}

static bool
is_exempt(const struct limiter *l, const struct netaddr *a)
{
	return !l->rates.loopback && netaddr_is_loopback(a);
}

bool
limiter_connect(struct limiter *l, const struct netaddr *a)
{
	struct counted c = count_as(l, a, clock_mono_ms());
	bool any = l->rates.connections == 0 || is_exempt(l, a);

	for (size_t i = 0; i < c.n && !any; i++)
		if (c.entry[i]->connections >=
		    c.times[i] * l->rates.connections) {
			l->refused[LIMITER_CONNECTIONS]++;
			return false;
		}
	for (size_t i = 0; i < c.n; i++)
		c.entry[i]->connections++;
	return true;
}

/* An entry with connections does not leave the table, so who has none there
 * was counted in the crowd. */
void
limiter_disconnect(struct limiter *l, const struct netaddr *a)
{
	struct keys k = keys_of(a);

	for (size_t i = 0; i < k.n; i++) {
		struct limiter_place *e = entry_find(l, a->bytes, k.length[i]);

		if (e == NULL || e->connections == 0)
			e = &l->crowd[i];
		if (e->connections > 0)
			e->connections--;
	}
}

enum step {
	LOOK = 1, /* may it have one more, or how long is it to wait? */
	TAKE = 2  /* it has one more, if it need not wait */
};

static uint32_t
count(struct limiter *l, const struct netaddr *a, enum limiter_reason what,
    unsigned int steps)
{
	uint64_t now = clock_mono_ms();
	struct counted c;
	uint32_t wait = 0;

	if (filling_of(l, what, 1).pieces == 0 || is_exempt(l, a))
		return 0;
	c = count_as(l, a, now);
	for (size_t i = 0; i < c.n && wait == 0 && (steps & LOOK) != 0; i++) {
		const struct filling f = filling_of(l, what, c.times[i]);

		wait = bucket_wait(bucket_of(c.entry[i], what), &f, now);
	}
	if (wait != 0)
		l->refused[what]++;
	for (size_t i = 0; i < c.n && wait == 0 && (steps & TAKE) != 0; i++) {
		const struct filling f = filling_of(l, what, c.times[i]);

		bucket_take(bucket_of(c.entry[i], what), &f, now);
	}
	return wait;
}

uint32_t
limiter_admit(struct limiter *l, const struct netaddr *a)
{
	return count(l, a, LIMITER_REQUESTS, LOOK | TAKE);
}

uint32_t
limiter_login_wait(struct limiter *l, const struct netaddr *a)
{
	return count(l, a, LIMITER_LOGINS, LOOK);
}

void
limiter_failed_login(struct limiter *l, const struct netaddr *a)
{
	(void)count(l, a, LIMITER_LOGINS, TAKE);
}

uint64_t
limiter_refused(const struct limiter *l, enum limiter_reason reason)
{
	return l->refused[reason];
}
