/*
 * test_keeper.c - a job on its way to a keeper, and what the command finds at
 * the places of its descriptors
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "common/xmalloc.h"
#include "images/agent/keepers.h"
#include "tests/unit/test.h"

static struct keeper_in in;
static int pair[2];
static char *none[] = {NULL};

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

/* With the same file at all places. */
static struct keeper_job
a_job(char **argv, char **env)
{
	return (struct keeper_job){.argv = argv,
	    .env = env,
	    .program = "/bin/echo",
	    .search = "/usr/bin:/bin",
	    .cwd = "/workspace",
	    .user = RUNSPEC_USER_ROOT,
	    .fds = {{pair[0], 0}, {pair[0], 2}, {pair[0], 7}},
	    .nfds = 3,
	    .has_terminal = 1,
	    .leave = 1,
	    .slot = 7,
	    .order = 4000000000u};
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

	assert_int_equal(keeper_send(pair[0], job), 0);
	assert_int_equal(keeper_receive(pair[1], &in, &e), 0);
	assert_int_equal(in.job.order, job->order);
	assert_int_equal(in.job.slot, job->slot);
	assert_int_equal(in.job.user, job->user);
	assert_int_equal(in.job.leave, job->leave);
	assert_int_equal(in.job.has_terminal, job->has_terminal);
	assert_int_equal(in.job.stage, KEEPER_STARTED);
	assert_string_equal(in.job.program, job->program);
	assert_string_equal(in.job.search, job->search);
	assert_string_equal(in.job.cwd, job->cwd);
	assert_strings_equal(in.job.argv, job->argv);
	assert_strings_equal(in.job.env, job->env);
	assert_int_equal(in.job.nfds, job->nfds);
	for (uint8_t i = 0; i < job->nfds; i++) {
		assert_int_equal(in.job.fds[i].place, job->fds[i].place);
		assert_int_equal(fcntl(in.job.fds[i].fd, F_GETFD), FD_CLOEXEC);
	}
}

TEST_WITH(setup, teardown, a_job_arrives_as_it_was_sent)
{
	char text[] = "a\nb", empty[] = "", set[] = "A=1";
	char *argv[] = {text, empty, NULL}, *env[] = {set, NULL};
	struct keeper_job job = a_job(argv, env);

	send_and_compare(&job);
	keeper_in_clear(&in);
	job.user = RUNSPEC_USER_SANDBOX;
	job.has_terminal = 0;
	job.nfds = 0;
	send_and_compare(&job);
	keeper_in_clear(&in);
}

TEST_WITH(setup, teardown, a_job_too_large_for_a_packet_comes_as_a_file)
{
	char *argv[17] = {NULL};
	struct keeper_job job = a_job(argv, none);

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
}

TEST_WITH(setup, teardown, the_other_sides_end_is_seen_by_both)
{
	struct keeper_job job = a_job(none, none);
	struct err e;

	assert_int_equal(shutdown(pair[0], SHUT_WR), 0);
	assert_true(keeper_receive(pair[1], &in, &e) < 0);
	(void)close(pair[1]);
	assert_int_not_equal(keeper_send(pair[0], &job), 0);
	pair[1] = -1;
}

/* A packet that PID 1 would not make. */
TEST_WITH(setup, teardown, what_does_not_decode_is_an_error)
{
	static const uint8_t bad[][12] = {
	    {1},                         /* a job that is too short */
	    {3, 1, 0, 0, 0},             /* unknown */
	    {1, 1, 0, 0, 0, 1, 0, 0, 0}, /* cut off */
	    {2},                         /* a file, without one */
	};
	static const size_t sizes[] = {1, 5, 9, 1};
	struct keeper_job job = a_job(none, none);
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(
		    send(pair[0], bad[i], sizes[i], 0), (ssize_t)sizes[i]);
		assert_true(keeper_receive(pair[1], &in, &e) < 0);
		keeper_in_clear(&in);
	}
	job.fds[1].place = KEEPER_PLACES;
	assert_int_equal(keeper_send(pair[0], &job), 0);
	assert_true(keeper_receive(pair[1], &in, &e) < 0);
	keeper_in_clear(&in);
}

/* ---- with a real keeper */

static int
make_terminal(int *slave)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	assert_true(master >= 0);
	assert_int_equal(grantpt(master), 0);
	assert_int_equal(unlockpt(master), 0);
	*slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(*slave >= 0);
	return master;
}

static void
read_until(int fd, const char *word)
{
	char text[4096] = "";
	size_t n = 0;

	while (strstr(text, word) == NULL) {
		ssize_t got = read(fd, text + n, sizeof(text) - 1 - n);

		assert_true(got > 0);
		n += (size_t)got;
		text[n] = '\0';
	}
}

/* Gives the job to a keeper, as PID 1 does, which has all signals blocked;
 * returns where the keeper reports. */
