/*
 * The child runs for real in a forked process with its channel on descriptor
 * 3; the test is its supervisor at the other end.  What its callbacks see
 * comes back as lines on a pipe.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <event2/event.h>

#include "common/child.h"
#include "common/log.h"

#define PATIENCE_MS 10000

/* In the child */

static int report_fd = -1;
static struct event_base *child_base;
static struct child *the_child;

static void report(const char *fmt, ...) PRINTF(1, 2);
static void
report(const char *fmt, ...)
{
	char line[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	line[n++] = '\n';
	if (write(report_fd, line, (size_t)n) != n)
		_exit(99);
}

static int
child_on_config(
    struct child *c, const struct conf *conf, void *arg, struct err *e)
{
	(void)c;
	(void)arg;
	report("config %s", conf_str(conf, CONF_INSTANCE));
	if (strcmp(conf_str(conf, CONF_INSTANCE), "refuse") == 0)
		return err_set(e, ERR_INVAL, "no database in %s", "/here") !=
			0 ?
		    CHILD_EXIT_CONFIG :
		    0;
	if (strcmp(conf_str(conf, CONF_INSTANCE), "bad-status") == 0)
		return err_set(e, ERR_SYS, "a code instead of a status");
	return 0;
}

static void
child_on_reload(const struct conf *conf, void *arg)
{
	(void)arg;
	report("reload %s %lld %d", conf_str(conf, CONF_INSTANCE),
	    (long long)conf_int(conf, CONF_DRAIN_TIMEOUT_MS),
	    (int)log_get_level());
}

static void
child_on_listen(int fd, const char *address, void *arg)
{
	(void)arg;
	report("listen %s", address);
	(void)close(fd);
}

static void
child_on_peer(uint32_t index, uint32_t generation, int fd, void *arg)
{
	(void)arg;
	report("peer %u %u", index, generation);
	if (write(fd, "hi", 2) != 2)
		_exit(99);
	(void)close(fd);
}

static void
child_on_peer_gone(uint32_t index, uint32_t delay_ms, bool throttled, void *arg)
{
	(void)arg;
	report("gone %u %u %d", index, delay_ms, throttled);
}

/* The number stands for what the test wants to see. */
enum {
	DRAIN_COUNT_ONE = 1,
	DRAIN_DIE = 2,
	DRAIN_LEVEL = 3
};
static void
child_on_drain(uint32_t left_ms, void *arg)
{
	(void)arg;
	switch (left_ms) {
	case DRAIN_COUNT_ONE:
		child_counts(the_child, 1, 2);
		break;
	case DRAIN_DIE:
		child_die(the_child, CHILD_EXIT_BUG, "broke at %d", 42);
	case DRAIN_LEVEL:
		report("level %d", (int)log_get_level());
		break;
	default:
		report("drain %u", left_ms);
	}
}

static const struct child_ops ops = {.on_config = child_on_config,
    .on_reload = child_on_reload,
    .on_listen = child_on_listen,
    .on_peer = child_on_peer,
    .on_peer_gone = child_on_peer_gone,
    .on_drain = child_on_drain};

static NORETURN void
run_child(enum ipc_role role, uint32_t index)
{
	child_base = event_base_new();
	the_child = child_start(child_base, role, index, &ops, NULL);
	(void)event_base_dispatch(child_base);
	_exit(98);
}

/* In the test */

struct fixture {
	struct event_base *base;
	struct ipc_chan *chan;
	pid_t pid;
	int report;
	enum {
		LINK_OPEN,
		LINK_CLOSED
	} link;
	/* Of what was received: how often, and its number fields. */
	unsigned int seen[IPC_LAST_WORDS + 1];
	uint64_t number;
	uint32_t fields[4];
	char text[512];
};

static int
on_message(struct ipc_chan *chan, struct ipc_msg *m, void *arg, struct err *e)
{
	struct fixture *f = arg;

	(void)chan;
	assert_true(m->type <= IPC_LAST_WORDS);
	f->seen[m->type]++;
	if (m->type == IPC_HELLO)
		for (size_t i = 0; i < 4; i++)
			f->fields[i] = wire_get_u32(&m->in);
	if (m->type == IPC_PONG)
		f->number = wire_get_u64(&m->in);
	if (m->type == IPC_COUNTS)
		for (size_t i = 0; i < 2; i++)
			f->fields[i] = wire_get_u32(&m->in);
	if (m->type == IPC_LAST_WORDS) {
		AUTO(auto_free) char *text = NULL;

		f->fields[0] = wire_get_u32(&m->in);
		text = wire_get_str(&m->in, sizeof(f->text) - 1);
		assert_non_null(text);
		memcpy(f->text, text, strlen(text) + 1);
	}
	return wire_get_end(&m->in, e);
}

static void
on_close(struct ipc_chan *chan, const struct err *why, void *arg)
{
	struct fixture *f = arg;

	(void)chan;
	(void)why;
	f->link = LINK_CLOSED;
}

static const struct ipc_ops test_ops = {
    .on_message = on_message, .on_close = on_close};

static void
start(struct fixture *f, enum ipc_role role, uint32_t index)
{
	int channel[2], reports[2];

	memset(f, 0, sizeof(*f));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, channel), 0);
	assert_int_equal(pipe(reports), 0);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (f->pid == 0) {
		report_fd = dup2(reports[1], 20);
		if (dup2(channel[1], CHILD_CTL_FD) == -1)
			_exit(97);
		for (int fd = CHILD_CTL_FD + 1; fd < 20; fd++)
			(void)close(fd);
		run_child(role, index);
	}
	(void)close(channel[1]);
	(void)close(reports[1]);
	f->report = reports[0];
	f->base = event_base_new();
	f->chan = ipc_chan_new(f->base, channel[0], "child", &test_ops, f);
}

