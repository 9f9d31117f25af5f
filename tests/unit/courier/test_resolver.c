/* The C library's look-up is one of ours: names that begin with "hang" wait for
 * a gate, "none" have no address. */
/* link: -Wl,--wrap=getaddrinfo -Wl,--wrap=freeaddrinfo */
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>

#include <event2/event.h>

#include "common/xmalloc.h"
#include "supervisor/courier/resolver.h"
#include "tests/unit/test.h"

#define LONG_MS 600000 /* only to end a test that hangs */
#define SHORT_MS 10
#define OWNERS 100

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t opens;
	bool is_open;
	unsigned int begun, ended, inside, most_inside;
} gate = {
    .mutex = PTHREAD_MUTEX_INITIALIZER, .opens = PTHREAD_COND_INITIALIZER};

/* Of each test one: a resolver is never freed. */
static struct event_base *bases[16], *base;
static struct resolver *resolvers[16], *names;
static size_t ntests;

struct told {
	unsigned int times;
	size_t n;
	char text[NETADDR_TEXT_MAX];
};

/* Ours, in place of the C library's. */
int __wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **out);
void __wrap_freeaddrinfo(struct addrinfo *list);

int
__wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **out)
{
	struct sockaddr_in *sa;

	assert_null(service);
	assert_int_equal(hints->ai_socktype, SOCK_STREAM);
	(void)pthread_mutex_lock(&gate.mutex);
	gate.begun++;
	gate.inside++;
	if (gate.inside > gate.most_inside)
		gate.most_inside = gate.inside;
	while (strncmp(host, "hang", 4) == 0 && !gate.is_open)
		(void)pthread_cond_wait(&gate.opens, &gate.mutex);
	gate.inside--;
	gate.ended++;
	(void)pthread_mutex_unlock(&gate.mutex);
	if (strncmp(host, "none", 4) == 0)
		return EAI_NONAME;
	*out = xcalloc(1, sizeof(**out));
	sa = xcalloc(1, sizeof(*sa));
	sa->sin_family = AF_INET;
	sa->sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1 */
	(*out)->ai_addr = (struct sockaddr *)sa;
	return 0;
}

void
__wrap_freeaddrinfo(struct addrinfo *list)
{
	free(list->ai_addr);
	free(list);
}

static void
told_cb(const struct netaddr *addrs, size_t n, void *arg)
{
	struct told *t = arg;

	t->times++;
	t->n = n;
	if (n > 0)
		(void)netaddr_format(&addrs[0], t->text);
}

static unsigned int
count_begun(void)
{
	unsigned int n;

	(void)pthread_mutex_lock(&gate.mutex);
	n = gate.begun;
	(void)pthread_mutex_unlock(&gate.mutex);
	return n;
}

static void
open_gate(void)
{
	(void)pthread_mutex_lock(&gate.mutex);
	gate.is_open = true;
	(void)pthread_cond_broadcast(&gate.opens);
	(void)pthread_mutex_unlock(&gate.mutex);
}

static void
ask(uint64_t owner, const char *host, uint64_t ms, struct told *t)
{
	*t = (struct told){0};
	resolver_find(names, owner, host, ms, told_cb, t);
}

static void
wait_told(const struct told *t)
{
	while (t->times == 0)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
}

static int
set_up(void **state)
{
	(void)state;
	gate.is_open = false;
	gate.begun = gate.ended = gate.inside = gate.most_inside = 0;
	base = bases[ntests] = event_base_new();
	names = resolvers[ntests++] = resolver_new(base);
	return 0;
}

/* No thread is left in the next test's way. */
static int
tear_down(void **state)
{
	unsigned int inside;

	(void)state;
	open_gate();
	do {
		(void)pthread_mutex_lock(&gate.mutex);
		inside = gate.inside;
		(void)pthread_mutex_unlock(&gate.mutex);
	} while (inside > 0);
	return 0;
}

TEST(a_name_is_looked_up_once_and_then_known)
{
	struct told one, two, three;

	ask(1, "well.example", LONG_MS, &one);
	ask(2, "well.example", LONG_MS, &two);
	assert_int_equal(one.times, 0);
	wait_told(&one);
	wait_told(&two);
	ask(3, "well.example", LONG_MS, &three);
	assert_int_equal(three.times, 0);
	wait_told(&three);
	assert_string_equal(one.text, "192.0.2.1");
	assert_string_equal(two.text, "192.0.2.1");
	assert_string_equal(three.text, "192.0.2.1");
	assert_int_equal(count_begun(), 1);
}

TEST(what_has_no_address_is_looked_up_again)
{
	struct told t;

	for (unsigned int i = 1; i <= 2; i++) {
		ask(1, "none.example", LONG_MS, &t);
		wait_told(&t);
		assert_int_equal(t.n, 0);
		assert_int_equal(count_begun(), i);
	}
}

