#include "tests/unit/worker/fake_engine.h"
#include "worker/backends.h"
#include "worker/link/delivery_image.h"

#include <openssl/sha.h>

#include "common/clock.h"
#include "common/frame.h"
#include "common/hex.h"

#define BASE "sha256:ba5e"
#define PREPARED "sha256:9e9a"
#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER_DIGEST                                                           \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define PROGRAM "not much of a program"

struct fixture {
	struct event_base *base;
	struct fake_engine engine;
	struct conf *conf;
	struct policy policy;
	struct backend *backend;
	struct backend_wishes wishes;
	struct backend_spec spec;
	char agent[64]; /* its path */
	char digest[HEX_BYTES(SHA256_DIGEST_LENGTH)];
	bool told;
};
static struct fixture fix;

struct result {
	bool done;
	int rc;
	char why[ERR_TEXT_MAX];
};

/* What the engine has, and does. */
static bool has_image, has_commit_labels, hang_commit;
static int commit_status, remove_status;
static const char *message;
static char images[8192], preparings[2048];
static char asked[65536]; /* all that changes something, a line each */

static const char *
answer_prepared(void)
{
	AUTO(auto_free) char *body = NULL;

	if (!has_image)
		return fake_engine_reply(404, "{\"message\":\"none such\"}");
	body =
	    xasprintf("{\"Id\":\"" PREPARED "\",\"Config\":{\"Labels\":{"
		      "\"mcp.role\":\"prepared\",\"mcp.prepared_agent\":\"%s\","
		      "\"mcp.prepared_base\":\"%s\"}}}",
		fix.digest, has_commit_labels ? BASE : "sha256:0ther");
	return fake_engine_reply(200, body);
}

static const char *
answer_commit(void)
{
	AUTO(auto_free) char *body = NULL;

	if (hang_commit)
		return NULL;
	has_image = commit_status == 201;
	body = xasprintf("{\"message\":\"%s\"}", message);
	return fake_engine_reply(commit_status, body);
}

static const char *
answer(struct fake_engine *f, const char *method, const char *path)
{
	bool reads = strcmp(method, "GET") == 0;

	(void)f;
	if (!reads) {
		size_t n = strlen(asked);

		(void)snprintf(
		    asked + n, sizeof(asked) - n, "%s %s\n", method, path);
	}
	if (strcmp(path, "/_ping") == 0)
		return fake_engine_reply(200, "OK");
	if (strcmp(path, "/version") == 0)
		return fake_engine_reply(200, "{\"ApiVersion\":\"1.41\"}");
	if (strstr(path, "/info") != NULL)
		return fake_engine_reply(200, "{\"MemoryLimit\":true}");
	if (strstr(path, "/events") != NULL)
		return NULL;
	if (strstr(path, "/images/json") != NULL)
		return fake_engine_reply(200, images);
	if (strstr(path, "/containers/json") != NULL)
		return fake_engine_reply(200, preparings);
	if (reads && strstr(path, "/prepared:") != NULL)
		return answer_prepared();
	if (reads && strstr(path, "/images/") != NULL)
		return fake_engine_reply(200, "{\"Id\":\"" BASE "\"}");
	if (strstr(path, "/commit") != NULL)
		return answer_commit();
	if (strcmp(method, "DELETE") == 0)
		return fake_engine_reply(remove_status, "{}");
	return fake_engine_reply(
	    strstr(path, "/create") != NULL ? 201 : 200, "{\"Id\":\"" ID "\"}");
}

static void
on_state(bool up, const char *detail, void *arg)
{
	(void)up;
	(void)detail;
	(void)arg;
	fix.told = true;
}

static void
on_change(const struct backend_handle *h, enum backend_change what, void *arg)
{
	(void)h;
	(void)what;
	(void)arg;
}

