#include "tests/unit/worker/fake_engine.h"
#include "worker/boxes.h"
#include "worker/opening.h"
#include "worker/ceilings.h"
#include "worker/backends.h"
#include "worker/docker/docker.h"

#define OPENINGS_MAX 16
#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UUID_TEXT "ab000000-0000-0000-0000-000000000000"
#define OTHER_TEXT "cd000000-0000-0000-0000-000000000000"
/* One sandbox, of the tenant "full". */
#define LIST                                                                   \
	"[{\"Id\":\"" ID "\",\"State\":\"running\",\"Labels\":{"               \
	"\"mcp.role\":\"sandbox\",\"mcp.instance_id\":\"inst\","               \
	"\"mcp.tenant\":\"full\","                                             \
	"\"mcp.sandbox\":\"ef000000-0000-0000-0000-000000000000\","            \
	"\"mcp.created_at_unix_ms\":\"5\"}}]"

struct fixture {
	struct event_base *base;
	struct fake_engine engine;
	struct conf *conf;
	struct policy policy;
	struct backend *backend;
	struct ceilings *ceilings; /* of the tenant "full": one sandbox */
	struct box_host host;
	struct openings openings;
	bool told;
	bool up;
	char detail[ERR_TEXT_MAX];
};
static struct fixture fix;

struct result {
	bool done;
	int rc;
	char id[BACKEND_ID_MAX + 1];
	char why[ERR_TEXT_MAX];
};

/* What the fake engine does with the calls of a sandbox's making. */
static int create_status, start_status, inspect_status, image_status;
static const char *inspect_uuid;
static bool inspect_running, hang_create, hang_image;
static bool is_podman;      /* whose conflicts have another status */
static const char *storage; /* of info */
static unsigned int creates, deletes, images, lists;
static unsigned int refused;   /* the create that is, as one with a quota */
static unsigned int conflicts; /* creates that meet one */
static unsigned int updates, refused_updates;

static void
on_state(bool up, const char *detail, void *arg)
{
	(void)arg;
	fix.told = true;
	fix.up = up;
	(void)snprintf(fix.detail, sizeof(fix.detail), "%s", detail);
}

static void
on_change(const struct backend_handle *h, enum backend_change what, void *arg)
{
	(void)h;
	(void)what;
	(void)arg;
}

static const struct backend_watch watch = {
    .on_state = on_state, .on_change = on_change};

static const char *
answer_inspect(void)
{
	static char s[1024];

	if (inspect_status != 200)
		return fake_engine_reply(
		    inspect_status, "{\"message\":\"no such container\"}");
	(void)snprintf(s, sizeof(s),
	    "{\"Id\":\"" ID "\",\"State\":{\"Running\":%s,\"Pid\":%d,"
	    "\"Status\":\"%s\",\"ExitCode\":1},\"Config\":{\"Labels\":{"
	    "\"mcp.role\":\"sandbox\",\"mcp.instance_id\":\"inst\","
	    "\"mcp.tenant\":\"default\","
	    "\"mcp.sandbox\":\"%s\",\"mcp.created_at_unix_ms\":\"5\","
	    "\"mcp.policy_fingerprint\":\"%s\"}}}",
	    inspect_running ? "true" : "false", inspect_running ? 99 : 0,
	    inspect_running ? "running" : "exited", inspect_uuid,
	    fix.policy.fingerprint);
	return fake_engine_reply(200, s);
}

static const char *
answer_create(void)
{
	creates++;
	if (hang_create)
		return NULL;
	if (creates == refused)
		return fake_engine_reply(
		    500, "{\"message\":\"--storage-opt is not for you\"}");
	if (create_status == 409 && creates > conflicts) {
		create_status = 201;
		inspect_status = 200;
	}
	if (create_status == 409 && is_podman)
		return fake_engine_reply(
		    500, "{\"message\":\"the name is already in use\"}");
	if (create_status != 201)
		return fake_engine_reply(
		    create_status, "{\"message\":\"as told\"}");
	inspect_running = true;
	inspect_uuid = UUID_TEXT;
	return fake_engine_reply(201, "{\"Id\":\"" ID "\",\"Warnings\":null}");
}

static int
own_cpus(void)
{
	cpu_set_t own;

	assert_int_equal(sched_getaffinity(0, sizeof(own), &own), 0);
	return CPU_COUNT(&own);
}

