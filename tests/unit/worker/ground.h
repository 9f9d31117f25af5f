/*
 * ground.h - a whole worker between a front, a backend and a carrier that do
 * what the test says
 *
 * The backend keeps what it is asked and answers when told to, as one whose
 * engine may be slow, wrong or away.  The carrier makes links that keep what
 * is sent.  What the front is told is collected as words.
 */
#ifndef TESTS_WORKER_GROUND_H
#define TESTS_WORKER_GROUND_H

#include "tests/unit/worker/fixture.h"

#include "common/conf.h"
#include "common/runspec.h"
#include "worker/worker.h"
#include "tests/unit/test.h"

#define GROUND_ASKED_MAX BOXES_UNKNOWN_MAX
#define GROUND_NAME "mcp-sbx-a-01"
#define GROUND_ID "0123456789ab"
#define GROUND_SANDBOX 7

struct ground_ask {
	char what[BACKEND_ID_MAX + 1]; /* id or name */
	backend_container_cb container_cb;
	backend_done_cb done_cb;
	backend_list_cb list_cb;
	void *arg;
};
struct ground_asks {
	struct ground_ask all[GROUND_ASKED_MAX];
	size_t n;
};

struct ground {
	struct event_base *base;
	struct conf *conf;
	struct worker w;
	struct front front;

	struct backend backend;
	enum backend_users users;
	backend_created_cb created_cb; /* NULL: nothing is being created */
	void *created_arg;
	bool abandoned;
	struct ground_asks starts, inspects, removes, stops, shares, lists;
	struct ground_asks files;         /* asked to forget them */
	enum backend_forget files_forgot; /* asked last */
	char named[64];               /* tenants, each with a blank behind it */
	int64_t pid;                  /* of what it shows */
	struct backend_bounds bounds; /* asked last */

	struct carrier carrier;
	struct door door;
	struct agent_delivery delivery;
	struct fake_link link;
	int64_t expected; /* the process that is let in; 0: nobody yet */
	int prepare_rc, deliver_rc;
	unsigned int listens, forgets, sweeps;
	uint32_t leftovers; /* what a sweep of the carrier finds */

	char told[512]; /* "READY LOST", what the front heard */
};
static struct ground ground;

static const struct uuid ground_uuid = {{0xab}};

/* ---- the backend */

static inline void
ground_ask_add(struct ground_asks *q, struct ground_ask ask, const char *what)
{
	assert_true(q->n < GROUND_ASKED_MAX);
	(void)snprintf(ask.what, sizeof(ask.what), "%s", what);
	q->all[q->n++] = ask;
}

static inline void
ground_ask_done(struct ground_asks *q, const struct backend_handle *h,
    backend_done_cb cb, void *arg)
{
	ground_ask_add(q, (struct ground_ask){.done_cb = cb, .arg = arg},
	    backend_handle_text(h));
}

/* ground_ask_take - the oldest; the test fails when there is none */
static inline struct ground_ask
ground_ask_take(struct ground_asks *q)
{
	struct ground_ask ask = q->all[0];

	assert_true(q->n > 0);
	q->n--;
	memmove(&q->all[0], &q->all[1], q->n * sizeof(q->all[0]));
	return ask;
}

static inline struct backend_create *
ground_create(struct backend *b, const struct backend_spec *spec,
    backend_created_cb cb, void *arg)
{
	(void)b;
	assert_string_equal(spec->name, GROUND_NAME);
	assert_true(uuid_is_equal(&spec->identity.uuid, &ground_uuid));
	assert_null(ground.created_cb);
	ground.created_cb = cb;
	ground.created_arg = arg;
	return (struct backend_create *)&ground;
}

static inline void
ground_abandon(struct backend *b, struct backend_create *c)
{
	(void)b;
	assert_ptr_equal(c, &ground);
	ground.abandoned = true;
}

static inline void
ground_start(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg)
{
	(void)b;
	ground_ask_done(&ground.starts, h, cb, arg);
}

static inline void
ground_inspect(struct backend *b, const struct backend_handle *h,
    backend_container_cb cb, void *arg)
{
	(void)b;
	ground_ask_add(&ground.inspects,
	    (struct ground_ask){.container_cb = cb, .arg = arg},
	    backend_handle_text(h));
}

