#include "tests/unit/worker/ends.h"

#include <errno.h>
#include <sys/mman.h>

#include <openssl/sha.h>

#include "worker/copy.h"
#include "worker/copy_clock.h"

struct fixture {
	struct copy_limits limits;
	struct copy_clock clock;
	struct copy_host host;
	struct copy *copy;
	uint64_t nentries; /* of the walk so far */
	unsigned int walks;
	bool ended;
};
static struct fixture fix;

static void
on_down(void)
{
	copy_detach(fix.copy);
}

static void
on_end(struct copy *c, void *arg)
{
	(void)arg;
	assert_ptr_equal(c, fix.copy);
	assert_false(fix.ended);
	fix.ended = true;
}

static int
setup(void **state)
{
	(void)state;
	memset(&fix, 0, sizeof(fix));
	ends_open(NULL, on_down);
	ends_greet();
	fix.limits = (struct copy_limits){
	    .total_bytes = 100, .file_bytes = 50, .files = 3};
	fix.host = (struct copy_host){.base = ends.base,
	    .front = &ends.front.chan,
	    .limits = &fix.limits,
	    .time_ms = 60000,
	    .clock = &fix.clock,
	    .on_end = on_end};
	copy_clock_init(&fix.clock, 60000);
	fix.copy = copy_new(&fix.host, 42);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	copy_free(fix.copy);
	ends_close();
	return 0;
}

static uint32_t
sent_request(enum frame_type type)
{
	return fake_link_sent_chan(&ends.link, type);
}

static void
expect_stored(bool stored)
{
	struct wire_in in = fake_link_sent(&ends.link, FRAME_TAKEN_STORED);

	assert_int_equal(wire_get_u8(&in), stored);
}

static uint32_t
attach(void)
{
	copy_attach(fix.copy, ends.peer);
	if (fix.walks++ == 0) /* of an earlier worker's copies */
		expect_stored(false);
	fix.nentries = 0;
	return sent_request(FRAME_OPEN_WALK);
}

static int
try_entry(
    uint32_t walk, uint64_t index, char kind, const char *path, uint64_t size)
{
	static const uint8_t mark[FRAME_MARK_BYTES] = "a mark";
	const struct frame_entry m = {.chan = walk,
	    .index = index,
	    .kind = (uint8_t)kind,
	    .mode = 0644,
	    .size = size,
	    .mark = mark,
	    .path = {(const uint8_t *)path, strlen(path)}};
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	assert_int_equal(frame_put_entry(&b, &m), 0);
	return fake_link_say(&ends.link, &b, &e);
}

static void
entry(uint32_t walk, char kind, const char *path, uint64_t size)
{
	assert_int_equal(try_entry(walk, fix.nentries++, kind, path, size), 0);
}

static void
end(uint32_t chan, int32_t error)
{
	assert_int_equal(fake_link_close(&ends.link, chan, error, ""), 0);
}

/* ARTIFACT_OPEN is next; gives a file for it and returns its read's channel. */
static uint32_t
give_file(uint32_t number)
{
	struct ipc_msg in = front_next(&ends.front, IPC_ARTIFACT_OPEN);
	struct msg_artifact_open m;
	struct err e;

	assert_int_equal(msg_get_artifact_open(&in, &m, &e), 0);
	assert_int_equal(m.id, 42);
	assert_int_equal(m.file, number);
	copy_on_fd(fix.copy, number, memfd_create("f", MFD_CLOEXEC), "");
	return sent_request(FRAME_OPEN_READ);
}

static int
data(uint32_t chan, uint64_t offset, const char *bytes)
{
	return fake_link_data(&ends.link, chan, offset, bytes, strlen(bytes));
}

/* ARTIFACT_DONE is next. */
static struct msg_artifact_done
told_done(void)
{
	struct ipc_msg in = front_next(&ends.front, IPC_ARTIFACT_DONE);
	struct msg_artifact_done m;
	struct err e;

	assert_int_equal(msg_get_artifact_done(&in, &m, &e), 0);
	return m;
}

/* The same, and the agent was told. */
static void
done(void)
{
	(void)told_done();
	(void)fake_link_sent(&ends.link, FRAME_TAKEN);
}

static void
expect_failed(void)
{
	struct ipc_msg in = front_next(&ends.front, IPC_ARTIFACT_FAILED);
	struct msg_artifact_failed m;
	struct err e;

	assert_int_equal(msg_get_artifact_failed(&in, &m, &e), 0);
	assert_int_equal(m.id, 42);
}

