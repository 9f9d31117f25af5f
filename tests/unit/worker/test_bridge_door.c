/* How a worker comes to an agent by programs that the backend starts in its
 * box: whom it asks, what it says first, and when it tries again. */
#include "tests/unit/worker/fixture.h"

#include <errno.h>

#include "worker/link/bridge_door.h"

#define ID "0123456789ab"

static const uint8_t key[BRIDGE_KEY_BYTES] = {1, 2, 3};
static const struct uuid box = {{7}};

static struct {
	struct event_base *base;
	struct backend backend;
	struct carrier *carrier;
	struct link *link;
	struct door *door;

	/* What the backend was asked for. */
	unsigned int execs, cancels;
	char what[BACKEND_ID_MAX + 1];
	const char *const *command;
	const struct backend_exec_user *user;
	void *arg;
	int fd; /* the program's end of a stream; -1: none */

	unsigned int opens, frames, closes;
} fix;

/* ---- the backend */

static struct backend_exec *
fix_exec(struct backend *b, const struct backend_handle *h,
    const char *const *command, const struct backend_exec_user *user, void *arg)
{
	assert_ptr_equal(b, &fix.backend);
	fix.execs++;
	(void)snprintf(
	    fix.what, sizeof(fix.what), "%s", backend_handle_text(h));
	fix.command = command;
	fix.user = user;
	fix.arg = arg;
	return (struct backend_exec *)&fix;
}

static void
fix_cancel(struct backend_exec *x)
{
	assert_ptr_equal(x, &fix);
	fix.cancels++;
}

static const struct backend_ops backend_ops = {
    .can = BACKEND_CAN_EXEC, .exec = fix_exec, .exec_cancel = fix_cancel};

/* ---- the link's user */

static void
on_open(void *arg)
{
	(void)arg;
	fix.opens++;
}

static int
on_frame(struct frame *f, void *arg, struct err *e)
{
	(void)f;
	(void)arg;
	(void)e;
	fix.frames++;
	return 0;
}

static void
on_nothing(void *arg)
{
	(void)arg;
}

static void
on_close(const struct err *why, void *arg)
{
	(void)why;
	(void)arg;
	fix.closes++;
}

static const struct link_user user = {
    on_open, on_frame, on_nothing, on_close, on_nothing};

/* ---- life */