static int
start(struct keepers *ks, struct keeper_job *job)
{
	sigset_t all;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(
	    dup3(fds[1], KEEPER_REPORT_FD, O_CLOEXEC), KEEPER_REPORT_FD);
	(void)close(fds[1]);
	(void)sigfillset(&all);
	assert_int_equal(sigprocmask(SIG_SETMASK, &all, NULL), 0);
	keepers_init(ks);
	assert_true(keepers_start(ks, job) > 0);
	return fds[0];
}

static void
end(struct keepers *ks, int reports, struct keeper_report *report)
{
	assert_int_equal(
	    read(reports, report, sizeof(*report)), sizeof(*report));
	(void)close(reports);
	keepers_on_report(ks, report);
	assert_int_equal(kill(report->keeper, SIGKILL), 0);
	assert_int_equal(waitpid(report->keeper, NULL, 0), report->keeper);
	assert_int_equal(keepers_on_reaped(ks, report->keeper), KEEPERS_QUIET);
}

static void
run_shell(struct keeper_job *job, char **argv)
{
	argv[0] = (char *)(uintptr_t) "sh";
	argv[1] = (char *)(uintptr_t) "-c";
	job->argv = argv;
	job->env = none;
	job->program = "/bin/sh";
	job->search = "";
	job->cwd = "/";
	job->user = RUNSPEC_USER_ROOT;
}

TEST(a_terminal_is_the_commands_controlling_one)
{
	char text[] = "read word < /dev/tty; echo \"got $word\"; exec sleep 60";
	char *argv[] = {NULL, NULL, text, NULL};
	struct keeper_job job = {.nfds = 3, .has_terminal = 1};
	struct keeper_report report;
	struct keepers ks;
	int slave, master, reports;

	if (geteuid() != 0)
		skip(); /* a keeper has no groups, which takes a right */
	master = make_terminal(&slave);
	run_shell(&job, argv);
	for (uint8_t i = 0; i < 3; i++)
		job.fds[i] = (struct keeper_fd){slave, i};
	reports = start(&ks, &job);
	assert_int_equal(write(master, "hello\n", 6), 6);
	read_until(master, "got hello");
	/* To the foreground of the terminal's session. */
	assert_int_equal(write(master, "\003", 1), 1);
	end(&ks, reports, &report);
	assert_int_equal(report.stage, KEEPER_STARTED);
	assert_true(WIFSIGNALED(report.status));
	assert_int_equal(WTERMSIG(report.status), SIGINT);
	(void)close(slave);
	(void)close(master);
}

TEST(what_is_no_terminal_ends_the_start_with_its_error)
{
	char text[] = "true";
	char *argv[] = {NULL, NULL, text, NULL};
	struct keeper_job job = {
	    .fds = {{STDERR_FILENO, 2}}, .nfds = 1, .has_terminal = 1};
	struct keeper_report report;
	struct keepers ks;

	if (geteuid() != 0)
		skip();
	run_shell(&job, argv);
	end(&ks, start(&ks, &job), &report);
	assert_int_equal(report.stage, KEEPER_FORK);
	assert_int_equal(report.error, ENOTTY);
}

TEST(each_descriptor_comes_to_its_place)
{
	char text[] = "read a; read b <&7; echo \"$a $b\" >&5";
	char *argv[] = {NULL, NULL, text, NULL}, line[8] = "";
	int in0[2], in7[2], out5[2], reports;
	struct keeper_job job = {.nfds = 4};
	struct keeper_report report;
	struct keepers ks;

	if (geteuid() != 0)
		skip();
	assert_int_equal(pipe2(in0, O_CLOEXEC), 0);
	assert_int_equal(pipe2(in7, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out5, O_CLOEXEC), 0);
	run_shell(&job, argv);
	job.fds[0] = (struct keeper_fd){in7[0], 7};
	job.fds[1] = (struct keeper_fd){in0[0], 0};
	job.fds[2] = (struct keeper_fd){out5[1], 5};
	job.fds[3] = (struct keeper_fd){STDERR_FILENO, 2};
	reports = start(&ks, &job);
	assert_int_equal(write(in0[1], "a\n", 2), 2);
	assert_int_equal(write(in7[1], "b\n", 2), 2);
	end(&ks, reports, &report);
	assert_int_equal(report.status, 0);
	assert_int_equal(read(out5[0], line, sizeof(line) - 1), 4);
	assert_string_equal(line, "a b\n");
	for (int i = 0; i < 2; i++) {
		(void)close(in0[i]);
		(void)close(in7[i]);
		(void)close(out5[i]);
	}
}

int
main(void)
{
	/* A test's descriptors are never the keeper's: its number is taken. */
	if (open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
		return 1;
	return tests_run(NULL, NULL, NULL, NULL);
}