TEST(a_file_is_copied_with_its_digest)
{
	uint32_t walk = attach(), read;
	uint8_t want[SHA256_DIGEST_LENGTH];
	struct msg_artifact_done m;
	const uint8_t *got;
	struct wire_in in;
	size_t n;

	entry(walk, 'f', "d/a.txt", 5);
	end(walk, 0);
	read = give_file(0);
	assert_int_equal(data(read, 0, "he"), 0);
	assert_int_equal(data(read, 2, "llo"), 0);
	end(read, 0);
	m = told_done();
	assert_int_equal(m.file, 0);
	assert_int_equal(m.size, 5);
	(void)SHA256((const uint8_t *)"hello", 5, want);
	assert_memory_equal(m.sha256, want, 32);
	assert_true(fix.ended);
	assert_int_equal(copy_files(fix.copy), 1);
	assert_string_equal(copy_error(fix.copy), "");
	in = fake_link_sent(&ends.link, FRAME_TAKEN);
	assert_string_equal(wire_get_text(&in, 100), COPY_ROOT);
	got = wire_get_bytes(&in, 100, &n);
	assert_int_equal(n, strlen("d/a.txt"));
	assert_memory_equal(got, "d/a.txt", n);
	assert_memory_equal(wire_get_fixed(&in, FRAME_MARK_BYTES), "a mark", 7);
	/* not stored before the front has committed */
	fake_link_sent_nothing(&ends.link);
	copy_taken(fix.copy);
	expect_stored(true);
}

static void
give_empty_files(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		end(give_file(i), 0);
		done();
	}
}

/* Names come as they are used, whatever there are. */
TEST(no_more_names_than_a_batch_are_here)
{
	uint32_t walk = attach();
	char path[16];

	fix.limits.files = 1000;
	for (uint32_t i = 0; i < PEER_WALK_WINDOW + 10; i++) {
		(void)snprintf(path, sizeof(path), "f%u", i);
		entry(walk, 'f', path, 0);
		if (i + 1 != PEER_WALK_WINDOW)
			continue;
		fake_link_sent_nothing(&ends.link); /* no credit for more */
		give_empty_files(0, PEER_WALK_WINDOW);
		assert_int_equal(fake_link_sent_credit(&ends.link), i + 1);
	}
	front_expect_nothing(&ends.front);
	end(walk, 0);
	give_empty_files(PEER_WALK_WINDOW, PEER_WALK_WINDOW + 10);
	assert_true(fix.ended);
	assert_int_equal(copy_files(fix.copy), PEER_WALK_WINDOW + 10);
}

TEST(a_walk_may_end_while_its_last_batch_is_copied)
{
	uint32_t walk = attach();
	char path[16];

	fix.limits.files = 1000;
	for (uint32_t i = 0; i < PEER_WALK_WINDOW; i++) {
		(void)snprintf(path, sizeof(path), "f%u", i);
		entry(walk, 'f', path, 0);
	}
	end(walk, 0);
	give_empty_files(0, PEER_WALK_WINDOW);
	assert_true(fix.ended);
	assert_string_equal(copy_error(fix.copy), "");
}

TEST(only_regular_files_are_copied)
{
	uint32_t walk = attach();

	entry(walk, 'd', "d", 0);
	entry(walk, 'l', "l", 0);
	entry(walk, '?', "fifo", 0);
	end(walk, 0);
	assert_true(fix.ended);
	assert_int_equal(copy_files(fix.copy), 0);
}

TEST(paths_that_could_lead_elsewhere_are_left_out)
{
	static const char *const bad[] = {"/etc/passwd", "../x", "a/../b",
	    "a//b", "a/", ".", "..", "", "a/.", "./a"};
	uint32_t walk = attach();

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		entry(walk, 'f', bad[i], 1);
	end(walk, 0);
	assert_true(fix.ended);
	front_expect_nothing(&ends.front);
	assert_non_null(strstr(copy_error(fix.copy), "no good path"));
	assert_true(copy_is_path((const uint8_t *)"..a/b..", 7));
	assert_false(copy_is_path((const uint8_t *)"a\0b", 3));
}

TEST(sizes_are_counted_and_not_believed)
{
	uint32_t walk = attach(), read;
	char much[61];

	memset(much, 'x', sizeof(much) - 1);
	much[sizeof(much) - 1] = '\0';
	entry(walk, 'f', "liar", 1);
	entry(walk, 'f', "good", 1);
	end(walk, 0);
	read = give_file(0);
	assert_int_equal(data(read, 0, much), 0);
	assert_int_equal(sent_request(FRAME_CLOSE), read);
	expect_failed();
	/* what was on its way is passed over */
	assert_int_equal(data(read, 60, "more"), 0);
	end(read, ECANCELED);
	read = give_file(1);
	assert_int_equal(data(read, 0, "y"), 0);
	end(read, 0);
	done();
	assert_true(fix.ended);
	assert_string_equal(
	    copy_error(fix.copy), "artifact extraction: file too large: liar");
}

TEST(each_limit_has_its_words_and_the_rest_goes_on)
{
	uint32_t walk = attach(), read;
	static const char forty[] = "0123456789012345678901234567890123456789";

	entry(walk, 'f', "big", 51);
	entry(walk, 'f', "a", 40);
	entry(walk, 'f', "b", 40);
	entry(walk, 'f', "c", 40); /* 120 in all */
	entry(walk, 'f', "d", 1);
	entry(walk, 'f', "e", 1); /* the fourth */
	end(walk, 0);
	for (uint32_t i = 0; i < 3; i++) {
		read = give_file(i);
		assert_int_equal(data(read, 0, i < 2 ? forty : "d"), 0);
		end(read, 0);
		done();
	}
	assert_true(fix.ended);
	assert_string_equal(copy_error(fix.copy),
	    "artifact extraction: file too large: big; "
	    "artifact extraction: total size exceeded: c; "
	    "artifact extraction: too many files: the rest is left out, 3 of a "
	    "run are kept (ARTIFACTS_MAX_EXTRACT_FILES)");
}

