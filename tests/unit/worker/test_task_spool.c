#include "tests/unit/worker/task_fixture.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "worker/room_watch.h"

#define DISK_RESERVE 100

/* The disk, in blocks of one MiB and inodes, as it is told. */
static fsblkcnt_t disk_free = 1000;
static fsfilcnt_t disk_inodes = 1000;
static struct room_watch room = {
    .reserve_bytes = (uint64_t)DISK_RESERVE << 20, .reserve_inodes = 100};

int
fstatvfs(int fd, struct statvfs *st)
{
	(void)fd;
	*st = (struct statvfs){.f_frsize = 1 << 20,
	    .f_blocks = 1000,
	    .f_bavail = disk_free,
	    .f_files = 1000,
	    .f_favail = disk_inodes};
	return 0;
}

static void
disk_is(fsblkcnt_t mb, fsfilcnt_t inodes)
{
	disk_free = mb;
	disk_inodes = inodes;
	room.look_ms = 0; /* it is time to look */
	fix.host.room = &room;
}

TEST(a_taken_over_run_goes_on_from_its_spool)
{
	struct wire_in in;
	struct uuid u;
	struct buf b;
	size_t n, all;

	buf_init(&b, 0);
	log_whole(&b, "hello", false);
	all = buf_len(&b);
	n = all - 30; /* in the middle of a record */
	assert_int_equal(write(fix.spool, buf_data(&b), n), (ssize_t)n);
	new_task(1 << 20);
	task_begin(fix.task);
	expect_bytes(n);
	(void)front_next(&ends.front, IPC_RUN_RECORD);
	(void)front_next(&ends.front, IPC_RUN_RECORD);
	front_expect_nothing(&ends.front);
	task_attach(fix.task, ends.peer, &known_from_start);
	in = fake_link_sent(&ends.link, FRAME_OPEN_SEQUENCE);
	fix.chan = wire_get_u32(&in);
	wire_get_uuid(&in, &u);
	assert_int_equal(wire_get_u64(&in), n);
	assert_int_equal(fake_link_known(&ends.link, fix.chan, false), 0);
	assert_int_equal(
	    fake_link_data(&ends.link, fix.chan, n, buf_data(&b) + n, all - n),
	    0);
	task_flush(fix.task);
	expect_bytes(all);
	(void)front_next(&ends.front, IPC_RUN_RECORD);
	(void)front_next(&ends.front, IPC_RUN_RECORD);
	free(expect_end(RUNLOG_EXIT));
	buf_clear(&b);
}

TEST(a_large_spool_is_read_by_its_headers)
{
	uint64_t length;

	begin(UINT64_C(1) << 30);
	length = say_much(20 << 20, true);
	fake_link_lose(&ends.link);
	task_free(fix.task);
	while (recv(ends.front.fd, ends.front.packet, IPC_MSG_MAX,
		   MSG_DONTWAIT) > 0)
		continue;
	new_task(UINT64_C(1) << 30);
	task_begin(fix.task);
	assert_int_equal(fix.task->check.scan.offset, length);
	assert_int_equal(fix.over, 0);
	expect_bytes(length);
}

TEST(a_damaged_spool_ends_the_run)
{
	char *text;

	assert_int_equal(write(fix.spool, "rubbish", 7), 7);
	new_task(1 << 20);
	task_begin(fix.task);
	expect_bytes(7);
	text = expect_end(RUNLOG_INTERNAL);
	assert_non_null(strstr(text, "damaged"));
	free(text);
}

/* A power cut leaves such blocks. */
TEST(zeros_behind_the_last_record_are_cut_off)
{
	static const uint8_t zeros[5000];
	struct buf b;

	buf_init(&b, 0);
	log_plain(&b, RUNLOG_RUN_STARTED, 0);
	assert_int_equal(write(fix.spool, buf_data(&b), 16), 16);
	buf_clear(&b);
	assert_int_equal(write(fix.spool, zeros, sizeof(zeros)), sizeof(zeros));
	new_task(1 << 20);
	task_begin(fix.task);
	assert_int_equal(spool_length(), 16);
	expect_bytes(16);
	(void)front_next(&ends.front, IPC_RUN_RECORD);
	front_expect_nothing(&ends.front);
	task_attach(fix.task, ends.peer, NULL);
	free(expect_end(RUNLOG_LOST));
	fake_link_sent_nothing(&ends.link);
}

/* Whether it had begun is not known: it is not begun once more. */
TEST(a_run_of_zeros_alone_is_lost)
{
	static const uint8_t zeros[5000];

	assert_int_equal(write(fix.spool, zeros, sizeof(zeros)), sizeof(zeros));
	new_task(1 << 20);
	task_begin(fix.task);
	assert_int_equal(spool_length(), 0);
	task_attach(fix.task, ends.peer, NULL);
	free(expect_end(RUNLOG_LOST));
	fake_link_sent_nothing(&ends.link);
}

TEST(zeros_and_more_are_no_tail)
{
	static const uint8_t zeros[70000];

	assert_int_equal(write(fix.spool, zeros, sizeof(zeros)), sizeof(zeros));
	assert_int_equal(write(fix.spool, "x", 1), 1);
	new_task(1 << 20);
	task_begin(fix.task);
	assert_int_equal(spool_length(), sizeof(zeros) + 1);
	expect_bytes(sizeof(zeros) + 1);
	free(expect_end(RUNLOG_INTERNAL));
}

