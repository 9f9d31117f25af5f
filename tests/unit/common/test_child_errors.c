#include "tests/unit/common/child_fixture.h"

#include "common/exit.h"

static struct fixture f;

static void
expect_protocol_exit(void)
{
	assert_int_equal(wait_exit(&f), EXIT_PROTO << 8);
	stop(&f);
}

TEST(an_unknown_key_is_a_protocol_error)
{
	start(&f, MSG_ROLE_FRONT, 0);
	send_config(&f, "NO_SUCH_KEY", "1");
	expect_protocol_exit();
}

TEST(a_message_of_the_wrong_state_is_a_protocol_error)
{
	start(&f, MSG_ROLE_FRONT, 0);
	(void)close(send_peer(&f, 0, 1)); /* not before READY */
	expect_protocol_exit();
}

TEST(a_message_for_the_other_side_is_a_protocol_error)
{
	start_ready(&f, MSG_ROLE_FRONT);
	msg_send_ready(f.chan, &(struct msg_ready){0});
	expect_protocol_exit();
}

TEST(a_peer_without_a_descriptor_is_a_protocol_error)
{
	start_ready(&f, MSG_ROLE_FRONT);
	send_raw(f.fd, IPC_PEER, "\0\0\0\0\1\0\0\0", 8);
	expect_protocol_exit();
}

TEST(a_peer_index_over_the_limit_is_a_protocol_error)
{
	start_ready(&f, MSG_ROLE_FRONT);
	send_raw(f.fd, IPC_PEER, "\x40\0\0\0\1\0\0\0", 8);
	expect_protocol_exit();
}

TEST(trailing_bytes_are_a_protocol_error)
{
	start_ready(&f, MSG_ROLE_FRONT);
	send_raw(f.fd, IPC_DRAIN, "\0\1\0\0\0", 5);
	expect_protocol_exit();
}

TEST(a_program_started_by_hand_says_what_to_start)
{
	char text[512] = "";
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)dup2(fds[1], STDERR_FILENO);
		(void)close(CHILD_CTL_FD);
		run_child(MSG_ROLE_FRONT, 0);
	}
	(void)close(fds[1]);
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 64 << 8);
	assert_non_null(strstr(text, "front is started by mcp-sandboxd"));
	(void)close(fds[0]);
}

TEST_MAIN(NULL, NULL)