static void
stop(struct fixture *f)
{
	ipc_chan_free(f->chan);
	event_base_free(f->base);
	(void)close(f->report);
}

static int
wait_exit(struct fixture *f)
{
	int status;

	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	return status;
}

static void
give_up_cb(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	fail_msg("the child did not do it in %d ms", PATIENCE_MS);
}

/* Until the child has said this so often. */
static void
wait_seen(struct fixture *f, enum ipc_type type, unsigned int times)
{
	static const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
	struct event *give_up = evtimer_new(f->base, give_up_cb, NULL);

	assert_int_equal(event_add(give_up, &patience), 0);
	while (f->seen[type] < times) {
		assert_int_equal(f->link, LINK_OPEN);
		assert_int_equal(event_base_loop(f->base, EVLOOP_ONCE), 0);
	}
	event_free(give_up);
}

static void
expect_report(struct fixture *f, const char *want)
{
	char line[256];
	size_t n = 0;
	struct pollfd p = {.fd = f->report, .events = POLLIN};

	do {
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		assert_int_equal(read(f->report, &line[n], 1), 1);
	} while (line[n++] != '\n');
	line[n - 1] = '\0';
	assert_string_equal(line, want);
}

static void
send_config(struct fixture *f, const char *key, const char *value)
{
	struct ipc_out o;

	ipc_out_init(&o, IPC_CONFIG, 0);
	wire_put_str(&o.b, key);
	wire_put_str(&o.b, value);
	ipc_send(f->chan, &o);
}

static void
send_u32(struct fixture *f, enum ipc_type type, uint32_t v)
{
	struct ipc_out o;

	ipc_out_init(&o, type, 0);
	wire_put_u32(&o.b, v);
	ipc_send(f->chan, &o);
}

static void
send_gone(struct fixture *f, uint32_t index, uint32_t generation,
    uint32_t delay_ms, uint8_t throttled)
{
	struct ipc_out o;

	ipc_out_init(&o, IPC_PEER_GONE, 0);
	wire_put_u32(&o.b, index);
	wire_put_u32(&o.b, generation);
	wire_put_u32(&o.b, delay_ms);
	wire_put_u8(&o.b, throttled);
	ipc_send(f->chan, &o);
}