static const char *
answer_info_call(void)
{
	static char s[256];

	(void)snprintf(s, sizeof(s),
	    "{\"MemoryLimit\":true,\"PidsLimit\":false,"
	    "\"CpuCfsQuota\":true,\"Driver\":\"%s\",\"NCPU\":%d}",
	    storage, own_cpus());
	return fake_engine_reply(200, s);
}

static const char *
answer(struct fake_engine *f, const char *method, const char *path)
{
	(void)f;
	if (strcmp(path, "/_ping") == 0)
		return fake_engine_reply(200, "OK");
	if (strcmp(path, "/version") == 0)
		return fake_engine_reply(200,
		    "{\"ApiVersion\":\"1.41\",\"MinAPIVersion\":\"1.12\"}");
	if (strstr(path, "/info") != NULL)
		return answer_info_call();
	if (strstr(path, "/events") != NULL)
		return NULL;
	if (strstr(path, "/images/") != NULL) {
		images++;
		return hang_image ?
		    NULL :
		    fake_engine_reply(image_status, "{\"Id\":\"sha256:00\"}");
	}
	if (strstr(path, "/update") != NULL)
		return fake_engine_reply(
		    ++updates <= refused_updates ? 400 : 200, "{}");
	if (strstr(path, "/containers/create") != NULL)
		return answer_create();
	if (strstr(path, "/containers/json") != NULL) {
		lists++;
		return fake_engine_reply(200, LIST);
	}
	if (strcmp(method, "DELETE") == 0) {
		deletes++;
		return fake_engine_reply(deletes == 1 ? 409 : 404, "{}");
	}
	if (strstr(path, "/start") != NULL)
		return fake_engine_reply(
		    start_status, "{\"message\":\"no start\"}");
	return answer_inspect();
}

static struct backend_start
start_of_fix(void)
{
	return (struct backend_start){.base = fix.base,
	    .instance_id = "inst",
	    .policy = &fix.policy,
	    .watch = &watch};
}

static int
setup(void **state)
{
	struct backend_start start;
	char host[100];
	struct err e;

	memset(&fix, 0, sizeof(fix));
	create_status = 201;
	start_status = 204;
	inspect_status = image_status = 200;
	inspect_uuid = UUID_TEXT;
	inspect_running = hang_create = hang_image = is_podman = false;
	refused = 0;
	storage = "overlay2";
	creates = deletes = images = lists = 0;
	updates = refused_updates = 0;
	conflicts = 1;
	fix.base = event_base_new();
	fix.conf = conf_new();
	assert_int_equal(policy_init(&fix.policy, fix.conf, &e), 0);
	fake_engine_init(&fix.engine, fix.base);
	fix.engine.answer = answer;
	(void)snprintf(host, sizeof(host), "unix://%s", fix.engine.path);
	assert_int_equal(conf_set(fix.conf, "DOCKER_HOST", host, &e), 0);
	assert_int_equal(
	    conf_set(fix.conf, "AUTO_BUILD_SANDBOX_IMAGE", "false", &e), 0);
	start = start_of_fix();
	assert_int_equal(
	    backend_open_configured(fix.conf, &start, &fix.backend, &e), 0);
	fix.host = (struct box_host){.base = fix.base,
	    .backend = fix.backend,
	    .policy = &fix.policy,
	    .openings_max = OPENINGS_MAX};
	openings_init(&fix.openings, &fix.host);
	*state = &fix;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	fix.backend->ops->free(fix.backend);
	fake_engine_clear(&fix.engine);
	fixture_settle(fix.base);
	event_base_free(fix.base);
	ceilings_free(fix.ceilings);
	policy_clear(&fix.policy);
	conf_free(fix.conf);
	return 0;
}

static void
opened_cb(int rc, const struct box_opened *o, const struct err *why, void *arg)
{
	struct result *r = arg;

	assert_false(r->done);
	r->done = true;
	r->rc = rc;
	if (rc == 0)
		(void)snprintf(r->id, sizeof(r->id), "%s",
		    backend_handle_text(&o->c.handle));
	else
		(void)snprintf(r->why, sizeof(r->why), "%s", why->msg);
}