static inline void
ground_remove(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg)
{
	(void)b;
	ground_ask_done(&ground.removes, h, cb, arg);
}

static inline void
ground_stop(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg)
{
	(void)b;
	ground_ask_done(&ground.stops, h, cb, arg);
}

static inline void
ground_set_bounds(struct backend *b, const struct backend_handle *h,
    const struct backend_bounds *bounds, backend_done_cb cb, void *arg)
{
	(void)b;
	ground.bounds = *bounds;
	ground_ask_done(&ground.shares, h, cb, arg);
}

static inline void
ground_list(struct backend *b, backend_list_cb cb, void *arg)
{
	(void)b;
	ground_ask_add(
	    &ground.lists, (struct ground_ask){.list_cb = cb, .arg = arg}, "");
}

static inline enum backend_users
ground_users(const struct backend *b)
{
	(void)b;
	return ground.users;
}

static inline void
ground_forget_files(struct backend *b, const struct box_identity *id,
    const struct backend_files *files, backend_done_cb cb, void *arg)
{
	(void)b;
	assert_true(uuid_is_equal(&id->uuid, &ground_uuid));
	ground.files_forgot = files->forget;
	ground_ask_add(
	    &ground.files, (struct ground_ask){.done_cb = cb, .arg = arg}, "");
}

static inline void
ground_name_tenant(struct backend *b, const char *tenant)
{
	size_t n = strlen(ground.named);

	(void)b;
	(void)snprintf(
	    ground.named + n, sizeof(ground.named) - n, "%s ", tenant);
}

static const struct backend_ops ground_backend_ops = {.can = BACKEND_HAS_PID |
	BACKEND_HAS_MOUNTS | BACKEND_CAN_STOP | BACKEND_CAN_BOUND,
    .create = ground_create,
    .abandon = ground_abandon,
    .start = ground_start,
    .inspect = ground_inspect,
    .remove = ground_remove,
    .stop = ground_stop,
    .set_bounds = ground_set_bounds,
    .is_id = policy_is_id,
    .users = ground_users,
    .list = ground_list,
    .name_tenant = ground_name_tenant};

/* ground_can - the backend can this and nothing else, in this test */
static inline void
ground_can(unsigned int can)
{
	static struct backend_ops ops;

	ops = ground_backend_ops;
	ops.can = can;
	ops.stop = (can & BACKEND_CAN_STOP) != 0 ? ops.stop : NULL;
	ops.set_bounds = (can & BACKEND_CAN_BOUND) != 0 ? ops.set_bounds : NULL;
	ground.backend.ops = &ops;
}

/* ground_keeps_files - in this test files outlive a box */
static inline void
ground_keeps_files(void)
{
	static struct backend_ops ops;

	ops = ground_backend_ops;
	ops.forget_files = ground_forget_files;
	ground.backend.ops = &ops;
}

/* ---- its answers */

/* ground_container - ours, running, as we would make it */
static inline struct backend_container
ground_container(void)
{
	struct backend_container c = {.running = true,
	    .is_ours = true,
	    .identity = {.uuid = ground_uuid, .tenant = "default"}};

	backend_handle_named(&c.handle, GROUND_ID);
	memcpy(c.handle.life, "first", sizeof("first"));
	c.pid = ground.pid;
	memcpy(c.identity.fingerprint, ground.w.policy.fingerprint,
	    sizeof(c.identity.fingerprint));
	return c;
}

static inline void
ground_created(int rc)
{
	const struct backend_container c = ground_container();
	backend_created_cb cb = ground.created_cb;
	struct err e;

	assert_non_null(cb);
	ground.created_cb = NULL;
	if (rc != 0)
		(void)err_set(&e, rc, "as told");
	cb(rc, rc == 0 ? &c.handle : NULL, rc == 0 ? NULL : &e,
	    ground.created_arg);
}

static inline void
ground_inspected(int rc, const struct backend_container *c)
{
	struct ground_ask ask = ground_ask_take(&ground.inspects);
	struct err e;

	if (rc != 0)
		(void)err_set(&e, rc, "as told");
	ask.container_cb(rc, rc == 0 ? c : NULL, rc == 0 ? NULL : &e, ask.arg);
}