/* Returns our end of the new channel. */
static int
send_peer(struct fixture *f, uint32_t index, uint32_t generation)
{
	struct ipc_out o;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	ipc_out_init(&o, IPC_PEER, 0);
	wire_put_u32(&o.b, index);
	wire_put_u32(&o.b, generation);
	ipc_out_add_fd(&o, fds[1]);
	ipc_send(f->chan, &o);
	return fds[0];
}

static void
start_ready(struct fixture *f, enum ipc_role role)
{
	start(f, role, 0);
	wait_seen(f, IPC_HELLO, 1);
	send_config(f, "INSTANCE", "here");
	send_u32(f, IPC_CONFIG_END, 1);
	wait_seen(f, IPC_READY, 1);
	expect_report(f, "config here");
}

static void
test_hello_says_version_role_index_and_pid(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, IPC_ROLE_WORKER, 5);
	wait_seen(&f, IPC_HELLO, 1);
	assert_int_equal(f.fields[0], IPC_VERSION);
	assert_int_equal(f.fields[1], IPC_ROLE_WORKER);
	assert_int_equal(f.fields[2], 5);
	assert_int_equal(f.fields[3], f.pid);
	stop(&f);
	assert_int_equal(wait_exit(&f), 0);
}

static void
test_ready_follows_the_complete_configuration(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, IPC_ROLE_FRONT, 0);
	wait_seen(&f, IPC_HELLO, 1);
	send_config(&f, "INSTANCE", "one");
	send_config(&f, "INSTANCE", "two"); /* the later one counts */
	assert_int_equal(f.seen[IPC_READY], 0);
	send_u32(&f, IPC_CONFIG_END, 1);
	expect_report(&f, "config two");
	wait_seen(&f, IPC_READY, 1);
	stop(&f);
	assert_int_equal(wait_exit(&f), 0);
}

static void
test_a_failed_start_gives_its_reason_and_status(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, IPC_ROLE_FRONT, 0);
	send_config(&f, "INSTANCE", "refuse");
	send_u32(&f, IPC_CONFIG_END, 1);
	wait_seen(&f, IPC_LAST_WORDS, 1);
	assert_int_equal(f.fields[0], CHILD_EXIT_CONFIG);
	assert_string_equal(f.text, "no database in /here");
	assert_int_equal(wait_exit(&f), CHILD_EXIT_CONFIG << 8);
	assert_int_equal(f.seen[IPC_READY], 0);
	stop(&f);
}

static void
test_an_error_code_as_status_is_a_bug(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, IPC_ROLE_FRONT, 0);
	send_config(&f, "INSTANCE", "bad-status");
	send_u32(&f, IPC_CONFIG_END, 1);
	wait_seen(&f, IPC_LAST_WORDS, 1);
	assert_int_equal(wait_exit(&f), CHILD_EXIT_BUG << 8);
	stop(&f);
}

static void
test_a_ping_is_answered_with_its_time(void **state)
{
	struct fixture f;
	struct ipc_out o;

	(void)state;
	start_ready(&f, IPC_ROLE_WORKER);
	ipc_out_init(&o, IPC_PING, 0);
	wire_put_u64(&o.b, 0x1122334455667788);
	ipc_send(f.chan, &o);
	wait_seen(&f, IPC_PONG, 1);
	assert_true(f.number == 0x1122334455667788);
	stop(&f);
	assert_int_equal(wait_exit(&f), 0);
}

static void
test_a_reload_takes_only_what_may_change(void **state)
{
	struct fixture f;

	(void)state;
	start_ready(&f, IPC_ROLE_FRONT);
	send_config(&f, "INSTANCE", "elsewhere");
	send_config(&f, "DRAIN_TIMEOUT_MS", "77");
	send_config(&f, "LOG_LEVEL", "error");
	send_u32(&f, IPC_CONFIG_END, 2);
	expect_report(&f, "reload here 77 0");
	/* READY is said once. */
	send_u32(&f, IPC_DRAIN, 1000);
	expect_report(&f, "drain 1000");
	assert_int_equal(f.seen[IPC_READY], 1);
	stop(&f);
	assert_int_equal(wait_exit(&f), 0);
}