static struct box_opening *
open_of(struct result *r, const char *tenant, const char *uuid)
{
	static const char *const command[] = {"/agent", NULL};
	static const struct backend_wishes wishes = {.command = command};
	struct backend_spec spec = {.name = "mcp-sbx-a",
	    .template = {.image = "img", .runtime = ""},
	    .claim = {.identifier = "a"},
	    .wishes = &wishes};
	struct box_opening *o;

	fixture_loop(fix.base, &fix.told);
	memset(r, 0, sizeof(*r));
	(void)snprintf(
	    spec.identity.tenant, sizeof(spec.identity.tenant), "%s", tenant);
	assert_int_equal(uuid_parse(uuid, &spec.identity.uuid), 0);
	memcpy(spec.identity.fingerprint, fix.policy.fingerprint,
	    sizeof(spec.identity.fingerprint));
	/* It copies what it needs of spec. */
	o = opening_start(&fix.openings, &spec, opened_cb, r);
	assert_false(r->done);
	// cppcheck-suppress returnDanglingLifetime
	return o;
}

static struct box_opening *
open_one(struct result *r)
{
	return open_of(r, "default", UUID_TEXT);
}

TEST(a_sandbox_is_made_from_image_to_inspect)
{
	struct result r;

	(void)open_one(&r);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, 0);
	assert_string_equal(r.id, ID);
	assert_int_equal(creates, 1);
}

TEST(an_engine_that_refuses_a_quota_is_asked_for_none)
{
	struct result r;

	storage = "zfs";
	refused = 1;
	(void)open_one(&r);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, 0);
	assert_int_equal(creates, 2);
	(void)open_one(&r);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, 0);
	assert_int_equal(creates, 3); /* it is known now */
}

/* The engine had failed for another reason. */
TEST(a_quota_is_asked_for_again)
{
	struct result r;

	storage = "zfs";
	refused = 1;
	for (int i = 0; i < 17; i++) {
		(void)open_one(&r);
		fixture_loop(fix.base, &r.done);
		assert_int_equal(r.rc, 0);
	}
	assert_int_equal(creates, 18);
	refused = 19;
	(void)open_one(&r);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, 0); /* with one it failed, without it did not */
	assert_int_equal(creates, 20);
}

/* The engine makes it for a worker that died: its name is taken, and it is not
 * to be seen yet. */
TEST(a_name_that_is_being_made_is_waited_for)
{
	struct result r;

	create_status = 409;
	conflicts = 3;
	inspect_status = 404;
	(void)open_one(&r);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, 0);
	assert_int_equal(creates, 4);
	assert_int_equal(deletes, 0);
}

TEST(podmans_conflict_is_one)
{
	is_podman = true;
	body_a_name_that_is_being_made_is_waited_for(state);
}

TEST(an_engine_without_a_limit_is_up_and_complained_about)
{
	fixture_loop(fix.base, &fix.told);
	assert_true(fix.up);
	assert_non_null(
	    strstr(fix.detail, "does not enforce limits of processes"));
}

TEST(a_name_that_another_sandbox_of_ours_has_is_taken)
{
	struct result r;

	create_status = 409;
	inspect_uuid = OTHER_TEXT;
	inspect_running = true;
	(void)open_one(&r);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, 0);
	assert_int_equal(creates, 2);
	/* "in progress" at first, then gone: seen through */
	assert_int_equal(deletes, 2);
}

TEST(a_running_container_of_the_same_uuid_is_taken_over)
{
	struct result r;

	create_status = 409;
	inspect_running = true;
	(void)open_one(&r);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, 0);
	assert_int_equal(creates, 1);
	assert_int_equal(deletes, 0);
}

TEST(a_refused_create_passes_the_engines_words_on)
{
	struct result r;

	create_status = 500;
	(void)open_one(&r);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_string_equal(r.why, "create: the engine answers 500: as told");
	assert_int_equal(deletes, 0);
}

TEST(a_container_that_does_not_start_is_removed)
{
	struct result r;

	start_status = 500;
	(void)open_one(&r);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_non_null(strstr(r.why, "no start"));
	assert_int_equal(deletes, 2);
}

TEST(an_abandoned_open_leaves_nothing)
{
	struct box_opening *o;
	struct result r;

	hang_image = true;
	o = open_one(&r);
	fixture_settle(fix.base);
	opening_abandon(o);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, ERR_WRONG_STATE);
	assert_int_equal(creates, 0);
}

TEST(an_image_is_asked_for_once_by_many)
{
	struct result r[6];

	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		(void)open_one(&r[i]);
	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		fixture_loop(fix.base, &r[i].done);
		assert_int_equal(r[i].rc, 0);
	}
	assert_int_equal(images, 1);
	assert_int_equal(creates, 6);
}

