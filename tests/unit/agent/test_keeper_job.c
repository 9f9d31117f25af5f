#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/socket.h>

#include "common/xmalloc.h"
#include "images/agent/keeper_job.h"

static struct keeper_in in;
static int pair[2];

static int
setup(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int
teardown(void **state)
{
	(void)state;
	(void)close(pair[0]);
	(void)close(pair[1]);
	return 0;
}

static int
a_file(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static struct keeper_job
a_job(char **argv, char **env)
{
	return (struct keeper_job){.argv = argv,
	    .env = env,
	    .program = "/bin/echo",
	    .search = "/usr/bin:/bin",
	    .cwd = "/workspace",
	    .user = RUNSPEC_USER_ROOT,
	    .out = a_file(),
	    .err = a_file(),
	    .leave = 1,
	    .slot = 7,
	    .order = 4000000000u};
}

static void
job_close(const struct keeper_job *job)
{
	(void)close(job->out);
	if (job->err != -1)
		(void)close(job->err);
}

static void
assert_strings_equal(char *const *a, char *const *b)
{
	size_t i = 0;

	for (; a[i] != NULL && b[i] != NULL; i++)
		assert_string_equal(a[i], b[i]);
	assert_null(a[i]);
	assert_null(b[i]);
}

static void
send_and_compare(const struct keeper_job *job)
{
	struct err e;

	assert_int_equal(keeper_job_send(pair[0], job), 0);
	assert_int_equal(keeper_receive(pair[1], &in, &e), 0);
	assert_int_equal(in.job.order, job->order);
	assert_int_equal(in.job.slot, job->slot);
	assert_int_equal(in.job.user, job->user);
	assert_int_equal(in.job.leave, job->leave);
	assert_int_equal(in.job.stage, KEEPER_STARTED);
	assert_string_equal(in.job.program, job->program);
	assert_string_equal(in.job.search, job->search);
	assert_string_equal(in.job.cwd, job->cwd);
	assert_strings_equal(in.job.argv, job->argv);
	assert_strings_equal(in.job.env, job->env);
	assert_true((fcntl(in.job.out, F_GETFD) & FD_CLOEXEC) != 0);
	if (job->err == -1)
		assert_int_equal(in.job.err, -1);
	else
		assert_true((fcntl(in.job.err, F_GETFD) & FD_CLOEXEC) != 0);
}

static void
test_a_job_arrives_as_it_was_sent(void **state)
{
	char text[] = "a\nb", empty[] = "", set[] = "A=1";
	char *argv[] = {text, empty, NULL}, *env[] = {set, NULL};
	struct keeper_job job = a_job(argv, env);

	(void)state;
	send_and_compare(&job);
	keeper_in_clear(&in);
	job_close(&job);
}

static void
test_one_pipe_for_both_streams_arrives_as_one(void **state)
{
	char *none[] = {NULL};
	struct keeper_job job = a_job(none, none);

	(void)state;
	(void)close(job.err);
	job.err = -1;
	job.user = RUNSPEC_USER_SANDBOX;
	send_and_compare(&job);
	keeper_in_clear(&in);
	job_close(&job);
}

static void
test_a_job_too_large_for_a_packet_comes_as_a_file(void **state)
{
	char *argv[17] = {NULL}, *none[] = {NULL};
	struct keeper_job job = a_job(argv, none);

	(void)state;
	for (size_t i = 0; i < 16; i++) {
		argv[i] = xcalloc(1, RUNSPEC_ARG_BYTES_MAX + 1);
		memset(argv[i], 'a' + (int)i, RUNSPEC_ARG_BYTES_MAX);
	}
	send_and_compare(&job);
	assert_non_null(in.file);
	keeper_in_clear(&in);
	assert_null(in.file);
	for (size_t i = 0; i < 16; i++)
		free(argv[i]);

	/* and the next fits again */
	argv[0] = NULL;
	send_and_compare(&job);
	assert_null(in.file);
	keeper_in_clear(&in);
	job_close(&job);
}

static void
test_the_other_sides_end_is_seen_by_both(void **state)
{
	char *none[] = {NULL};
	struct keeper_job job = a_job(none, none);
	struct err e;

	(void)state;
	assert_int_equal(shutdown(pair[0], SHUT_WR), 0);
	assert_true(keeper_receive(pair[1], &in, &e) < 0);
	(void)close(pair[1]);
	assert_int_not_equal(keeper_job_send(pair[0], &job), 0);
	pair[1] = -1;
	job_close(&job);
}

/* A packet that PID 1 would not make. */
static void
test_what_does_not_decode_is_an_error(void **state)
{
	static const uint8_t bad[][12] = {
	    {KEEPER_MSG_JOB},                         /* too short */
	    {KEEPER_MSG_FILE + 1, 1, 0, 0, 0},        /* unknown */
	    {KEEPER_MSG_JOB, 1, 0, 0, 0, 1, 0, 0, 0}, /* cut off */
	    {KEEPER_MSG_FILE},                        /* without one */
	};
	static const size_t sizes[] = {2, 5, 9, 1};
	struct err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(
		    send(pair[0], bad[i], sizes[i], 0), (ssize_t)sizes[i]);
		assert_true(keeper_receive(pair[1], &in, &e) < 0);
		keeper_in_clear(&in);
	}
}

int
main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(test_a_job_arrives_as_it_was_sent),
	    TEST(test_one_pipe_for_both_streams_arrives_as_one),
	    TEST(test_a_job_too_large_for_a_packet_comes_as_a_file),
	    TEST(test_the_other_sides_end_is_seen_by_both),
	    TEST(test_what_does_not_decode_is_an_error),
	};

	return cmocka_run_group_tests_name("keeper_job", tests, NULL, NULL);
}