static inline void
ground_done(struct ground_asks *q, int rc)
{
	struct ground_ask ask = ground_ask_take(q);
	struct err e;

	if (rc != 0)
		(void)err_set(&e, rc, "as told");
	ask.done_cb(rc, rc == 0 ? NULL : &e, ask.arg);
}

/* ground_opened - all steps to a box that runs, or the first one fails */
static inline void
ground_opened(int rc)
{
	const struct backend_container c = ground_container();

	ground_created(rc);
	if (ground.starts.n == 0)
		return;
	ground_done(&ground.starts, 0);
	ground_inspected(0, &c);
}

static inline void
ground_removed(int rc)
{
	ground_done(&ground.removes, rc);
}

static inline void
ground_stopped(int rc)
{
	ground_done(&ground.stops, rc);
}

static inline void
ground_listed(int rc, const struct backend_container *list, size_t n)
{
	struct ground_ask ask = ground_ask_take(&ground.lists);
	struct err e;

	if (rc != 0)
		(void)err_set(&e, rc, "as told");
	ask.list_cb(rc, list, n, rc == 0 ? NULL : &e, ask.arg);
}

/* ---- the carrier */

static inline int
ground_prepare(struct carrier *c, const struct uuid *box,
    struct backend_wishes *out, struct err *e)
{
	(void)c;
	(void)box;
	(void)out;
	return ground.prepare_rc == 0 ?
	    0 :
	    err_set(e, ground.prepare_rc, "no room for a link");
}

static inline int
ground_deliver(struct agent_delivery *d, const struct uuid *box,
    struct backend_wishes *out, struct err *e)
{
	(void)d;
	(void)box;
	(void)out;
	return ground.deliver_rc == 0 ?
	    0 :
	    err_set(e, ground.deliver_rc, "no room for an agent");
}

static const struct agent_delivery_ops ground_delivery_ops = {
    .name = "ground", .prepare = ground_deliver};

static inline int
ground_listen(struct carrier *c, const struct uuid *box, struct link *link,
    struct door **out, struct err *e)
{
	(void)box;
	(void)e;
	ground.listens++;
	fake_link_clear(&ground.link);
	fake_link_take(&ground.link, link);
	ground.door.ops = c->ops;
	*out = &ground.door;
	return 0;
}

static inline void
ground_expect(struct door *d, const struct backend_container *c)
{
	assert_ptr_equal(d, &ground.door);
	ground.expected = c->pid;
}

static inline void
ground_close(struct door *d)
{
	assert_ptr_equal(d, &ground.door);
	assert_false(ground.link.l->dead);
}

static inline void
ground_forget(struct carrier *c, const struct uuid *box)
{
	(void)c;
	(void)box;
	ground.forgets++;
}

static inline uint32_t
ground_sweep(struct carrier *c, int64_t before_ms,
    bool (*keep)(const struct uuid *, void *), void *arg)
{
	(void)c;
	(void)before_ms;
	(void)keep;
	(void)arg;
	ground.sweeps++;
	return ground.leftovers;
}

static const struct carrier_ops ground_carrier_ops = {.name = "ground",
    .prepare = ground_prepare,
    .listen = ground_listen,
    .expect = ground_expect,
    .close = ground_close,
    .forget = ground_forget,
    .sweep = ground_sweep};

static inline void
ground_link_closes(int code)
{
	struct err e;

	if (code == ERR_LOST) {
		fake_link_lose(&ground.link);
		return;
	}
	(void)err_set(&e, code, "as told");
	ground.link.l->user->on_close(&e, ground.link.l->arg);
}

/* ---- the front */

/* ground_told - what the front heard since the last time, as words */
static inline const char *
ground_told(void)
{
	struct front *f = &ground.front;
	ssize_t n;

	fixture_settle(ground.base);
	ground.told[0] = '\0';
	while (
	    (n = recv(f->fd, f->packet, sizeof(f->packet), MSG_DONTWAIT)) > 0)
		for (size_t at = 0; at < (size_t)n;) {
			size_t size, used = strlen(ground.told);
			struct ipc_msg m;
			struct err e;

			assert_int_equal(ipc_msg_parse(&m, f->packet + at,
					     (size_t)n - at, 0, &size, &e),
			    0);
			(void)snprintf(ground.told + used,
			    sizeof(ground.told) - used, "%s%s",
			    used > 0 ? " " : "", ipc_type_name(m.type));
			at += size;
		}
	return ground.told;
}

