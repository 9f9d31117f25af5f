#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "common/random.h"

#define EACH 24

static void
test_no_byte_is_given_out_twice(void **state)
{
	static uint8_t got[1000][EACH];

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		random_fill(got[i], EACH);
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(got[i], got[k], EACH);
	}
}

/* What the parent has at hand is not the child's, too. */
static void
test_a_child_has_its_own(void **state)
{
	uint8_t ours[EACH], theirs[EACH];
	int pipe_fd[2], status;
	pid_t pid;

	(void)state;
	random_fill(ours, 1);
	assert_int_equal(pipe(pipe_fd), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		random_fill(theirs, EACH);
		_exit(write(pipe_fd[1], theirs, EACH) != EACH);
	}
	random_fill(ours, EACH);
	assert_int_equal(read(pipe_fd[0], theirs, EACH), EACH);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_memory_not_equal(ours, theirs, EACH);
	(void)close(pipe_fd[0]);
	(void)close(pipe_fd[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_no_byte_is_given_out_twice),
	    cmocka_unit_test(test_a_child_has_its_own),
	};

	return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