TEST(a_look_up_that_hangs_is_not_waited_for)
{
	struct told t, again;

	ask(1, "hang.example", SHORT_MS, &t);
	wait_told(&t);
	assert_int_equal(t.n, 0);
	ask(1, "hang.example", LONG_MS, &again);
	open_gate();
	wait_told(&again); /* by the thread that there was */
	assert_int_equal(again.n, 1);
	assert_int_equal(t.times, 1);
	assert_int_equal(count_begun(), 1);
}

TEST(who_has_names_that_hang_is_in_nobody_elses_way)
{
	struct told theirs[20], mine;
	char host[32];

	for (size_t i = 0; i < ARRAY_LEN(theirs); i++) {
		(void)snprintf(host, sizeof(host), "hang-%zu.example", i);
		ask(1, host, LONG_MS, &theirs[i]);
	}
	ask(2, "well.example", LONG_MS, &mine);
	wait_told(&mine);
	assert_int_equal(mine.n, 1);
	while (count_begun() < RESOLVER_PER_OWNER + 1)
		;
	assert_int_equal(count_begun(), RESOLVER_PER_OWNER + 1);
	open_gate();
	for (size_t i = 0; i < ARRAY_LEN(theirs); i++) {
		wait_told(&theirs[i]);
		assert_int_equal(theirs[i].n, 1);
	}
}

TEST(threads_are_bounded_and_the_last_ones_go_to_who_has_none)
{
	struct told theirs[OWNERS][2], mine;
	char host[32];

	for (unsigned int i = 0; i < 8; i++)
		for (unsigned int j = 0; j < 2; j++) {
			(void)snprintf(
			    host, sizeof(host), "hang-%u-%u.example", i, j);
			ask(i, host, LONG_MS, &theirs[i][j]);
		}
	ask(OWNERS, "well.example", LONG_MS, &mine);
	wait_told(&mine);
	for (unsigned int i = 8; i < OWNERS; i++)
		for (unsigned int j = 0; j < 2; j++) {
			(void)snprintf(
			    host, sizeof(host), "hang-%u-%u.example", i, j);
			ask(i, host, LONG_MS, &theirs[i][j]);
		}
	open_gate();
	for (unsigned int i = 0; i < OWNERS; i++)
		for (unsigned int j = 0; j < 2; j++)
			wait_told(&theirs[i][j]);
	assert_true(gate.most_inside <= RESOLVER_THREADS_MAX);
	assert_int_equal(count_begun(), 2 * OWNERS + 1);
}

TEST(a_name_that_waits_for_another_owners_turn_is_taken_over)
{
	struct told theirs[RESOLVER_PER_OWNER], shared, mine;
	char host[32];

	for (size_t i = 0; i < ARRAY_LEN(theirs); i++) {
		(void)snprintf(host, sizeof(host), "hang-%zu.example", i);
		ask(1, host, LONG_MS, &theirs[i]);
	}
	ask(1, "well.example", LONG_MS, &shared);
	ask(2, "well.example", LONG_MS, &mine);
	wait_told(&mine);
	wait_told(&shared);
	assert_int_equal(mine.n, 1);
	assert_int_equal(shared.n, 1);
	open_gate();
	for (size_t i = 0; i < ARRAY_LEN(theirs); i++)
		wait_told(&theirs[i]);
}

TEST(what_nobody_asks_any_more_is_not_looked_up)
{
	struct told theirs[RESOLVER_PER_OWNER], late, last;
	char host[32];

	for (size_t i = 0; i < ARRAY_LEN(theirs); i++) {
		(void)snprintf(host, sizeof(host), "hang-%zu.example", i);
		ask(1, host, LONG_MS, &theirs[i]);
	}
	ask(1, "hang-times-out.example", SHORT_MS, &late);
	wait_told(&late);
	open_gate();
	ask(1, "well.example", LONG_MS, &last);
	wait_told(&last);
	for (size_t i = 0; i < ARRAY_LEN(theirs); i++)
		wait_told(&theirs[i]);
	assert_int_equal(count_begun(), RESOLVER_PER_OWNER + 1);
}

TEST(what_is_known_is_bounded)
{
	struct told t;
	char host[32];

	for (unsigned int i = 0; i < RESOLVER_KNOWN_MAX + 1; i++) {
		(void)snprintf(host, sizeof(host), "well-%u.example", i);
		ask(1, host, LONG_MS, &t);
		wait_told(&t);
	}
	ask(1, "well-1.example", LONG_MS, &t);
	wait_told(&t);
	assert_int_equal(count_begun(), RESOLVER_KNOWN_MAX + 1);
	ask(1, "well-0.example", LONG_MS, &t);
	wait_told(&t);
	assert_int_equal(count_begun(), RESOLVER_KNOWN_MAX + 2);
}

TEST_MAIN(set_up, tear_down)