/* ground_box - one that the front asks for */
static inline void
ground_box(enum msg_open_mode mode)
{
	const struct box_start s = {.sandbox = GROUND_SANDBOX,
	    .tenant = 1,
	    .tenant_name = "default",
	    .mode = mode,
	    .uuid = ground_uuid,
	    .name = GROUND_NAME,
	    .container_id = mode == MSG_OPEN_MODE_ADOPT ? GROUND_ID : "",
	    .template = {.image = "", .runtime = ""},
	    .claim = {.identifier = "a"}};
	struct err e;

	assert_int_equal(boxes_open(ground.w.boxes, &s, &e), 0);
}

/* ground_remove_box - the front wants it gone */
static inline void
ground_remove_box(void)
{
	const struct msg_sandbox_remove m = {.id = GROUND_SANDBOX,
	    .uuid = ground_uuid,
	    .tenant_name = "default",
	    .name = GROUND_NAME};
	struct err e;

	assert_int_equal(boxes_remove(ground.w.boxes, &m, &e), 0);
}

static inline struct tasks_item *
ground_find_task(uint64_t number)
{
	struct tasks_item *it;
	struct err e;

	assert_int_equal(
	    boxes_find_task(ground.w.boxes, number, 1, &it, &e), 0);
	return it;
}

/* ground_task - RUN_START's, with an empty spool and a spec of one command */
static inline struct task_start
ground_task(uint64_t number)
{
	char path[] = "/tmp/worker-test-spool-XXXXXX";
	struct task_start s = {.id = number,
	    .tenant = 1,
	    .uuid = {{(uint8_t)number}},
	    .spool_limit = 1 << 20,
	    .spec = xmemdup("spec", 4),
	    .nspec = 4,
	    .ncommands = 1};

	s.spool = mkostemp(path, O_APPEND | O_CLOEXEC);
	assert_true(s.spool >= 0);
	(void)unlink(path);
	return s;
}

/* ---- life */

static inline int
ground_setup(void **state)
{
	const struct way *way;
	struct err e;

	(void)state;
	memset(&ground, 0, sizeof(ground));
	ground.link.fd = -1;
	ground.pid = 99;
	ground.base = event_base_new();
	ground.conf = conf_new();
	assert_int_equal(
	    worker_init(&ground.w, ground.base, ground.conf, &e), 0);
	ground.backend.ops = &ground_backend_ops;
	ground.carrier.ops = &ground_carrier_ops;
	ground.delivery.ops = &ground_delivery_ops;
	ground.w.box_host.backend = &ground.backend;
	way = ways_add(&ground.w.ways, &ground.carrier, &ground.delivery);
	ways_choose(&ground.w.ways, way, "as tests have it");
	front_init(&ground.front, ground.base);
	ground.w.front = ground.front.chan;
	return 0;
}

/* What is still to be called is, as when a backend is freed. */
static inline int
ground_teardown(void **state)
{
	(void)state;
	if (ground.created_cb != NULL)
		ground_created(ERR_WRONG_STATE);
	while (ground.starts.n > 0)
		ground_done(&ground.starts, ERR_WRONG_STATE);
	while (ground.inspects.n > 0)
		ground_inspected(ERR_WRONG_STATE, NULL);
	while (ground.lists.n > 0)
		ground_listed(ERR_WRONG_STATE, NULL, 0);
	while (ground.removes.n > 0)
		ground_removed(ERR_WRONG_STATE);
	while (ground.shares.n > 0)
		ground_done(&ground.shares, ERR_WRONG_STATE);
	while (ground.stops.n > 0)
		ground_stopped(ERR_WRONG_STATE);
	worker_clear(&ground.w);
	fake_link_clear(&ground.link);
	front_clear(&ground.front);
	fixture_settle(ground.base);
	event_base_free(ground.base);
	conf_free(ground.conf);
	return 0;
}

#endif
