#include "common/js.h"
#include "common/msg/msg_gen.h"
#include "common/xmalloc.h"
#include "worker/docker/answer.h"
#include "worker/docker/isolation.h"
#include "tests/unit/test.h"

static char profile[] = "{\"profile\":1}";
static struct policy policy = {.seccomp = profile};

/* What is written of an inspection; NULL: nothing. */
static json_t *
written(const char *inspection, const struct isolation_host *h)
{
	static char out[BACKEND_ISOLATION_MAX + 1];
	json_t *o = NULL;
	struct err e;

	isolation_write(inspection, strlen(inspection), h, out);
	if (out[0] == '\0')
		return NULL;
	assert_int_equal(
	    js_parse(out, strlen(out), BACKEND_ISOLATION_MAX, 8, &o, &e), 0);
	return o;
}

static void
expect(const char *inspection, const struct isolation_host *h, const char *want)
{
	AUTO(auto_json) json_t *o = written(inspection, h);
	char *got = js_dump(o);

	assert_string_equal(got, want);
	free(got);
}

TEST(what_the_engine_shows_is_said)
{
	AUTO(auto_json)
	json_t *advisories = json_pack("{s:[s]}", "open", "CVE-1");

	expect("{\"Config\":{\"NetworkDisabled\":true,\"Cmd\":[\"-k\",\"3\","
	       "\"-b\",\"4096\",\"-n\",\"70\"]},\"HostConfig\":{\"Runtime\":"
	       "\"crun\",\"NetworkMode\":\"bridge\",\"ReadonlyRootfs\":true,"
	       "\"SecurityOpt\":[\"no-new-privileges\","
	       "\"seccomp={\\\"profile\\\":1}\"],\"CapDrop\":[\"ALL\"],"
	       "\"CapAdd\":[\"CHOWN\"],\"Memory\":1024,\"NanoCpus\":500000000,"
	       "\"PidsLimit\":9}}",
	    &(struct isolation_host){.policy = &policy,
		.has_seccomp = true,
		.has_own_users = true,
		.advisories = advisories},
	    "{\"runtime\":\"crun\",\"seccomp\":\"server\","
	    "\"users_remapped\":true,\"no_new_privileges\":true,"
	    "\"privileged\":false,\"capabilities_dropped\":[\"ALL\"],"
	    "\"capabilities_added\":[\"CHOWN\"],\"network\":\"none\","
	    "\"read_only_root\":true,\"limits\":{\"memory_bytes\":1024,"
	    "\"cpus\":0.5,\"pids\":9,\"disk_bytes\":4096,\"disk_by\":"
	    "\"agent\",\"disk_files\":70},\"advisories\":{\"open\":"
	    "[\"CVE-1\"]}}");
}

TEST(what_was_asked_for_and_is_not_there_is_not_said)
{
	expect("{\"HostConfig\":{\"NetworkMode\":\"host\",\"UsernsMode\":"
	       "\"host\",\"Privileged\":true,\"StorageOpt\":{\"size\":"
	       "\"8192\"}}}",
	    &(struct isolation_host){
		.policy = &policy, .has_seccomp = true, .has_own_users = true},
	    "{\"runtime\":\"\",\"seccomp\":\"unconfined\","
	    "\"users_remapped\":false,\"no_new_privileges\":false,"
	    "\"privileged\":true,\"capabilities_dropped\":[],"
	    "\"capabilities_added\":[],\"network\":\"host\","
	    "\"read_only_root\":false,\"limits\":{\"memory_bytes\":0,"
	    "\"cpus\":0.0,\"pids\":0,\"disk_bytes\":8192,\"disk_by\":"
	    "\"engine\",\"disk_files\":0}}");
}

TEST(whose_seccomp_profile_it_is)
{
	static const struct {
		const char *option, *word;
		bool has_seccomp;
	} rows[] = {{"", "engine", true},
	    {"\"seccomp=unconfined\"", "unconfined", true},
	    {"\"seccomp:unconfined\"", "unconfined", true},
	    {"\"seccomp={}\"", "other", true},
	    {"\"seccomp={\\\"profile\\\":1}\"", "server", true},
	    {"\"seccomp={\\\"profile\\\":1}\"", "not enforced", false},
	    {"7, \"seccompx\"", "engine", true}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *s = xasprintf(
		    "{\"HostConfig\":{\"SecurityOpt\":[%s]}}", rows[i].option);
		AUTO(auto_json)
		json_t *o = written(s,
		    &(struct isolation_host){
			.policy = &policy, .has_seccomp = rows[i].has_seccomp});

		assert_string_equal(js_text(o, "seccomp"), rows[i].word);
		free(s);
	}
}