static void
test_the_log_level_changes(void **state)
{
	struct fixture f;

	(void)state;
	start_ready(&f, IPC_ROLE_FRONT);
	send_u32(&f, IPC_LOG_LEVEL, LOG_DEBUG);
	send_u32(&f, IPC_DRAIN, DRAIN_LEVEL);
	expect_report(&f, "level 3");
	stop(&f);
	assert_int_equal(wait_exit(&f), 0);
}

static void
test_the_listening_socket_comes_with_its_address(void **state)
{
	struct fixture f;
	struct ipc_out o;
	int fds[2];

	(void)state;
	start_ready(&f, IPC_ROLE_FRONT);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	ipc_out_init(&o, IPC_LISTEN, 0);
	wire_put_str(&o.b, "127.0.0.1:8080");
	ipc_out_add_fd(&o, fds[0]);
	ipc_send(f.chan, &o);
	expect_report(&f, "listen 127.0.0.1:8080");
	(void)close(fds[1]);
	stop(&f);
	assert_int_equal(wait_exit(&f), 0);
}

static void
test_a_peer_channel_works(void **state)
{
	struct fixture f;
	char text[8] = "";
	int fd;

	(void)state;
	start_ready(&f, IPC_ROLE_FRONT);
	fd = send_peer(&f, 3, 9);
	expect_report(&f, "peer 3 9");
	assert_int_equal(read(fd, text, sizeof(text)), 2);
	assert_string_equal(text, "hi");
	(void)close(fd);
	stop(&f);
	assert_int_equal(wait_exit(&f), 0);
}

static void
test_news_of_an_older_peer_is_dropped(void **state)
{
	struct fixture f;
	int older, newer;

	(void)state;
	start_ready(&f, IPC_ROLE_FRONT);
	older = send_peer(&f, 3, 9);
	newer = send_peer(&f, 3, 10);
	send_gone(&f, 3, 9, 100, 0);
	send_gone(&f, 3, 10, 200, 1);
	send_gone(&f, 4, 0, 300, 0); /* never had one: is away */
	expect_report(&f, "peer 3 9");
	expect_report(&f, "peer 3 10");
	expect_report(&f, "gone 3 200 1");
	expect_report(&f, "gone 4 300 0");
	(void)close(older);
	(void)close(newer);
	stop(&f);
	assert_int_equal(wait_exit(&f), 0);
}

static void
test_the_first_finished_work_is_reported_at_once(void **state)
{
	struct fixture f;

	(void)state;
	start_ready(&f, IPC_ROLE_WORKER);
	send_u32(&f, IPC_DRAIN, DRAIN_COUNT_ONE);
	wait_seen(&f, IPC_COUNTS, 1);
	assert_int_equal(f.fields[0], 1);
	assert_int_equal(f.fields[1], 2);
	stop(&f);
	assert_int_equal(wait_exit(&f), 0);
}

static void
test_dying_gives_the_reason(void **state)
{
	struct fixture f;

	(void)state;
	start_ready(&f, IPC_ROLE_WORKER);
	send_u32(&f, IPC_DRAIN, DRAIN_DIE);
	wait_seen(&f, IPC_LAST_WORDS, 1);
	assert_int_equal(f.fields[0], CHILD_EXIT_BUG);
	assert_string_equal(f.text, "broke at 42");
	assert_int_equal(wait_exit(&f), CHILD_EXIT_BUG << 8);
	stop(&f);
}

static void
test_the_end_of_the_channel_is_the_end_of_the_child(void **state)
{
	struct fixture f;

	(void)state;
	start_ready(&f, IPC_ROLE_WORKER);
	stop(&f);
	assert_int_equal(wait_exit(&f), 0);
}

static void
test_a_drain_before_ready_ends_it(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, IPC_ROLE_FRONT, 0);
	wait_seen(&f, IPC_HELLO, 1);
	send_u32(&f, IPC_DRAIN, 10000);
	assert_int_equal(wait_exit(&f), 0);
	stop(&f);
}

static void
expect_protocol_exit(struct fixture *f)
{
	assert_int_equal(wait_exit(f), CHILD_EXIT_PROTO << 8);
	stop(f);
}

