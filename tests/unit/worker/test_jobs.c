/* The job channel, with a front that may say anything. */
#include "tests/unit/worker/ground.h"

#include "common/fd.h"

static struct ipc_chan *their_end;
static char heard[256]; /* what the front was told, as words */
static bool closed;
static int close_code;

static int
heard_cb(struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	size_t used = strlen(heard);

	(void)c;
	(void)arg;
	(void)e;
	(void)snprintf(heard + used, sizeof(heard) - used, "%s%s",
	    used > 0 ? " " : "", ipc_type_name(m->type));
	return 0;
}

static const struct ipc_ops front_ops = {heard_cb, front_on_close, NULL};

static void
on_close(struct worker *w, const struct err *why)
{
	assert_ptr_equal(w, &ground.w);
	closed = true;
	close_code = why->code;
}

static int
setup(void **state)
{
	int fds[2];

	(void)ground_setup(state);
	heard[0] = '\0';
	closed = false;
	ipc_chan_free(ground.front.chan);
	ground.front.chan = ground.w.front = NULL;
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	their_end =
	    ipc_chan_new(ground.base, fds[1], "worker", &front_ops, NULL);
	worker_attach(&ground.w, fds[0], on_close);
	return 0;
}

static int
teardown(void **state)
{
	worker_detach(&ground.w);
	ipc_chan_free(their_end);
	return ground_teardown(state);
}

/* What was said is heard, and the channel is still there. */
static void
expect_accepted(void)
{
	fixture_settle(ground.base);
	assert_false(closed);
}

static void
expect_refused(void)
{
	fixture_settle(ground.base);
	assert_true(closed);
	assert_int_equal(close_code, ERR_PROTO);
}

/* ---- boxes */

static struct msg_sandbox_open
plain_open(void)
{
	return (struct msg_sandbox_open){.id = GROUND_SANDBOX,
	    .mode = MSG_OPEN_MODE_CREATE,
	    .uuid = ground_uuid,
	    .tenant = 1,
	    .tenant_name = "default",
	    .identifier = "a",
	    .name = GROUND_NAME,
	    .image = "",
	    .runtime = "",
	    .container_id = ""};
}

TEST(a_sandbox_is_opened_and_removed)
{
	const struct msg_sandbox_open open = plain_open();
	const struct msg_sandbox_remove gone = {.id = GROUND_SANDBOX,
	    .uuid = ground_uuid,
	    .tenant_name = "default",
	    .name = GROUND_NAME};

	msg_send_sandbox_open(their_end, &open);
	expect_accepted();
	assert_non_null(ground.created_cb);
	msg_send_sandbox_remove(their_end, &gone);
	expect_accepted();
	assert_true(ground.abandoned);
	ground_opened(ERR_WRONG_STATE);
	expect_accepted();
	assert_string_equal(heard, "SANDBOX_REMOVED");
}

TEST(a_name_that_could_leave_its_place_ends_the_channel)
{
	struct msg_sandbox_open open = plain_open();

	open.name = "../info";
	msg_send_sandbox_open(their_end, &open);
	expect_refused();
	assert_null(ground.created_cb);
}

TEST(an_id_that_is_none_ends_the_channel)
{
	struct msg_sandbox_open open = plain_open();

	open.mode = MSG_OPEN_MODE_ADOPT;
	open.container_id = "0123456789aB";
	msg_send_sandbox_open(their_end, &open);
	expect_refused();
	assert_int_equal(ground.inspects.n, 0);
}

TEST(a_removal_of_no_good_name_ends_the_channel)
{
	const struct msg_sandbox_remove gone = {
	    .id = 1, .uuid = ground_uuid, .tenant_name = "t", .name = "a/b"};

	msg_send_sandbox_remove(their_end, &gone);
	expect_refused();
}

TEST(a_number_that_is_in_use_ends_the_channel)
{
	const struct msg_sandbox_open open = plain_open();

	msg_send_sandbox_open(their_end, &open);
	msg_send_sandbox_open(their_end, &open);
	expect_refused();
}

/* ---- runs */

static void
encode_spec(struct buf *b)
{
	char text[] = "true", cwd[] = "/workspace", deny[] = "";
	char *argv[] = {text, NULL}, *env[] = {NULL};
	struct runspec_command command = {.argv = argv,
	    .argc = 1,
	    .env = env,
	    .cwd = cwd,
	    .timeout_ms = 1000,
	    .flags = RUNSPEC_SHELL,
	    .deny = deny};
	struct runspec spec = {.commands = &command, .ncommands = 1};
	struct err e;

	buf_init(b, RUNSPEC_BYTES_MAX);
	assert_int_equal(runspec_encode(&spec, b, &e), 0);
}

static struct msg_run_start
plain_run(void)
{
	struct task_start s = ground_task(1);
	struct msg_run_start m = {.id = s.id,
	    .tenant = s.tenant,
	    .sandbox = GROUND_SANDBOX,
	    .uuid = s.uuid,
	    .spool_limit = s.spool_limit,
	    .spool = s.spool,
	    .spec_file = -1};

	free(s.spec);
	return m;
}

