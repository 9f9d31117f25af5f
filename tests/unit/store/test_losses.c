#include "tests/unit/store/fixture.h"

#include <fcntl.h>

#include "common/clock.h"
#include "common/log.h"
#include "supervisor/store/losses.h"

static int
setup_sandbox(void **state)
{
	log_set_level(LOG_ERROR);
	if (fixture_setup(state) != 0)
		return -1;
	fixture_put_sandbox(*state, 1, "a");
	return 0;
}

/* One that was made at that time, has a long log, and an artifact of its
 * own. */
static void
leave_run(struct fixture *f, uint64_t id, int64_t created_ms)
{
	const uint8_t digest = (uint8_t)id;
	struct result ended = {0};
	struct store_log *log;
	struct store_run r;
	uint8_t sha256[32];
	int fd;

	fixture_run(&r, id, 1, "a");
	memset(r.uuid.b, digest, sizeof(r.uuid.b));
	r.created_ms = created_ms;
	log = fixture_log_open(f, &r);
	store_run_begin(f->store, &r, log, STORE_SOON, NULL, NULL);
	fixture_log_fill(log, &r, 'L', STORE_INLINE_MAX + 1);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	memset(sha256, digest, sizeof(sha256));
	fd = store_blob_begin(log, 0, &f->err);
	assert_int_equal(ftruncate(fd, 100), 0); /* as its row says */
	(void)close(fd);
	assert_int_equal(
	    store_blob_commit(log, 0, (struct tenant_id){1}, sha256, &f->err),
	    0);
	fixture_run_artifact(&r, "x", digest);
	store_run_end(f->store, &r, log, result_cb, &ended);
	fixture_wait(f, &ended.calls, 1);
	assert_string_equal(ended.msg, "");
	store_log_close(log);
	store_run_clear(&r);
}

static char *
path_of(
    const struct fixture *f, const char *below, uint8_t digit, const char *end)
{
	char name[65];
	size_t n = strcmp(below, "spool") == 0 ? 0 : 64;

	for (size_t i = 0; i < n; i += 2)
		(void)snprintf(name + i, 3, "%02x", digit);
	if (n == 0)
		(void)snprintf(name, sizeof(name),
		    "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
		    "%02x%02x%02x%02x%02x%02x",
		    digit, digit, digit, digit, digit, digit, digit, digit,
		    digit, digit, digit, digit, digit, digit, digit, digit);
	return xasprintf("%s/%s/%02x/%s%s", f->dir, below, digit, name, end);
}

static void
shorten(struct fixture *f, uint8_t digit, off_t length)
{
	AUTO(auto_free) char *log = path_of(f, "spool", digit, ".log");
	AUTO(auto_free) char *blob = path_of(f, "artifacts/1", digit, "");

	if (length < 0) {
		assert_int_equal(unlink(log), 0);
		assert_int_equal(unlink(blob), 0);
		return;
	}
	assert_int_equal(truncate(log, length), 0);
	assert_int_equal(truncate(blob, length), 0);
}

/* Until the look that a start begins has come to an end. */
static void
look_again(struct fixture *f, int64_t logs, int64_t blobs)
{
	uint64_t end = clock_mono_ms() + 20000;

	fixture_open(f);
	while (clock_mono_ms() < end &&
	    (fixture_query(f, "SELECT count(*) FROM kept WHERE lost_ms > 0") <
		    logs ||
		fixture_query(
		    f, "SELECT count(*) FROM blob WHERE lost_ms > 0") < blobs))
		(void)event_base_loop(f->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

TEST(what_is_short_or_gone_is_marked_and_nothing_else)
{
	for (uint64_t i = 1; i <= 4; i++)
		leave_run(f, i, 1000000000);
	fixture_close(f);
	shorten(f, 2, 0);
	shorten(f, 3, -1);
	look_again(f, 2, 2);
	fixture_close(f);
	assert_int_equal(
	    fixture_query(f, "SELECT sum(run) FROM kept WHERE lost_ms > 0"),
	    2 + 3);
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM blob WHERE lost_ms > 0"
			     " AND substr(hex(sha256), 1, 2) IN ('02', '03')"),
	    2);
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM blob WHERE lost_ms > 0"), 2);
}

/* What is old had been written. */
TEST(only_what_is_young_is_looked_at)
{
	leave_run(f, 1, 1000000000);
	leave_run(f, 2, 1000000000 + LOSSES_YOUNG_MS - 2);
	leave_run(f, 3, 1000000000 + LOSSES_YOUNG_MS + 10);
	fixture_close(f);
	for (uint8_t i = 1; i <= 3; i++)
		shorten(f, i, 1);
	look_again(f, 2, 2);
	fixture_close(f);
	assert_int_equal(
	    fixture_query(f, "SELECT sum(run) FROM kept WHERE lost_ms > 0"), 5);
}

TEST(what_gave_room_is_not_lost)
{
	leave_run(f, 1, 1000000000);
	leave_run(f, 2, 1000000000);
	fixture_close(f);
	shorten(f, 1, -1);
	shorten(f, 2, -1);
	fixture_exec(f, "UPDATE kept SET evicted_ms = 5 WHERE run = 1");
	look_again(f, 1, 1);
	fixture_close(f);
	assert_int_equal(
	    fixture_query(f, "SELECT sum(run) FROM kept WHERE lost_ms > 0"), 2);
}

TEST_MAIN(setup_sandbox, fixture_teardown)