/* Else who is at its ceiling and goes on asking keeps all others waiting. */
TEST(what_there_is_is_not_asked_again_for_one_that_was_refused)
{
	struct result full, other;
	struct err e;

	fix.host.ceilings = fix.ceilings = ceilings_new();
	assert_int_equal(
	    ceilings_say(fix.ceilings, "full", "ceiling.sandboxes=1", &e), 0);
	assert_int_equal(
	    ceilings_say(fix.ceilings, "default", "ceiling.sandboxes=1", &e),
	    0);
	(void)open_of(&full, "full", OTHER_TEXT);
	(void)open_of(&other, "default", UUID_TEXT);
	fixture_loop(fix.base, &full.done);
	assert_int_equal(full.rc, ERR_LIMIT);
	fixture_loop(fix.base, &other.done);
	assert_int_equal(other.rc, 0);
	assert_int_equal(lists, 2);
	assert_int_equal(creates, 1);
}

/* An honest front asks for fewer. */
TEST(more_than_a_few_at_a_time_are_refused)
{
	static struct result r[OPENINGS_MAX + 1]; /* told at the end, too */

	hang_image = true;
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		(void)open_one(&r[i]);
	fixture_loop(fix.base, &r[OPENINGS_MAX].done);
	assert_int_equal(r[OPENINGS_MAX].rc, ERR_LIMIT);
	for (size_t i = 0; i < OPENINGS_MAX; i++)
		assert_false(r[i].done);
}

TEST(a_missing_image_is_an_error_of_the_moment_only)
{
	struct result r;

	image_status = 404;
	(void)open_one(&r);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_non_null(strstr(r.why, "image img is missing"));
	image_status = 200;
	(void)open_one(&r);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, 0);
}

static void
container_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct result *r = arg;

	(void)c;
	(void)why;
	r->done = true;
	r->rc = rc;
}

TEST(gone_and_unknown_are_told_apart)
{
	struct backend_handle handle;
	struct result r = {0};

	backend_handle_named(&handle, "x1");
	fixture_loop(fix.base, &fix.told);
	inspect_status = 404;
	fix.backend->ops->inspect(fix.backend, &handle, container_cb, &r);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, ERR_NOTFOUND);
	inspect_status = 500;
	r.done = false;
	fix.backend->ops->inspect(fix.backend, &handle, container_cb, &r);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, ERR_BACKEND);
}

TEST(a_host_that_is_no_place_is_refused)
{
	const struct backend_start start = start_of_fix();
	struct backend *b;
	struct err e;

	assert_int_equal(
	    conf_set(fix.conf, "DOCKER_HOST", "tcp://127.0.0.1", &e), 0);
	assert_int_equal(
	    backend_open_configured(fix.conf, &start, &b, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "DOCKER_HOST"));
}

static void
bounded_cb(int rc, const struct err *why, void *arg)
{
	struct result *r = arg;

	(void)why;
	r->done = true;
	r->rc = rc;
}

/* How many updates the engine saw for it. */
static unsigned int
bound_once(uint64_t nano_cpus, unsigned int refuse, int *rc)
{
	const struct backend_bounds bounds = {
	    .cpu_shares = 64, .nano_cpus = nano_cpus, .cpus = 1};
	struct backend_handle h;
	struct result r = {0};

	updates = 0;
	refused_updates = refuse;
	backend_handle_named(&h, ID);
	fix.backend->ops->set_bounds(fix.backend, &h, &bounds, bounded_cb, &r);
	fixture_loop(fix.base, &r.done);
	*rc = r.rc;
	return updates;
}

TEST(an_engine_that_refuses_processors_is_asked_for_none)
{
	int rc;

	fixture_loop(fix.base, &fix.told);
	assert_int_equal(bound_once(0, 0, &rc), 1);
	assert_int_equal(rc, 0);
	/* Twice, and a box that takes them again is between. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(bound_once(0, 1, &rc), 2);
		assert_int_equal(rc, 0);
	}
	assert_int_equal(bound_once(0, 0, &rc), 1);
	/* A quota in both forms, each with and without processors. */
	assert_int_equal(bound_once(1000, 4, &rc), 4);
	assert_int_not_equal(rc, 0);
	assert_int_equal(bound_once(1000, 3, &rc), 4);
	assert_int_equal(rc, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(bound_once(0, 1, &rc), 2);
		assert_int_equal(rc, 0);
	}
	/* From then on they are not asked for. */
	assert_int_equal(bound_once(0, 1, &rc), 1);
	assert_int_not_equal(rc, 0);
	assert_int_equal(bound_once(0, 0, &rc), 1);
	assert_int_equal(rc, 0);
}

TEST_MAIN(setup, teardown)