TEST(a_spec_comes_in_the_message)
{
	struct msg_run_start m = plain_run();
	struct buf spec;

	encode_spec(&spec);
	m.spec = (struct span){buf_data(&spec), buf_len(&spec)};
	msg_send_run_start(their_end, &m);
	expect_accepted();
	assert_string_equal(heard, "RUN_ENDED"); /* there is no box */
	buf_clear(&spec);
}

TEST(a_spec_comes_in_a_sealed_file)
{
	struct msg_run_start m = plain_run();
	struct buf spec;
	struct err e;

	encode_spec(&spec);
	m.spec_file =
	    fd_memfd_sealed("spec", buf_data(&spec), buf_len(&spec), &e);
	assert_true(m.spec_file >= 0);
	msg_send_run_start(their_end, &m);
	expect_accepted();
	assert_string_equal(heard, "RUN_ENDED");
	buf_clear(&spec);
}

TEST(a_run_without_a_spec_ends_the_channel)
{
	const struct msg_run_start m = plain_run();

	msg_send_run_start(their_end, &m);
	expect_refused();
}

TEST(a_spec_that_is_none_ends_the_channel)
{
	struct msg_run_start m = plain_run();

	m.spec = (struct span){(const uint8_t *)"rubbish", 7};
	msg_send_run_start(their_end, &m);
	expect_refused();
}

TEST(a_spool_without_a_limit_ends_the_channel)
{
	struct msg_run_start m = plain_run();
	struct buf spec;

	encode_spec(&spec);
	m.spec = (struct span){buf_data(&spec), buf_len(&spec)};
	m.spool_limit = 0;
	msg_send_run_start(their_end, &m);
	expect_refused();
	buf_clear(&spec);
}

TEST(words_about_runs_that_are_over_are_passed_over)
{
	msg_send_run_cancel(their_end,
	    &(struct msg_run_cancel){.id = 5, .reason = RUNLOG_CANCELED});
	msg_send_run_forget(their_end, &(struct msg_run_forget){.id = 5});
	msg_send_artifact_fd(their_end,
	    &(struct msg_artifact_fd){.id = 5, .refusal = "no", .file_fd = -1});
	msg_send_sandbox_settled(
	    their_end, &(struct msg_sandbox_settled){.id = 5});
	expect_accepted();
	assert_string_equal(heard, "");
}

/* ---- the rest */

TEST(a_sweep_asks_the_backend)
{
	msg_send_sweep(
	    their_end, &(struct msg_sweep){.uuids = {ground_uuid.b, 16}});
	msg_send_sweep_end(their_end,
	    &(struct msg_sweep_end){.asof_wall_ms = 1, .keep_ms = 1});
	expect_accepted();
	ground_listed(0, NULL, 0);
	expect_accepted();
	assert_string_equal(heard, "SWEPT");
}

TEST(a_sweep_of_half_a_uuid_ends_the_channel)
{
	msg_send_sweep(
	    their_end, &(struct msg_sweep){.uuids = {ground_uuid.b, 15}});
	expect_refused();
}

static void
say_tenants(const char *names, size_t n)
{
	msg_send_tenants(their_end,
	    &(struct msg_tenants){.names = {(const uint8_t *)names, n}});
}

TEST(tenants_are_named_to_the_backend)
{
	say_tenants("acme\0Globex_1", sizeof("acme\0Globex_1"));
	expect_accepted();
	say_tenants("", 0);
	expect_accepted();
	assert_string_equal(ground.named, "acme Globex_1 ");
}

TEST(a_name_of_a_tenant_that_is_cut_ends_the_channel)
{
	say_tenants("acme\0glo", 8);
	expect_refused();
}

TEST(a_name_that_is_no_tenants_ends_the_channel)
{
	say_tenants("acme\0a/b", sizeof("acme\0a/b"));
	expect_refused();
}

TEST(the_engines_state_is_told_once_it_is_known)
{
	expect_accepted();
	assert_string_equal(heard, "");
	worker_watch.on_state(true, "", &ground.w);
	expect_accepted();
	assert_string_equal(heard, "CARRIER_IS WORKER_STATE");
}

TEST(what_the_engine_is_is_told_before_it_is_up)
{
	static const struct backend_about about = {.name = "Docker Engine",
	    .version = "20.10.24",
	    .api = "1.41",
	    .runtime = "runc"};

	worker_watch.on_about(&about, &ground.w);
	worker_watch.on_state(true, "", &ground.w);
	expect_accepted();
	assert_string_equal(heard, "ENGINE_IS CARRIER_IS WORKER_STATE");
	worker_watch.on_state(false, "gone", &ground.w);
	expect_accepted();
	assert_string_equal(heard,
	    "ENGINE_IS CARRIER_IS WORKER_STATE "
	    "CARRIER_IS WORKER_STATE");
}

TEST_MAIN(setup, teardown)
