#include <event2/buffer.h>
#include <event2/event.h>

#include "supervisor/core/threads.h"
#include "supervisor/front/bodies.h"
#include "tests/unit/test.h"

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"

static const struct tenant_id A = {1}, B = {2};

struct place {
	struct event_base *base;
	struct threads *threads;
	struct bodies *bodies;
};

struct heard {
	unsigned int calls;
	size_t bytes;
	char method[16];
};

static void
heard_cb(struct mcp_message *message, size_t bytes, void *arg)
{
	struct heard *h = arg;
	const char *method = mcp_message_method(message);

	h->calls++;
	h->bytes = bytes;
	(void)strncpy(
	    h->method, method == NULL ? "?" : method, sizeof(h->method) - 1);
}

static void
place_open(struct place *p, unsigned int threads)
{
	struct err e;

	p->base = event_base_new();
	assert_non_null(p->base);
	assert_int_equal(threads_new(p->base, threads, &p->threads, &e), 0);
	p->bodies = bodies_new(p->threads);
}

static void
place_close(struct place *p)
{
	bodies_free(p->bodies);
	threads_free(p->threads);
	event_base_free(p->base);
}

/* text, then blanks; in several pieces. */
static struct evbuffer *
body_of(const char *text, size_t blanks)
{
	static char blank[65536];
	struct evbuffer *body = evbuffer_new();

	memset(blank, ' ', sizeof(blank));
	assert_non_null(body);
	assert_int_equal(evbuffer_add(body, text, strlen(text)), 0);
	for (; blanks > 0; blanks -= sizeof(blank))
		assert_int_equal(evbuffer_add_reference(
				     body, blank, sizeof(blank), NULL, NULL),
		    0);
	return body;
}

static struct body_reading *
read_ping(struct place *p, struct tenant_id tenant, struct heard *h)
{
	return bodies_read(
	    p->bodies, tenant, body_of(PING, 65536), heard_cb, h);
}

static void
cancel_all(struct body_reading **r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		body_reading_cancel(r[i]);
}

static void
await(const struct place *p, const struct heard *h)
{
	while (h->calls == 0)
		assert_int_equal(event_base_loop(p->base, EVLOOP_ONCE), 0);
}

TEST(a_body_is_read_in_a_later_turn)
{
	struct heard good = {0}, bad = {0};
	struct place p;

	place_open(&p, 1);
	(void)bodies_read(
	    p.bodies, A, body_of(PING, 3 * 65536), heard_cb, &good);
	(void)bodies_read(p.bodies, A, body_of("{", 0), heard_cb, &bad);
	assert_int_equal(good.calls, 0);
	await(&p, &bad);
	assert_int_equal(good.calls, 1);
	assert_string_equal(good.method, "ping");
	assert_int_equal(good.bytes, strlen(PING) + 3 * 65536);
	assert_string_equal(bad.method, "?");
	place_close(&p);
}

TEST(many_bodies_are_read_in_their_order)
{
	struct heard h[4 * BODIES_AT_ONCE] = {{0}};
	struct place p;

	place_open(&p, 1);
	for (size_t i = 0; i < ARRAY_LEN(h); i++)
		(void)read_ping(&p, A, &h[i]);
	await(&p, &h[ARRAY_LEN(h) - 1]);
	for (size_t i = 0; i < ARRAY_LEN(h); i++)
		assert_int_equal(h[i].calls, 1);
	place_close(&p);
}

/* No thread: all of them stand where they are. */
TEST(bytes_under_way_have_a_bound_per_tenant)
{
	struct body_reading *r[BODIES_AT_ONCE + 2];
	const size_t mib = 1 << 20;
	struct heard h = {0};
	struct place p;

	place_open(&p, 0);
	assert_int_equal(
	    bodies_have_room(p.bodies, A, BODIES_TOTAL_MAX + 1), BODIES_ROOM);
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		r[i] = bodies_read(p.bodies, A, body_of("", mib), heard_cb, &h);
	assert_int_equal(bodies_have_room(p.bodies, A, BODIES_TENANT_MAX),
	    BODIES_TENANT_FULL);
	assert_int_equal(bodies_have_room(p.bodies, A,
			     BODIES_TENANT_MAX - ARRAY_LEN(r) * mib),
	    BODIES_ROOM);
	assert_int_equal(
	    bodies_have_room(p.bodies, B, BODIES_TENANT_MAX), BODIES_ROOM);
	cancel_all(r, ARRAY_LEN(r));
	/* Those that the threads have still take room. */
	assert_int_equal(bodies_have_room(p.bodies, A,
			     BODIES_TENANT_MAX - BODIES_AT_ONCE * mib),
	    BODIES_ROOM);
	assert_int_equal(bodies_have_room(p.bodies, A, BODIES_TENANT_MAX),
	    BODIES_TENANT_FULL);
	place_close(&p);
	assert_int_equal(h.calls, 0);
}