static int
setup(void **state)
{
	struct err e;

	(void)state;
	memset(&fix, 0, sizeof(fix));
	fix.fd = -1;
	fix.base = event_base_new();
	fix.backend.ops = &backend_ops;
	fix.carrier = bridge_carrier_new(fix.base, &fix.backend, key);
	fix.link = link_new(fix.base, 0);
	link_set_user(fix.link, &user, NULL);
	assert_int_equal(fix.carrier->ops->listen(
			     fix.carrier, &box, fix.link, &fix.door, &e),
	    0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	if (fix.door != NULL)
		fix.door->ops->close(fix.door);
	link_free(fix.link);
	if (fix.fd != -1)
		(void)close(fix.fd);
	fixture_settle(fix.base);
	free(fix.carrier);
	event_base_free(fix.base);
	return 0;
}

static void
expect_box(void)
{
	struct backend_container c = {.running = true};

	backend_handle_named(&c.handle, ID);
	fix.door->ops->expect(fix.door, &c);
}

/* A stream to the program. */
static void
join(void)
{
	int fds[2];

	if (fix.fd != -1)
		(void)close(fix.fd);
	assert_int_equal(
	    socketpair(
		AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
	    0);
	fix.fd = fds[1];
	fix.user->joined(0, fds[0], NULL, fix.arg);
}

static void
refuse(const char *text)
{
	struct err e;

	(void)err_set(&e, ERR_BACKEND, "%s", text);
	fix.user->joined(ERR_BACKEND, -1, &e, fix.arg);
}

static void
wait_exec(unsigned int count)
{
	uint64_t end = clock_mono_ms() + FIXTURE_WAIT_MS;

	while (fix.execs < count) {
		assert_true(clock_mono_ms() < end);
		(void)event_base_loop(fix.base, EVLOOP_ONCE);
	}
	assert_int_equal(fix.execs, count);
}

static const char *
trouble(void)
{
	return fix.door->ops->trouble(fix.door);
}

/* ---- what is asked for, and what is said first */

TEST(a_program_is_started_in_the_box_when_it_runs)
{
	fixture_settle(fix.base);
	assert_int_equal(fix.execs, 0);
	expect_box();
	assert_int_equal(fix.execs, 1);
	assert_string_equal(fix.what, ID);
	assert_string_equal(fix.command[0], FRAME_PROGRAM_IN_SANDBOX);
	assert_string_equal(fix.command[1], "bridge");
	assert_null(fix.command[2]);
	expect_box(); /* as a box that is looked at again */
	assert_int_equal(fix.execs, 1);
}

TEST(a_stream_begins_with_the_boxs_secret)
{
	uint8_t secret[BRIDGE_SECRET_BYTES], got[200];
	const struct frame_knock m = {.secret = secret};
	struct buf b;

	expect_box();
	join();
	assert_int_equal(fix.opens, 1);
	bridge_secret(key, &box, secret);
	buf_init(&b, 0);
	assert_int_equal(frame_put_knock(&b, &m), 0);
	assert_int_equal(recv(fix.fd, got, sizeof(got), 0), buf_len(&b));
	assert_memory_equal(got, buf_data(&b), buf_len(&b));
	buf_clear(&b);
}

TEST(a_secret_is_of_one_box_and_one_key)
{
	const uint8_t other_key[BRIDGE_KEY_BYTES] = {1, 2, 4};
	const struct uuid other_box = {{8}};
	uint8_t a[BRIDGE_SECRET_BYTES], b[BRIDGE_SECRET_BYTES];

	bridge_secret(key, &box, a);
	bridge_secret(key, &box, b);
	assert_memory_equal(a, b, sizeof(a));
	bridge_secret(key, &other_box, b);
	assert_memory_not_equal(a, b, sizeof(a));
	bridge_secret(other_key, &box, b);
	assert_memory_not_equal(a, b, sizeof(a));
}

TEST(a_box_is_wished_with_an_agent_that_waits)
{
	struct backend_wishes w = {.nmounts = 0};
	struct err e;

	assert_int_equal(
	    fix.carrier->ops->prepare(fix.carrier, &box, &w, &e), 0);
	assert_true(w.listens);
	assert_string_equal(w.carrier, "bridge");
	assert_int_equal(w.nmounts, 0);
}

/* ---- what goes wrong */

TEST(a_refusal_is_the_trouble_until_a_stream_is_there)
{
	expect_box();
	assert_string_equal(trouble(), "");
	refuse("exec: no exec today");
	assert_string_equal(trouble(), "exec: no exec today");
	assert_int_equal(fix.execs, 1); /* not inside the callback */
	wait_exec(2);
	join();
	assert_string_equal(trouble(), "");
	assert_int_equal(fix.opens, 1);
}

TEST(a_stream_that_ended_is_followed_by_another)
{
	expect_box();
	join();
	fix.user->ended("the engine ended the stream", fix.arg);
	assert_string_equal(trouble(), "the engine ended the stream");
	wait_exec(2);
	join(); /* the link takes it in place of the first */
	assert_int_equal(fix.opens, 2);
	assert_int_equal(fix.closes, 1);
}

TEST(a_box_that_is_looked_at_again_is_not_asked_in_between)
{
	expect_box();
	refuse("exec: no exec today");
	expect_box();
	assert_int_equal(fix.execs, 1);
	wait_exec(2);
}

TEST(a_program_that_is_gone_before_the_knock_is_tried_again)
{
	int fds[2];

	expect_box();
	assert_int_equal(
	    socketpair(
		AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
	    0);
	(void)close(fds[1]);
	fix.user->joined(0, fds[0], NULL, fix.arg);
	assert_int_equal(fix.opens, 0);
	assert_int_equal(fcntl(fds[0], F_GETFD), -1); /* it is closed */
	assert_int_equal(errno, EBADF);
	fix.user->ended("the worker hung up", fix.arg);
	wait_exec(2);
}

/* As an engine says why it could not start the program. */
TEST(what_is_no_frame_ends_the_stream)
{
	static const char words[] = "OCI runtime exec failed: exec failed\r\n";

	expect_box();
	join();
	assert_int_equal(send(fix.fd, words, sizeof(words) - 1, MSG_NOSIGNAL),
	    sizeof(words) - 1);
	while (fix.closes == 0)
		fixture_settle(fix.base);
	assert_int_equal(fix.frames, 0);
}

/* ---- the end */

TEST(a_door_that_closes_leaves_what_is_under_way)
{
	expect_box();
	fix.door->ops->close(fix.door);
	fix.door = NULL;
	assert_int_equal(fix.cancels, 1);
}

TEST(a_door_that_closes_tries_no_more)
{
	expect_box();
	refuse("exec: no exec today");
	fix.door->ops->close(fix.door);
	fix.door = NULL;
	assert_int_equal(fix.cancels, 0); /* it had ended */
	fixture_settle(fix.base);
	assert_int_equal(fix.execs, 1);
	assert_int_equal(
	    event_base_get_num_events(fix.base, EVENT_BASE_COUNT_ADDED), 0);
}

TEST(nothing_of_a_box_is_on_this_host)
{
	fix.carrier->ops->forget(fix.carrier, &box);
	assert_int_equal(
	    fix.carrier->ops->sweep(fix.carrier, INT64_MAX, NULL, NULL), 0);
	assert_int_equal(fix.carrier->ops->needs, BACKEND_CAN_EXEC);
}

TEST_MAIN(setup, teardown)
