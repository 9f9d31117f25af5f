/*
 * resolver.c - addresses of names, looked up beside the loop
 *
 * A search is one name:
 *
 *	WAITING   for its owner's turn; gone when nobody asks any more
 *	RUNNING   a thread has it, whether or not anybody still asks
 *	KNOWN     it has addresses, until they are old or others need the room
 *
 * Of a search that runs the thread reads the host and writes what it found,
 * then puts it into the list done, under the mutex; the loop, woken by an
 * eventfd, takes it out.
 */
#include "supervisor/courier/resolver.h"

#include <sys/eventfd.h>
#include <sys/queue.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>

#include <event2/event.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/hashmap.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"

#define STACK_BYTES (1u << 20) /* what modules of nsswitch.conf take */

enum search_state {
	SEARCH_WAITING,
	SEARCH_RUNNING,
	SEARCH_KNOWN
};

TAILQ_HEAD(search_list, name_search);

struct name_owner { /* who has searches that wait or run */
	uint64_t number;
	struct hash_entry by_number;
	unsigned int running, waiting;
};
struct name_search {
	struct resolver *r;
	char *host;
	struct hash_entry by_host;
	enum search_state state;
	struct name_owner *owner;        /* NULL when it is known */
	TAILQ_HEAD(, resolver_ask) asks; /* none when it is known */
	TAILQ_ENTRY(name_search) link;   /* of those that wait, or are known */
	uint64_t known_ms;               /* when it was found */
	/* The thread's, while it runs. */
	struct netaddr addrs[RESOLVER_ADDRS_MAX];
	size_t naddrs;
	TAILQ_ENTRY(name_search) done_link;
};
struct resolver_ask {
	struct name_search *search; /* NULL: addrs has the answer */
	struct timer *timer;
	resolver_cb cb;
	void *arg;
	struct netaddr addrs[RESOLVER_ADDRS_MAX];
	size_t naddrs;
	TAILQ_ENTRY(resolver_ask) link; /* of its search */
};
struct resolver {
	struct event_base *base;
	struct hashmap searches; /* by host */
	struct hashmap owners;
	struct search_list waiting;
	struct search_list known; /* the oldest first */
	size_t known_count;
	unsigned int running;
	struct event *ev;
	int fd;
	pthread_mutex_t mutex;
	struct search_list done; /* under the mutex */
};

/* ---- searches */

static bool
is_host(const struct hash_entry *en, const void *key)
{
	return strcmp(HASH_OF(en, struct name_search, by_host)->host, key) == 0;
}

static struct name_search *
find_search(const struct resolver *r, const char *host)
{
	return HASH_OBJECT(
	    hashmap_get(&r->searches, hashmap_key_text(host), is_host, host),
	    struct name_search, by_host);
}

static struct name_owner *
owner_of(struct resolver *r, uint64_t number)
{
	struct name_owner *o = HASH_OBJECT(
	    hashmap_get_u64(&r->owners, number), struct name_owner, by_number);

	if (o != NULL)
		return o;
	o = xcalloc(1, sizeof(*o));
	o->number = number;
	hashmap_put(&r->owners, &o->by_number, hashmap_key_u64(number));
	return o;
}

/* After one search of it less. */
static void
owner_tidy(struct resolver *r, struct name_owner *o)
{
	if (o->running > 0 || o->waiting > 0)
		return;
	hashmap_del(&r->owners, &o->by_number);
	free(o);
}

static void
search_free(struct name_search *s)
{
	hashmap_del(&s->r->searches, &s->by_host);
	free(s->host);
	free(s);
}

static struct name_search *
search_new(struct resolver *r, uint64_t owner, const char *host)
{
	struct name_search *s = xcalloc(1, sizeof(*s));

	s->r = r;
	s->host = xstrdup(host);
	s->owner = owner_of(r, owner);
	s->owner->waiting++;
	TAILQ_INIT(&s->asks);
	TAILQ_INSERT_TAIL(&r->waiting, s, link);
	hashmap_put(&r->searches, &s->by_host, hashmap_key_text(host));
	return s;
}

/* Nobody asks any more. */
static void
search_drop(struct name_search *s)
{
	s->owner->waiting--;
	owner_tidy(s->r, s->owner);
	TAILQ_REMOVE(&s->r->waiting, s, link);
	search_free(s);
}

/* ---- what is known */

static void
forget_oldest(struct resolver *r)
{
	struct name_search *s = TAILQ_FIRST(&r->known);

	TAILQ_REMOVE(&r->known, s, link);
	r->known_count--;
	search_free(s);
}

static void
forget_old(struct resolver *r)
{
	uint64_t now = clock_mono_ms();
	const struct name_search *s;

	while ((s = TAILQ_FIRST(&r->known)) != NULL &&
	    now - s->known_ms >= RESOLVER_KNOWN_MS)
		forget_oldest(r);
}

static void
be_known(struct name_search *s)
{
	struct resolver *r = s->r;

	if (r->known_count == RESOLVER_KNOWN_MAX)
		forget_oldest(r);
	s->state = SEARCH_KNOWN;
	s->known_ms = clock_mono_ms();
	TAILQ_INSERT_TAIL(&r->known, s, link);
	r->known_count++;
}

/* ---- asks */

static void
ask_leave(struct resolver_ask *a)
{
	struct name_search *s = a->search;

	a->search = NULL;
	if (s == NULL)
		return;
	TAILQ_REMOVE(&s->asks, a, link);
	if (s->state != SEARCH_WAITING || !TAILQ_EMPTY(&s->asks))
		return;
	search_drop(s);
}

