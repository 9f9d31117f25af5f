#include <errno.h>
#include <signal.h>

#include "common/utf8.h"
#include "images/agent/oom.h"
#include "images/agent/proc_end.h"
#include "tests/unit/test.h"

static char *argv_foo[] = {(char[]){"foo"}, NULL};
static char cwd_nope[] = "/nope";
static const struct proc_spec spec = {.argv = argv_foo, .cwd = cwd_nope};

/* A wait status as the kernel packs it. */
#define EXITED(code) ((code) << 8)
#define KILLED(sig) (sig)
#define CORE_BIT 0x80

static const struct {
	int status;
	uint8_t killed;
	enum proc_why asked;
	enum proc_why why;
	int exit_code;
	int signal;
} ends[] = {
    {EXITED(0), 0, PROC_EXITED, PROC_EXITED, 0, 0},
    {EXITED(255), 0, PROC_EXITED, PROC_EXITED, 255, 0},
    {EXITED(137), 0, PROC_EXITED, PROC_EXITED, 137, 0},
    {KILLED(SIGTERM), 0, PROC_EXITED, PROC_SIGNALED, 143, SIGTERM},
    {KILLED(SIGSEGV) | CORE_BIT, 0, PROC_EXITED, PROC_SIGNALED, 139, SIGSEGV},
    {KILLED(SIGKILL), 0, PROC_EXITED, PROC_SIGNALED, 137, SIGKILL},
    {KILLED(SIGKILL), 1, PROC_TIMED_OUT, PROC_TIMED_OUT, 137, SIGKILL},
    {KILLED(SIGKILL), 1, PROC_KILLED, PROC_KILLED, 137, SIGKILL},
    /* ended by itself before the kill reached it */
    {EXITED(3), 1, PROC_TIMED_OUT, PROC_EXITED, 3, 0},
    {KILLED(SIGTERM), 1, PROC_TIMED_OUT, PROC_SIGNALED, 143, SIGTERM},
    {KILLED(SIGKILL), 0, PROC_TIMED_OUT, PROC_SIGNALED, 137, SIGKILL},
    /* somebody else asked the keeper */
    {KILLED(SIGKILL), 1, PROC_EXITED, PROC_SIGNALED, 137, SIGKILL},
};

TEST(each_status_has_its_true_reason)
{
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const struct keeper_report report = {
		    .status = ends[i].status, .killed = ends[i].killed};
		struct proc_end end = {0};

		char text[128];

		proc_end_fill(&end, &report, ends[i].asked, UINT64_MAX);
		proc_end_text(&end, &spec, text, sizeof(text));
		assert_int_equal(end.why, ends[i].why);
		assert_int_equal(end.exit_code, ends[i].exit_code);
		assert_int_equal(end.signal, ends[i].signal);
		assert_string_equal(text, "");
	}
}

static const struct {
	enum keeper_stage stage;
	int error;
	int exit_code;
	const char *text;
} failures[] = {
    {KEEPER_EXEC, ENOENT, 127, "program foo: not found; this image has: sh"},
    {KEEPER_EXEC, EACCES, 126, "program foo: Permission denied"},
    {KEEPER_CWD, ENOENT, 126, "cwd /nope: No such file or directory"},
    {KEEPER_USER, EPERM, 126,
	"cannot become the run's user: Operation not permitted"},
    {KEEPER_FORK, EAGAIN, 126,
	"cannot start a process: Resource temporarily unavailable"},
};

TEST(a_failed_start_says_what_and_why)
{
	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		const struct keeper_report report = {
		    .stage = (uint8_t)failures[i].stage,
		    .error = failures[i].error,
		    .status = EXITED(126)};
		struct proc_end end = {0};

		char text[128];

		proc_end_fill(&end, &report, PROC_EXITED, UINT64_MAX);
		proc_end_text(&end, &spec, text, sizeof(text));
		assert_int_equal(end.why, PROC_UNSTARTED);
		assert_int_equal(end.exit_code, failures[i].exit_code);
		assert_int_equal(end.signal, 0);
		/* Further names are this machine's. */
		assert_int_equal(
		    strncmp(text, failures[i].text, strlen(failures[i].text)),
		    0);
	}
}

TEST(a_long_text_is_cut_between_characters)
{
	const struct proc_end end = {
	    .why = PROC_UNSTARTED, .stage = KEEPER_EXEC, .error = ENOENT};
	char name[] = "\xe2\x82\xac\xe2\x82\xac";
	char *argv[] = {name, NULL};
	const struct proc_spec euros = {.argv = argv};
	char text[14]; /* ends in the second character */

	proc_end_text(&end, &euros, text, sizeof(text));
	assert_string_equal(text, "program \xe2\x82\xac");
	assert_true(utf8_is_valid(text, strlen(text)));
}

TEST(oom_kills_are_read_from_both_forms)
{
	assert_int_equal(
	    oom_parse("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), 3);
	assert_int_equal(oom_parse("low 0\nhigh 0\nmax 9\noom 2\noom_kill 7\n"
				   "oom_group_kill 0\n"),
	    7);
	assert_int_equal(oom_parse("oom_kill_disable 0\n"), 0);
	assert_int_equal(oom_parse(""), 0);
}

TEST_MAIN(NULL, NULL)