static void
write_program(const char *text)
{
	FILE *f = fopen(fix.agent, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void
open_backend(void)
{
	static const struct backend_watch watch = {
	    .on_state = on_state, .on_change = on_change};
	const struct backend_start start = {.base = fix.base,
	    .instance_id = "inst",
	    .index = 3,
	    .agent = fix.agent,
	    .policy = &fix.policy,
	    .watch = &watch};
	AUTO(auto_free) char *host = xasprintf("unix://%s", fix.engine.path);
	struct err e;

	assert_int_equal(policy_init(&fix.policy, fix.conf, &e), 0);
	assert_int_equal(conf_set(fix.conf, "DOCKER_HOST", host, &e), 0);
	assert_int_equal(
	    backend_open_configured(fix.conf, &start, &fix.backend, &e), 0);
}

static int
setup(void **state)
{
	struct agent_delivery *d = delivery_image_new();
	uint8_t digest[SHA256_DIGEST_LENGTH];
	struct err e;

	memset(&fix, 0, sizeof(fix));
	has_image = hang_commit = false;
	has_commit_labels = true;
	commit_status = 201;
	remove_status = 204;
	message = "as told";
	(void)strcpy(images, "[]");
	(void)strcpy(preparings, "[]");
	asked[0] = '\0';
	fix.base = event_base_new();
	fix.conf = conf_new();
	fake_engine_init(&fix.engine, fix.base);
	fix.engine.answer = answer;
	(void)snprintf(fix.agent, sizeof(fix.agent), "/tmp/prepare-agent-%ld",
	    (long)getpid());
	write_program(PROGRAM);
	(void)SHA256((const uint8_t *)PROGRAM, strlen(PROGRAM), digest);
	hex_encode(digest, sizeof(digest), fix.digest);
	assert_int_equal(
	    d->ops->prepare(d, &(struct uuid){{0}}, &fix.wishes, &e), 0);
	free(d);
	fix.spec = (struct backend_spec){.name = "box",
	    .identity = {.tenant = "t"},
	    .template = {.image = "img", .runtime = ""},
	    .claim = {.identifier = "a"},
	    .wishes = &fix.wishes};
	open_backend();
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
	policy_clear(&fix.policy);
	conf_free(fix.conf);
	(void)unlink(fix.agent);
	return 0;
}

static void
created_cb(
    int rc, const struct backend_handle *h, const struct err *why, void *arg)
{
	struct result *r = arg;

	(void)h;
	assert_false(r->done);
	r->done = true;
	r->rc = rc;
	if (rc != 0)
		(void)snprintf(r->why, sizeof(r->why), "%s", why->msg);
}

static struct backend_create *
ask_one(struct result *r)
{
	fixture_loop(fix.base, &fix.told);
	memset(r, 0, sizeof(*r));
	return fix.backend->ops->create(fix.backend, &fix.spec, created_cb, r);
}

static void
make_one(struct result *r)
{
	(void)ask_one(r);
	fixture_loop(fix.base, &r->done);
}

static unsigned int
count(const char *what)
{
	unsigned int n = 0;

	for (const char *s = asked; (s = strstr(s, what)) != NULL; s++)
		n++;
	return n;
}

static void
await(const char *what, unsigned int n)
{
	uint64_t end = clock_mono_ms() + FIXTURE_WAIT_MS;
	struct timeval tv = {0, 5000};

	while (count(what) < n) {
		assert_true(clock_mono_ms() < end);
		(void)event_base_loopexit(fix.base, &tv);
		(void)event_base_loop(fix.base, EVLOOP_ONCE);
	}
}

#define BOX "/containers/mcp-prepare-inst-3-ba5e"

TEST(an_image_is_made_by_a_container_that_goes)
{
	struct result r;

	make_one(&r);
	assert_int_equal(r.rc, 0);
	assert_int_equal(count("POST /v1.41/containers/create?name=mcp-prepare-"
			       "inst-3-ba5e\n"),
	    1);
	assert_int_equal(
	    count("PUT /v1.41" BOX "/archive?path=%2F\nPOST /v1.41/commit?"
		  "container=mcp-prepare-inst-3-ba5e&repo=localhost%2F"
		  "mcp-sandboxd%2Fprepared&tag="),
	    1);
	assert_int_equal(count("DELETE /v1.41" BOX "?force=1&v=1\n"), 1);
	assert_int_equal(count("create?name=box\n"), 1);
}

TEST(many_share_one_preparing)
{
	struct result r[5];

	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		(void)ask_one(&r[i]);
	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		fixture_loop(fix.base, &r[i].done);
		assert_int_equal(r[i].rc, 0);
	}
	assert_int_equal(count("/commit"), 1);
	assert_int_equal(count("create?name=box\n"), 5);
}

TEST(one_that_is_there_is_not_made)
{
	struct result r;

	has_image = true;
	make_one(&r);
	assert_int_equal(r.rc, 0);
	assert_int_equal(count("/commit"), 0);
}

/* Whoever gave it that name, it was not made of this base. */
TEST(one_with_other_labels_is_not_taken)
{
	struct result r;

	has_image = true;
	has_commit_labels = false;
	make_one(&r);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_int_equal(count("/commit"), 1);
	assert_non_null(strstr(r.why, "keeps no labels"));
	assert_int_equal(count("create?name=box\n"), 0);
}

TEST(a_full_disk_is_said_and_the_container_goes)
{
	struct result r;

	commit_status = 500;
	message = "write /x: no space left on device";
	make_one(&r);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_non_null(strstr(r.why,
	    "image img cannot be given the agent's program: commit: the engine "
	    "answers 500: write /x: no space left on device; make room"));
	assert_int_equal(count("DELETE /v1.41" BOX), 1);
}

TEST(one_that_is_not_wanted_any_more_is_told_and_the_image_is_made)
{
	struct backend_create *cr;
	struct result r;

	hang_commit = true;
	cr = ask_one(&r);
	await("/commit", 1);
	fix.backend->ops->abandon(fix.backend, cr);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, ERR_WRONG_STATE);
	assert_int_equal(count("create?name=box\n"), 0);
}