TEST(when_all_is_taken_a_tenant_without_any_has_one)
{
	const struct tenant_id newcomer = {100};
	struct body_reading *r[BODIES_TOTAL_MAX / BODIES_TENANT_MAX + 1];
	struct heard h = {0};
	struct place p;

	place_open(&p, 0);
	for (size_t i = 0; i + 1 < ARRAY_LEN(r); i++)
		r[i] = bodies_read(p.bodies, (struct tenant_id){i + 1},
		    body_of("", BODIES_TENANT_MAX), heard_cb, &h);
	assert_int_equal(
	    bodies_have_room(p.bodies, newcomer, 1 << 20), BODIES_ROOM);
	r[ARRAY_LEN(r) - 1] =
	    bodies_read(p.bodies, newcomer, body_of("", 1 << 20), heard_cb, &h);
	assert_int_equal(
	    bodies_have_room(p.bodies, newcomer, 1 << 20), BODIES_FULL);
	cancel_all(r, ARRAY_LEN(r));
	place_close(&p);
}

TEST(the_first_ones_of_many_tenants_have_a_bound)
{
	enum {
		TENANTS = BODIES_FIRSTS_MAX >> 24
	};
	struct body_reading *r[TENANTS];
	struct heard h = {0};
	struct place p;

	place_open(&p, 0);
	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		const struct tenant_id tenant = {i + 1};

		assert_int_equal(
		    bodies_have_room(p.bodies, tenant, 1 << 24), BODIES_ROOM);
		r[i] = bodies_read(
		    p.bodies, tenant, body_of("", 1 << 24), heard_cb, &h);
	}
	assert_int_equal(
	    bodies_have_room(p.bodies, (struct tenant_id){100}, 1 << 20),
	    BODIES_FULL);
	cancel_all(r, ARRAY_LEN(r));
	place_close(&p);
}

/* One of B comes when many of A wait. */
TEST(the_tenants_take_turns)
{
	struct heard a[4 * BODIES_AT_ONCE] = {{0}}, b = {0};
	unsigned int before = 0;
	struct place p;

	place_open(&p, 1);
	for (size_t i = 0; i < ARRAY_LEN(a); i++)
		(void)read_ping(&p, A, &a[i]);
	(void)read_ping(&p, B, &b);
	await(&p, &b);
	for (size_t i = 0; i < ARRAY_LEN(a); i++)
		before += a[i].calls;
	assert_true(before < ARRAY_LEN(a));
	await(&p, &a[ARRAY_LEN(a) - 1]);
	place_close(&p);
}

TEST(who_canceled_hears_nothing)
{
	struct heard gone = {0}, h = {0};
	struct body_reading *r[BODIES_AT_ONCE + 2];
	struct place p;

	place_open(&p, 2);
	for (unsigned int round = 0; round < 20; round++) {
		for (size_t i = 0; i < ARRAY_LEN(r); i++)
			r[i] = read_ping(&p, A, &gone);
		cancel_all(r, ARRAY_LEN(r));
	}
	(void)read_ping(&p, A, &h);
	await(&p, &h);
	/* Those that a thread has count until it is done with them. */
	while (bodies_have_room(p.bodies, A, BODIES_TOTAL_MAX) != BODIES_ROOM)
		assert_int_equal(event_base_loop(p.base, EVLOOP_ONCE), 0);
	assert_int_equal(gone.calls, 0);
	place_close(&p);
}

TEST_MAIN(NULL, NULL)
