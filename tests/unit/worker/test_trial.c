#include "tests/unit/worker/two_ways.h"

#include "common/conf.h"
#include "worker/trial.h"

#define ID "0123456789ab"

/* An engine and a carrier that wait to be told what to answer. */
static struct {
	struct conf *conf;
	struct policy policy;
	struct backend backend;
	struct door door;
	struct link *link;
	struct trial *trial;

	struct backend_spec spec;
	backend_created_cb created;
	backend_done_cb started, looked, removed;
	backend_container_cb inspected;
	void *arg;
	char removing[BACKEND_ID_MAX + 1];
	unsigned int creates, forgets, expects;
	bool open;
} fix;

static struct backend_create *
fix_create(struct backend *b, const struct backend_spec *spec,
    backend_created_cb cb, void *arg)
{
	(void)b;
	fix.creates++;
	fix.spec = *spec;
	fix.created = cb;
	fix.arg = arg;
	return NULL;
}

static void
fix_start(struct backend *b, const struct backend_handle *h, backend_done_cb cb,
    void *arg)
{
	(void)b;
	(void)h;
	(void)arg;
	fix.started = cb;
}

static void
fix_inspect(struct backend *b, const struct backend_handle *h,
    backend_container_cb cb, void *arg)
{
	(void)b;
	(void)h;
	(void)arg;
	fix.inspected = cb;
}

static void
fix_remove(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg)
{
	(void)b;
	(void)arg;
	(void)snprintf(
	    fix.removing, sizeof(fix.removing), "%s", backend_handle_text(h));
	fix.removed = cb;
}

static void
fix_look(struct backend *b, const char *ref, backend_done_cb cb, void *arg)
{
	(void)b;
	(void)ref;
	fix.looked = cb;
	fix.arg = arg;
}

static const struct backend_ops backend_ops = {.can = BACKEND_CAN_LOOK_IMAGE,
    .create = fix_create,
    .start = fix_start,
    .inspect = fix_inspect,
    .remove = fix_remove,
    .look_image = fix_look};

static int
fix_prepare(struct carrier *c, const struct uuid *box,
    struct backend_wishes *out, struct err *e)
{
	(void)box;
	(void)e;
	out->carrier = c->ops->name;
	return 0;
}

static int
fix_deliver(struct agent_delivery *d, const struct uuid *box,
    struct backend_wishes *out, struct err *e)
{
	(void)d;
	(void)box;
	(void)out;
	(void)e;
	return 0;
}

static int
fix_listen(struct carrier *c, const struct uuid *box, struct link *link,
    struct door **out, struct err *e)
{
	(void)box;
	(void)e;
	fix.door.ops = c->ops;
	fix.link = link;
	fix.open = true;
	*out = &fix.door;
	return 0;
}

static void
fix_expect(struct door *d, const struct backend_container *c)
{
	(void)d;
	(void)c;
	fix.expects++;
}

static void
fix_close(struct door *d)
{
	(void)d;
	fix.open = false;
}

static void
fix_forget(struct carrier *c, const struct uuid *box)
{
	(void)c;
	(void)box;
	fix.forgets++;
}

static const struct carrier_ops carrier_ops[] = {{.name = "unix",
						     .prepare = fix_prepare,
						     .listen = fix_listen,
						     .expect = fix_expect,
						     .close = fix_close,
						     .forget = fix_forget},
    {.name = "bridge", .forget = fix_forget}};
static const struct agent_delivery_ops delivery_ops = {
    .name = "mount", .prepare = fix_deliver};

static void
on_wanted(void)
{
	trial_start(fix.trial);
}

static int
setup(void **state)
{
	struct trial_of of = {.name = "srv-trial-1"};
	struct err e;

	(void)state;
	memset(&fix, 0, sizeof(fix));
	two_ways_init(&carrier_ops[0], &carrier_ops[1], &delivery_ops);
	two.on_wanted = on_wanted;
	fix.conf = conf_new();
	assert_int_equal(policy_init(&fix.policy, fix.conf, &e), 0);
	fix.backend.ops = &backend_ops;
	of.base = two.base;
	of.backend = &fix.backend;
	of.policy = &fix.policy;
	of.ways = &two.ways;
	of.first = two.first;
	of.other = two.other;
	fix.trial = trial_new(&of);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	fixture_settle(two.base);
	trial_free(fix.trial);
	policy_clear(&fix.policy);
	conf_free(fix.conf);
	two_ways_clear();
	return 0;
}