TEST(an_engine_that_goes_at_it_is_cleaned_when_it_is_back)
{
	struct result r;

	hang_commit = true;
	(void)ask_one(&r);
	await("/commit", 1);
	fake_engine_clear(&fix.engine);
	fixture_loop(fix.base, &r.done);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_null(strstr(r.why, "let this server"));
	(void)snprintf(preparings, sizeof(preparings),
	    "[{\"Id\":\"" ID "\",\"Labels\":{\"mcp.role\":\"prepared\","
	    "\"mcp.prepared_agent\":\"%s\",\"mcp.prepared_base\":\"" BASE
	    "\",\"mcp.prepared_by\":\"inst-3\","
	    "\"mcp.created_at_unix_ms\":\"5\"}}]",
	    fix.digest);
	asked[0] = '\0';
	fake_engine_listen(&fix.engine);
	await("DELETE /v1.41/containers/" ID "?force=1&v=1\n", 1);
}

TEST(a_program_that_was_changed_is_put_into_nothing)
{
	struct result r;

	write_program("another one");
	make_one(&r);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_non_null(strstr(r.why, "was changed: restart the server"));
	assert_int_equal(count("PUT"), 0);
	assert_int_equal(count("DELETE /v1.41" BOX), 1);
}

/* ---- what is removed */

static void add(char *list, size_t size, const char *fmt, ...) PRINTF(3, 4);

static void
add(char *list, size_t size, const char *fmt, ...)
{
	size_t n = strlen(list) - 1; /* "]" */
	va_list ap;

	if (n > 1)
		list[n++] = ',';
	va_start(ap, fmt);
	n += (size_t)vsnprintf(list + n, size - n, fmt, ap);
	va_end(ap);
	assert_true(n + 2 < size);
	(void)strcpy(list + n, "]");
}