TEST(what_is_of_no_good_type_is_nothing)
{
	static const char wrong[] =
	    "{\"HostConfig\":{\"Runtime\":{},\"SecurityOpt\":{\"seccomp\":1},"
	    "\"CapAdd\":[1,null,\"\",\"low\",\"A\\\"B\"],\"Memory\":-5,"
	    "\"NanoCpus\":\"1\",\"PidsLimit\":null,\"StorageOpt\":{\"size\":"
	    "\"1e9\"}},\"Config\":{\"Cmd\":[\"-b\",\"-1\",7,\"-n\"]}}";
	static const char *const odd[] = {
	    "{}", "{\"HostConfig\":[],\"Config\":7}", wrong};
	struct isolation_host h = {.policy = &policy, .has_seccomp = true};

	for (size_t i = 0; i < ARRAY_LEN(odd); i++)
		expect(odd[i], &h,
		    "{\"runtime\":\"\",\"seccomp\":\"engine\","
		    "\"users_remapped\":false,\"no_new_privileges\":false,"
		    "\"privileged\":false,\"capabilities_dropped\":[],"
		    "\"capabilities_added\":[],\"network\":\"\","
		    "\"read_only_root\":false,\"limits\":{\"memory_bytes\":0,"
		    "\"cpus\":0.0,\"pids\":0,\"disk_bytes\":0,\"disk_by\":"
		    "\"nobody\",\"disk_files\":0}}");
	assert_null(written("[]", &h));
	assert_null(written("{", &h));
}

static void
assert_seccomp(const char *runtime, const char *word)
{
	struct isolation_host h = {.policy = &policy, .has_seccomp = true};
	AUTO(auto_json) json_t *got = NULL;
	char text[96];

	(void)snprintf(text, sizeof(text),
	    "{\"HostConfig\":{\"Runtime\":\"%s\"}}", runtime);
	got = written(text, &h);
	assert_string_equal(js_text(got, "seccomp"), word);
}

TEST(gvisor_enforces_no_profile)
{
	assert_seccomp("runc", "engine");
	assert_seccomp("runsc", "not enforced");
}

TEST(users_of_its_own_are_another_hosts)
{
	struct isolation_host h = {.policy = &policy};
	AUTO(auto_json)
	json_t *own = written("{\"HostConfig\":{\"UsernsMode\":\"auto\"}}", &h);
	AUTO(auto_json)
	json_t *usual = written("{\"HostConfig\":{\"UsernsMode\":\"\"}}", &h);

	assert_true(json_is_true(json_object_get(own, "users_remapped")));
	assert_true(json_is_false(json_object_get(usual, "users_remapped")));
}

/* The largest that can be fits what takes it further. */
TEST(a_lying_engine_is_cut)
{
	json_t *host = json_object(), *caps = json_array();
	AUTO(auto_json) json_t *o = json_pack("{s:o}", "HostConfig", host);
	AUTO(auto_json) json_t *ids = json_array();
	AUTO(auto_json)
	json_t *advisories =
	    json_pack("{s:O, s:O}", "open", ids, "unknown", ids);
	struct isolation_host h = {.policy = &policy, .advisories = advisories};
	AUTO(auto_json) json_t *got = NULL;
	char quotes[2001], name[33];
	char *s;

	for (size_t i = 0; i < 24; i++) /* OPEN_ADVISORIES_MAX */
		json_array_append_new(ids, json_string("CVE-2026-1234567"));
	memset(quotes, '"', sizeof(quotes) - 1);
	quotes[sizeof(quotes) - 1] = '\0';
	memset(name, 'A', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 0; i < 500; i++)
		json_array_append_new(caps, json_string(name));
	json_array_append_new(caps, json_string(quotes));
	json_object_set_new(host, "CapAdd", caps);
	json_object_set(host, "CapDrop", caps);
	json_object_set_new(host, "Runtime", json_string(quotes));
	json_object_set_new(host, "NetworkMode", json_string(quotes));
	json_object_set_new(host, "Memory", json_integer(INT64_MAX));
	json_object_set_new(host, "NanoCpus", json_integer(INT64_MAX));
	s = js_dump(o);
	got = written(s, &h);
	free(s);
	assert_non_null(got);
	assert_int_equal(strlen(js_text(got, "runtime")), 64);
	assert_int_equal(strlen(js_text(got, "network")), 64);
	assert_int_equal(
	    json_array_size(json_object_get(got, "capabilities_added")), 41);
	assert_true(BACKEND_ISOLATION_MAX <= MSG_SANDBOX_READY_ISOLATION_MAX);
}

TEST_MAIN(NULL, NULL)