TEST(bytes_out_of_place_or_credit_break_the_protocol)
{
	uint32_t walk = attach(), read;

	entry(walk, 'f', "a", 40);
	end(walk, 0);
	read = give_file(0);
	assert_int_equal(data(read, 7, "abc"), ERR_PROTO);
	assert_int_equal(data(read, UINT32_MAX, "abc"), ERR_PROTO);
}

TEST(a_file_the_front_refuses_is_left_out)
{
	uint32_t walk = attach();

	entry(walk, 'f', "a", 1);
	end(walk, 0);
	(void)front_next(&ends.front, IPC_ARTIFACT_OPEN);
	copy_on_fd(fix.copy, 0, -1, "the name is not UTF-8");
	expect_failed();
	assert_true(fix.ended);
	assert_string_equal(copy_error(fix.copy),
	    "artifact extraction: the name is not UTF-8: a");
}

TEST(a_descriptor_that_is_no_file_is_not_written_to)
{
	uint32_t walk = attach();
	int fds[2];

	entry(walk, 'f', "a", 1);
	end(walk, 0);
	(void)front_next(&ends.front, IPC_ARTIFACT_OPEN);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	copy_on_fd(fix.copy, 0, fds[1], "");
	assert_true(fix.ended);
	assert_int_equal(copy_files(fix.copy), 0);
	(void)close(fds[0]);
}

TEST(after_a_lost_link_only_the_missing_ones_come)
{
	uint32_t walk = attach(), read;

	entry(walk, 'f', "a", 1);
	entry(walk, 'f', "b", 1);
	end(walk, 0);
	read = give_file(0);
	assert_int_equal(data(read, 0, "x"), 0);
	end(read, 0);
	done();
	(void)give_file(1);
	fake_link_lose(&ends.link);
	expect_failed();
	ends_greet();
	walk = attach();
	entry(walk, 'f', "a", 1);
	entry(walk, 'f', "b", 1);
	end(walk, 0);
	read = give_file(2);
	assert_int_equal(data(read, 0, "y"), 0);
	end(read, 0);
	done();
	assert_true(fix.ended);
	assert_int_equal(copy_files(fix.copy), 2);
	assert_string_equal(copy_error(fix.copy), "");
}

TEST(an_agent_that_stalls_is_not_waited_for)
{
	struct copy_host host = fix.host;
	uint32_t walk;

	copy_free(fix.copy);
	host.time_ms = 30;
	fix.copy = copy_new(&host, 42);
	walk = attach();
	fixture_loop(ends.base, &fix.ended);
	assert_int_equal(sent_request(FRAME_CLOSE), walk);
	assert_non_null(strstr(copy_error(fix.copy), "took too long"));
}

TEST(a_walk_that_is_too_long_is_named)
{
	uint32_t walk = attach();

	end(walk, E2BIG);
	assert_true(fix.ended);
	assert_string_equal(copy_error(fix.copy),
	    "artifact extraction: too many files to look at: the rest is left "
	    "out");
}

TEST(a_walk_that_never_ends_is_closed)
{
	uint32_t walk = attach();
	unsigned int grants = 0;

	for (unsigned int i = 0; i < COPY_WALK_MAX; i++) {
		entry(walk, 'd', "a", 0);
		if (buf_len(link_out(ends.link.l)) > 0) {
			assert_int_equal(
			    fake_link_sent_credit(&ends.link), i + 1);
			grants++;
		}
	}
	assert_true(grants > 0 && grants < COPY_WALK_MAX / 100);
	assert_false(fix.ended);
	entry(walk, 'd', "a", 0); /* one too many */
	assert_int_equal(sent_request(FRAME_CLOSE), walk);
	assert_true(fix.ended);
	assert_string_equal(copy_error(fix.copy),
	    "artifact extraction: too many files to look at: the rest is left "
	    "out");
}

TEST(entries_beyond_their_credit_break_the_protocol)
{
	uint32_t walk = attach();

	assert_int_equal(try_entry(walk, 1, 'f', "a", 1), ERR_PROTO);
	assert_int_equal(
	    try_entry(walk, PEER_WALK_WINDOW, 'f', "a", 1), ERR_PROTO);
}

TEST(many_complaints_are_cut_short)
{
	uint32_t walk = attach();

	for (int i = 0; i < 200; i++)
		entry(walk, 'f', "a/../b", 1);
	end(walk, 0);
	assert_true(strlen(copy_error(fix.copy)) < COPY_ERROR_MAX);
	assert_non_null(strstr(copy_error(fix.copy), "and more"));
}

TEST_MAIN(setup, teardown)