static void
add_image(const char *id, const char *tags, const char *digests, int64_t age_s,
    const char *agent, const char *of)
{
	add(images, sizeof(images),
	    "{\"Id\":\"%s\",\"RepoTags\":%s,\"RepoDigests\":%s,"
	    "\"Created\":%lld,\"Labels\":{\"mcp.role\":\"%s\","
	    "\"mcp.prepared_agent\":\"%s\",\"mcp.prepared_base\":\"%s\"}}",
	    id, tags, digests, (long long)(clock_wall_ms() / 1000 - age_s),
	    agent == NULL ? "sandbox" : "prepared",
	    agent == NULL ? fix.digest : agent, of);
}

/* Another look around, which an image that was made brings about. */
static void
look_around(void)
{
	struct result r;

	make_one(&r);
	assert_int_equal(r.rc, 0);
	asked[0] = '\0'; /* and the next good ping */
}

#define OURS "[\"localhost/mcp-sandboxd/prepared:a-b\"]"
#define NONE "[\"<none>:<none>\"]"
#define NO_DIGEST "[\"<none>@<none>\"]"
#define DAY 86400

TEST(images_that_nobody_needs_are_removed_and_no_others)
{
	add_image(BASE, "[\"img:latest\"]", NO_DIGEST, 0, NULL, "");
	add_image("sha256:bydigest", NONE, "[\"img@sha256:1\"]", 0, NULL, "");
	add_image("sha256:nameless", NONE, NO_DIGEST, 0, NULL, "");
	/* Kept. */
	add_image(PREPARED, OURS, "[]", 2 * DAY, fix.digest, "sha256:gone");
	add_image("sha256:k1", OURS, "[]", 2 * DAY, fix.digest, BASE);
	add_image("sha256:k2", OURS, "[]", DAY - 60, OTHER_DIGEST, BASE);
	add_image(
	    "sha256:k3", OURS, "null", DAY - 60, fix.digest, "sha256:bydigest");
	add_image("sha256:k4", "[\"mine:1\"]", "[]", 2 * DAY, fix.digest,
	    "sha256:gone");
	add_image("sha256:k5", "[]", "[]", 2 * DAY, NULL, "sha256:gone");
	/* Removed. */
	add_image("sha256:r1", OURS, "[]", 0, fix.digest, "sha256:gone");
	add_image("sha256:r2", OURS, "[]", 0, OTHER_DIGEST, "sha256:nameless");
	add_image("sha256:r3", NONE, NO_DIGEST, 0, fix.digest, BASE);
	add_image("sha256:r4", OURS, "[]", DAY + 60, OTHER_DIGEST, BASE);
	add_image(
	    "sha256:r5", OURS, "[]", DAY + 60, fix.digest, "sha256:bydigest");
	look_around();
	await("DELETE", 5);
	fixture_settle(fix.base);
	assert_int_equal(count("DELETE"), 5);
	assert_int_equal(count("DELETE /v1.41/images/sha256:r"), 5);
	assert_int_equal(count("?noprune=1\n"), 5);
}

TEST(containers_of_others_are_removed_when_they_are_old)
{
	static const struct {
		const char *by;
		int64_t age_ms;
	} rows[] = {{"inst-3", 0}, {"inst-4", 3500000}, {"inst-4", 3700000}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		add(preparings, sizeof(preparings),
		    "{\"Id\":\"%zu%s\",\"Labels\":{\"mcp.role\":\"prepared\","
		    "\"mcp.prepared_agent\":\"%s\","
		    "\"mcp.prepared_base\":\"" BASE "\","
		    "\"mcp.prepared_by\":\"%s\","
		    "\"mcp.created_at_unix_ms\":\"%lld\"}}",
		    i, &ID[1], fix.digest, rows[i].by,
		    (long long)(clock_wall_ms() - rows[i].age_ms));
	look_around();
	await("DELETE", 2);
	fixture_settle(fix.base);
	assert_int_equal(count("DELETE"), 2);
	assert_int_equal(count("/containers/1"), 0);
}

TEST_MAIN(setup, teardown)