/* ---- what the engine says */

static void
created(int rc)
{
	struct backend_handle h = {.life = ""};
	struct err e;

	backend_handle_named(&h, ID);
	(void)err_set(&e, rc, "as told");
	fix.created(rc, rc == 0 ? &h : NULL, &e, fix.arg);
}

static void
started(int rc, const char *text)
{
	struct err e;

	(void)err_set(&e, rc, "%s", text);
	fix.started(rc, &e, fix.arg);
}

static void
inspected(bool running)
{
	struct backend_container c = {.running = running, .is_trial = true};

	backend_handle_named(&c.handle, ID);
	fix.inspected(0, &c, NULL, fix.arg);
}

static void
removed(void)
{
	assert_string_equal(fix.removing, ID);
	fix.removed(0, NULL, fix.arg);
}

/* As far as an agent that is waited for. */
static void
runs(void)
{
	(void)two_ways_ask();
	fixture_settle(two.base);
	created(0);
	started(0, "");
	inspected(true);
	assert_int_equal(fix.expects, 1);
}

TEST(the_agent_comes_and_its_way_is_chosen_when_the_box_is_gone)
{
	int fds[2];

	runs();
	assert_int_equal(
	    socketpair(
		AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
	    0);
	link_begin(fix.link, fds[0]);
	assert_false(fix.open);
	assert_null(two.ways.chosen);
	removed();
	assert_ptr_equal(two.ways.chosen, two.first);
	assert_int_equal(two.told, 1);
	assert_int_equal(two.rc, 0);
	assert_int_equal(fix.forgets, 2); /* by each way */
	(void)close(fds[1]);
}

TEST(its_box_is_none_of_the_servers)
{
	runs();
	assert_true(fix.spec.is_trial);
	assert_string_equal(fix.spec.name, "srv-trial-1");
	inspected(false); /* once more, so that it comes to its end */
	removed();
}

TEST(an_engine_that_does_not_see_the_directory_means_the_other_way)
{
	(void)two_ways_ask();
	fixture_settle(two.base);
	created(ERR_NOTFOUND);
	assert_ptr_equal(two.ways.chosen, two.other);
	assert_non_null(strstr(two.ways.why, "does not see"));
	assert_false(fix.open);
}

TEST(an_engine_that_sees_another_directory_means_the_other_way)
{
	(void)two_ways_ask();
	fixture_settle(two.base);
	created(0);
	started(ERR_BACKEND,
	    "start: the engine answers 400: exec: \"/.mcp-sandbox/agent\": "
	    "stat: no such file or directory");
	removed();
	assert_ptr_equal(two.ways.chosen, two.other);
}

TEST(a_box_that_ended_means_the_other_way_and_why)
{
	(void)two_ways_ask();
	fixture_settle(two.base);
	created(0);
	started(0, "");
	inspected(false);
	removed();
	assert_ptr_equal(two.ways.chosen, two.other);
	assert_non_null(strstr(two.ways.why, "ended"));
}

TEST(an_engine_that_cannot_now_is_no_answer)
{
	(void)two_ways_ask();
	fixture_settle(two.base);
	created(ERR_BACKEND);
	assert_null(two.ways.chosen);
	assert_int_equal(two.rc, ERR_BACKEND);
	(void)two_ways_ask();
	fixture_settle(two.base);
	assert_int_equal(fix.creates, 2);
	created(ERR_NOTFOUND);
	assert_int_equal(two.told, 2);
}

TEST(one_of_an_earlier_start_gives_way)
{
	(void)two_ways_ask();
	fixture_settle(two.base);
	created(ERR_CONFLICT);
	inspected(true);
	removed();
	assert_int_equal(fix.creates, 2);
	created(ERR_NOTFOUND);
	assert_ptr_equal(two.ways.chosen, two.other);
}

TEST(without_its_image_it_is_not_tried_unasked)
{
	struct err e;

	trial_look(fix.trial);
	(void)err_set(&e, ERR_WRONG_STATE, "its first use builds it");
	fix.looked(ERR_WRONG_STATE, &e, fix.arg);
	assert_int_equal(fix.creates, 0);
	assert_false(trial_is_busy(fix.trial));
	trial_look(fix.trial);
	fix.looked(0, NULL, fix.arg);
	assert_int_equal(fix.creates, 1);
	created(ERR_NOTFOUND);
}

TEST_MAIN(setup, teardown)