/* It has its answer, or waited for long enough. */
static void
ask_timer_cb(void *arg)
{
	struct resolver_ask *a = arg;

	ask_leave(a);
	timer_free(a->timer);
	a->cb(a->addrs, a->naddrs, a->arg);
	free(a);
}

static void
ask_answer(struct resolver_ask *a, const struct name_search *s)
{
	memcpy(a->addrs, s->addrs, s->naddrs * sizeof(a->addrs[0]));
	a->naddrs = s->naddrs;
	timer_set_ms(a->timer, 0);
}

/* ---- the threads */

static void
look_up(struct name_search *s)
{
	const struct addrinfo hints = {
	    .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;

	if (getaddrinfo(s->host, NULL, &hints, &list) != 0)
		return;
	for (const struct addrinfo *i = list;
	     i != NULL && s->naddrs < RESOLVER_ADDRS_MAX; i = i->ai_next) {
		s->addrs[s->naddrs] = netaddr_from_sockaddr(i->ai_addr);
		if (s->addrs[s->naddrs].kind != NETADDR_NONE)
			s->naddrs++;
	}
	freeaddrinfo(list);
}

static void *
search_main(void *arg)
{
	const uint64_t one = 1;
	struct name_search *s = arg;
	struct resolver *r = s->r;

	look_up(s);
	(void)pthread_mutex_lock(&r->mutex);
	TAILQ_INSERT_TAIL(&r->done, s, done_link);
	(void)pthread_mutex_unlock(&r->mutex);
	(void)!write(r->fd, &one, sizeof(one));
	return NULL;
}

static bool
start_thread(struct name_search *s)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t id;
	int rc;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* Signals are the loop's business. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&id, &attr, search_main, s);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	return rc == 0;
}

static bool
may_start(const struct resolver *r, const struct name_owner *o)
{
	unsigned int left = RESOLVER_THREADS_MAX - r->running;

	return left > 0 && o->running < RESOLVER_PER_OWNER &&
	    (o->running == 0 || o->running < left / 2);
}

/* What cannot be started stays in line: the next that ends starts it, or its
 * asks give up. */
static void
start_some(struct resolver *r)
{
	struct name_search *s, *next;

	for (s = TAILQ_FIRST(&r->waiting); s != NULL; s = next) {
		next = TAILQ_NEXT(s, link);
		if (!may_start(r, s->owner) || !start_thread(s))
			continue;
		TAILQ_REMOVE(&r->waiting, s, link);
		s->state = SEARCH_RUNNING;
		s->owner->waiting--;
		s->owner->running++;
		r->running++;
	}
}

/* ---- back on the loop */

static void
search_end(struct name_search *s)
{
	struct resolver_ask *a;

	s->r->running--;
	s->owner->running--;
	owner_tidy(s->r, s->owner);
	while ((a = TAILQ_FIRST(&s->asks)) != NULL) {
		ask_answer(a, s);
		ask_leave(a);
	}
	if (s->naddrs > 0)
		be_known(s);
	else
		search_free(s);
}

static void
done_cb(evutil_socket_t fd, short what, void *arg)
{
	struct search_list ended = TAILQ_HEAD_INITIALIZER(ended);
	struct resolver *r = arg;
	struct name_search *s;
	uint64_t count;

	(void)what;
	(void)!read(fd, &count, sizeof(count));
	(void)pthread_mutex_lock(&r->mutex);
	TAILQ_CONCAT(&ended, &r->done, done_link);
	(void)pthread_mutex_unlock(&r->mutex);
	while ((s = TAILQ_FIRST(&ended)) != NULL) {
		TAILQ_REMOVE(&ended, s, done_link);
		search_end(s);
	}
	start_some(r);
}

/* ---- asking */

/* Who asks and has a turn does not wait for the turn of another. */
static void
take_over(struct name_search *s, uint64_t number)
{
	struct name_owner *o = owner_of(s->r, number);
	struct name_owner *from = s->owner;

	if (may_start(s->r, o)) {
		from->waiting--;
		o->waiting++;
		s->owner = o;
	}
	owner_tidy(s->r, from);
	if (o != from)
		owner_tidy(s->r, o);
}

void
resolver_find(struct resolver *r, uint64_t owner, const char *host,
    uint64_t within_ms, resolver_cb cb, void *arg)
{
	struct resolver_ask *a = xcalloc(1, sizeof(*a));
	struct name_search *s;

	a->timer = timer_new(r->base, ask_timer_cb, a);
	a->cb = cb;
	a->arg = arg;
	forget_old(r);
	s = find_search(r, host);
	if (s != NULL && s->state == SEARCH_KNOWN) {
		ask_answer(a, s);
		return;
	}
	if (s == NULL)
		s = search_new(r, owner, host);
	else if (s->state == SEARCH_WAITING)
		take_over(s, owner);
	a->search = s;
	TAILQ_INSERT_TAIL(&s->asks, a, link);
	timer_set_ms(a->timer, within_ms);
	start_some(r);
}

struct resolver *
resolver_new(struct event_base *base)
{
	struct resolver *r = xcalloc(1, sizeof(*r));

	r->base = base;
	TAILQ_INIT(&r->waiting);
	TAILQ_INIT(&r->known);
	TAILQ_INIT(&r->done);
	(void)pthread_mutex_init(&r->mutex, NULL);
	r->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->fd == -1)
		fatal(EXIT_MEMORY, "eventfd: %s", strerror(errno));
	r->ev = event_new(base, r->fd, EV_READ | EV_PERSIST, done_cb, r);
	if (r->ev == NULL || event_add(r->ev, NULL) == -1)
		fatal(EXIT_MEMORY, "no event");
	return r;
}