static void
test_an_unknown_key_is_a_protocol_error(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, IPC_ROLE_FRONT, 0);
	send_config(&f, "NO_SUCH_KEY", "1");
	expect_protocol_exit(&f);
}

static void
test_a_message_of_the_wrong_state_is_a_protocol_error(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, IPC_ROLE_FRONT, 0);
	(void)close(send_peer(&f, 0, 1)); /* not before READY */
	expect_protocol_exit(&f);
}

static void
test_a_message_for_the_other_side_is_a_protocol_error(void **state)
{
	struct fixture f;

	(void)state;
	start_ready(&f, IPC_ROLE_FRONT);
	send_u32(&f, IPC_READY, 1);
	expect_protocol_exit(&f);
}

static void
test_a_peer_without_a_descriptor_is_a_protocol_error(void **state)
{
	struct fixture f;
	struct ipc_out o;

	(void)state;
	start_ready(&f, IPC_ROLE_FRONT);
	ipc_out_init(&o, IPC_PEER, 0);
	wire_put_u32(&o.b, 0);
	wire_put_u32(&o.b, 1);
	ipc_send(f.chan, &o);
	expect_protocol_exit(&f);
}

static void
test_a_peer_index_over_the_limit_is_a_protocol_error(void **state)
{
	struct fixture f;

	(void)state;
	start_ready(&f, IPC_ROLE_FRONT);
	(void)close(send_peer(&f, 64, 1));
	expect_protocol_exit(&f);
}

static void
test_trailing_bytes_are_a_protocol_error(void **state)
{
	struct fixture f;
	struct ipc_out o;

	(void)state;
	start_ready(&f, IPC_ROLE_FRONT);
	ipc_out_init(&o, IPC_DRAIN, 0);
	wire_put_u32(&o.b, 1000);
	wire_put_u8(&o.b, 0);
	ipc_send(f.chan, &o);
	expect_protocol_exit(&f);
}

static void
test_a_program_started_by_hand_says_what_to_start(void **state)
{
	char text[512] = "";
	int fds[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)dup2(fds[1], STDERR_FILENO);
		(void)close(CHILD_CTL_FD);
		run_child(IPC_ROLE_FRONT, 0);
	}
	(void)close(fds[1]);
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 64 << 8);
	assert_non_null(strstr(text, "front is started by mcp-sandboxd"));
	(void)close(fds[0]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_hello_says_version_role_index_and_pid),
	    cmocka_unit_test(test_ready_follows_the_complete_configuration),
	    cmocka_unit_test(test_a_failed_start_gives_its_reason_and_status),
	    cmocka_unit_test(test_an_error_code_as_status_is_a_bug),
	    cmocka_unit_test(test_a_ping_is_answered_with_its_time),
	    cmocka_unit_test(test_a_reload_takes_only_what_may_change),
	    cmocka_unit_test(test_the_log_level_changes),
	    cmocka_unit_test(test_the_listening_socket_comes_with_its_address),
	    cmocka_unit_test(test_a_peer_channel_works),
	    cmocka_unit_test(test_news_of_an_older_peer_is_dropped),
	    cmocka_unit_test(test_the_first_finished_work_is_reported_at_once),
	    cmocka_unit_test(test_dying_gives_the_reason),
	    cmocka_unit_test(
		test_the_end_of_the_channel_is_the_end_of_the_child),
	    cmocka_unit_test(test_a_drain_before_ready_ends_it),
	    cmocka_unit_test(test_an_unknown_key_is_a_protocol_error),
	    cmocka_unit_test(
		test_a_message_of_the_wrong_state_is_a_protocol_error),
	    cmocka_unit_test(
		test_a_message_for_the_other_side_is_a_protocol_error),
	    cmocka_unit_test(
		test_a_peer_without_a_descriptor_is_a_protocol_error),
	    cmocka_unit_test(
		test_a_peer_index_over_the_limit_is_a_protocol_error),
	    cmocka_unit_test(test_trailing_bytes_are_a_protocol_error),
	    cmocka_unit_test(test_a_program_started_by_hand_says_what_to_start),
	};

	return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
