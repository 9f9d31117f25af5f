#include "tests/unit/common/child_fixture.h"

#include "common/exit.h"

static struct fixture f;

static void
stop_well(void)
{
	stop(&f);
	assert_int_equal(wait_exit(&f), 0);
}

TEST(hello_says_version_role_index_and_pid)
{
	start(&f, MSG_ROLE_WORKER, 5);
	wait_seen(&f, IPC_HELLO, 1);
	assert_int_equal(f.fields[0], IPC_VERSION);
	assert_int_equal(f.fields[1], MSG_ROLE_WORKER);
	assert_int_equal(f.fields[2], 5);
	assert_int_equal(f.fields[3], f.pid);
	stop_well();
}

TEST(ready_follows_the_complete_configuration)
{
	start(&f, MSG_ROLE_FRONT, 0);
	wait_seen(&f, IPC_HELLO, 1);
	send_config(&f, "INSTANCE", "one");
	send_config(&f, "INSTANCE", "two"); /* the later one counts */
	assert_int_equal(f.seen[IPC_READY], 0);
	send_config_end(&f);
	expect_report(&f, "config two");
	wait_seen(&f, IPC_READY, 1);
	stop_well();
}

TEST(a_failed_start_gives_its_reason_and_status)
{
	start(&f, MSG_ROLE_FRONT, 0);
	send_config(&f, "INSTANCE", "refuse");
	send_config_end(&f);
	wait_seen(&f, IPC_LAST_WORDS, 1);
	assert_int_equal(f.fields[0], EXIT_CONFIG);
	assert_string_equal(f.text, "no database in /here");
	assert_int_equal(wait_exit(&f), EXIT_CONFIG << 8);
	assert_int_equal(f.seen[IPC_READY], 0);
	stop(&f);
}

TEST(an_error_code_as_status_is_a_bug)
{
	start(&f, MSG_ROLE_FRONT, 0);
	send_config(&f, "INSTANCE", "bad-status");
	send_config_end(&f);
	wait_seen(&f, IPC_LAST_WORDS, 1);
	assert_int_equal(wait_exit(&f), EXIT_BUG << 8);
	stop(&f);
}

TEST(a_ping_is_answered)
{
	start_ready(&f, MSG_ROLE_WORKER);
	msg_send_ping(f.chan, &(struct msg_ping){0});
	wait_seen(&f, IPC_PONG, 1);
	msg_send_ping(f.chan, &(struct msg_ping){0});
	wait_seen(&f, IPC_PONG, 2);
	stop_well();
}

TEST(a_reload_takes_only_what_may_change)
{
	start_ready(&f, MSG_ROLE_FRONT);
	send_config(&f, "INSTANCE", "elsewhere");
	send_config(&f, "DRAIN_TIMEOUT_MS", "77");
	send_config(&f, "LOG_LEVEL", "error");
	send_config_end(&f);
	expect_report(&f, "reload here 77 0");
	/* READY is said once. */
	send_drain(&f, 1000);
	expect_report(&f, "drain 1000");
	assert_int_equal(f.seen[IPC_READY], 1);
	stop_well();
}

TEST(the_log_level_changes)
{
	start_ready(&f, MSG_ROLE_FRONT);
	msg_send_log_level(f.chan, &(struct msg_log_level){.level = LOG_DEBUG});
	send_drain(&f, DRAIN_LEVEL);
	expect_report(&f, "level 3");
	stop_well();
}

TEST(the_listening_socket_comes_with_its_address)
{
	int fds[2];

	start_ready(&f, MSG_ROLE_FRONT);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	msg_send_listen(f.chan,
	    &(struct msg_listen){
		.address = "127.0.0.1:8080", .socket = fds[0]});
	expect_report(&f, "listen 127.0.0.1:8080");
	(void)close(fds[1]);
	stop_well();
}

TEST(tls_files_are_taken_and_answered)
{
	int fds[2];

	start_ready(&f, MSG_ROLE_FRONT);
	assert_int_equal(pipe(fds), 0);
	msg_send_tls_file(f.chan,
	    &(struct msg_tls_file){.part = MSG_TLS_PART_KEY, .file = fds[0]});
	msg_send_tls_end(f.chan, &(struct msg_tls_end){.number = 7});
	expect_report(&f, "tls file 1 1");
	expect_report(&f, "tls end");
	wait_seen(&f, IPC_TLS_TAKEN, 1);
	assert_int_equal(f.fields[0], 7);
	assert_int_equal(f.fields[1], 0);
	(void)close(fds[1]);
	stop_well();
}

TEST(a_peer_channel_works)
{
	char text[8] = "";
	int fd;

	start_ready(&f, MSG_ROLE_FRONT);
	fd = send_peer(&f, 3, 9);
	expect_report(&f, "peer 3 9");
	assert_int_equal(read(fd, text, sizeof(text)), 2);
	assert_string_equal(text, "hi");
	(void)close(fd);
	stop_well();
}

TEST(news_of_an_older_peer_is_dropped)
{
	int older, newer;

	start_ready(&f, MSG_ROLE_FRONT);
	older = send_peer(&f, 3, 9);
	newer = send_peer(&f, 3, 10);
	send_gone(&f, 3, 9, 100, false);
	send_gone(&f, 3, 10, 200, true);
	send_gone(&f, 4, 0, 300, false); /* never had one: is away */
	expect_report(&f, "peer 3 9");
	expect_report(&f, "peer 3 10");
	expect_report(&f, "gone 3 200 1");
	expect_report(&f, "gone 4 300 0");
	(void)close(older);
	(void)close(newer);
	stop_well();
}

/* Under the sanitizers a place that is not there is found out. */
TEST(every_peer_that_a_message_can_name_has_its_place)
{
	static const unsigned int all[] = {
	    0, CHILD_KEYS_INDEX - 1, CHILD_KEYS_INDEX, CHILD_COURIER_INDEX};
	char text[32];
	start_ready(&f, MSG_ROLE_FRONT);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		int fd = send_peer(&f, all[i], 7);

		(void)snprintf(text, sizeof(text), "peer %u 7", all[i]);
		expect_report(&f, text);
		send_gone(&f, all[i], 7, 100, false);
		(void)snprintf(text, sizeof(text), "gone %u 100 0", all[i]);
		expect_report(&f, text);
		(void)close(fd);
	}
	stop_well();
}

TEST(the_first_finished_work_is_reported_at_once)
{
	start_ready(&f, MSG_ROLE_WORKER);
	send_drain(&f, DRAIN_COUNT_ONE);
	wait_seen(&f, IPC_COUNTS, 1);
	assert_int_equal(f.fields[0], 1);
	stop_well();
}

TEST(dying_gives_the_reason)
{
	start_ready(&f, MSG_ROLE_WORKER);
	send_drain(&f, DRAIN_DIE);
	wait_seen(&f, IPC_LAST_WORDS, 1);
	assert_int_equal(f.fields[0], EXIT_BUG);
	assert_string_equal(f.text, "broke at 42");
	assert_int_equal(wait_exit(&f), EXIT_BUG << 8);
	stop(&f);
}

TEST(the_end_of_the_channel_is_the_end_of_the_child)
{
	start_ready(&f, MSG_ROLE_WORKER);
	stop_well();
}

TEST(a_drain_before_ready_ends_it)
{
	start(&f, MSG_ROLE_FRONT, 0);
	wait_seen(&f, IPC_HELLO, 1);
	send_drain(&f, 10000);
	assert_int_equal(wait_exit(&f), 0);
	stop(&f);
}

TEST_MAIN(NULL, NULL)