TEST(a_run_that_began_and_is_not_known_any_more_is_lost)
{
	struct buf b;

	buf_init(&b, 0);
	log_plain(&b, RUNLOG_RUN_STARTED, 0);
	assert_int_equal(write(fix.spool, buf_data(&b), 16), 16);
	buf_clear(&b);
	new_task(1 << 20);
	task_begin(fix.task);
	expect_bytes(16);
	(void)front_next(&ends.front, IPC_RUN_RECORD);
	task_attach(fix.task, ends.peer, NULL);
	free(expect_end(RUNLOG_LOST));
	fake_link_sent_nothing(&ends.link);
}

TEST(a_spool_that_cannot_be_appended_to_is_refused)
{
	struct task_start s = {.spool_limit = 1, .ncommands = 1};
	struct task *r;
	struct err e;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	s.spool = fds[1];
	assert_int_equal(
	    task_new(&fix.host, &s, &task_ops, NULL, &r, &e), ERR_PROTO);
	(void)close(fds[0]);
	s.spool = memfd_create("x", MFD_CLOEXEC); /* no O_APPEND */
	assert_int_equal(
	    task_new(&fix.host, &s, &task_ops, NULL, &r, &e), ERR_PROTO);
}

/* Too long to go with its end. */
static void
log_for_spool(struct buf *b)
{
	char text[MSG_RUN_ENDED_LOG_MAX + 1];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_whole(b, text, false);
}

/* A full disk without one: a limit on the file's size says EFBIG, which is
 * treated alike.  What the limit was. */
static struct rlimit
fill_disk(void)
{
	struct rlimit old, small;

	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	return old;
}

TEST(a_full_disk_makes_the_run_wait_and_loses_nothing)
{
	struct rlimit old;
	struct buf b;
	size_t n;
	bool ended = false;

	begin(1 << 20);
	buf_init(&b, 0);
	log_for_spool(&b);
	n = buf_len(&b);
	old = fill_disk();
	say_log(0, &b);
	task_flush(fix.task);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(fix.disk_full);
	assert_int_equal(spool_length(), 20);
	front_expect_nothing(&ends.front);
	fake_link_sent_nothing(&ends.link);
	while (!ended) {
		(void)event_base_loop(ends.base, EVLOOP_ONCE);
		ended = fix.over == 1;
	}
	assert_false(fix.disk_full);
	assert_int_equal(spool_length(), n);
	expect_bytes(n);
	for (int i = 0; i < 4; i++)
		(void)front_next(&ends.front, IPC_RUN_RECORD);
	free(expect_end(RUNLOG_EXIT));
}

TEST(a_disk_that_takes_nothing_ends_the_run_before_long)
{
	struct rlimit old;
	struct buf b;

	begin(1 << 20);
	buf_init(&b, 0);
	log_for_spool(&b);
	old = fill_disk();
	say_log(0, &b);
	task_flush(fix.task);
	while (fix.over == 0)
		(void)event_base_loop(ends.base, EVLOOP_ONCE);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_false(fix.disk_full);
	assert_int_equal(spool_length(), 20);
	expect_bytes(20);
	free(expect_end(RUNLOG_DISK_FULL));
	(void)fake_link_sent(&ends.link, FRAME_CANCEL);
	assert_int_equal(
	    fake_link_sent_chan(&ends.link, FRAME_CLOSE), fix.chan);
}

TEST(a_full_disk_ends_a_run_whose_link_is_lost)
{
	struct rlimit old;
	struct buf b;

	begin(1 << 20);
	buf_init(&b, 0);
	log_whole(&b, "hello", false);
	old = fill_disk();
	say_log(0, &b);
	fake_link_lose(&ends.link);
	while (fix.over == 0)
		(void)event_base_loop(ends.base, EVLOOP_ONCE);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	expect_bytes(20);
	free(expect_end(RUNLOG_DISK_FULL));
}

TEST(a_run_that_prints_much_is_stopped_at_the_reserve)
{
	begin(1 << 30);
	disk_is(DISK_RESERVE - 1, 1000);
	/* It does not heed the cancel; its last words would be taken. */
	(void)say_much(TASK_MARGIN_BYTES * 2, true);
	assert_int_equal(fix.over, 1);
	skip_to_end(RUNLOG_DISK_FULL);
	assert_true(spool_length() > TASK_MARGIN_BYTES);
	assert_true(spool_length() <= TASK_MARGIN_BYTES + (1 << 20));
	(void)fake_link_sent(&ends.link, FRAME_CANCEL);
}

TEST(a_short_run_goes_on_in_the_reserve)
{
	static const struct {
		fsblkcnt_t mb;
		fsfilcnt_t inodes;
	} disks[] = {{DISK_RESERVE - 1, 1000}, {0, 1000}, {1000, 99}};
	struct buf b;

	for (size_t i = 0; i < ARRAY_LEN(disks); i++) {
		if (i > 0) {
			(void)teardown(NULL);
			(void)setup(NULL);
		}
		disk_is(disks[i].mb, disks[i].inodes);
		begin(1 << 20);
		buf_init(&b, 0);
		log_whole(&b, "hello", false);
		say_log(0, &b);
		task_flush(fix.task);
		skip_to_end(RUNLOG_EXIT);
	}
}

TEST(below_half_of_the_reserve_all_but_a_few_lines_ends_at_once)
{
	uint64_t length;

	begin(1 << 30);
	disk_is(DISK_RESERVE / 2 - 1, 1000);
	(void)say_much(1 << 20, true);
	assert_int_equal(fix.over, 1);
	length = spool_length();
	skip_to_end(RUNLOG_DISK_FULL);
	assert_true(length <= TASK_OUT_BYTES);
}

TEST_MAIN(setup, teardown)
