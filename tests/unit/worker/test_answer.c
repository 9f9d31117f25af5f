#include <stdio.h>

#include "worker/docker/answer.h"
#include "tests/unit/test.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LABELS                                                                 \
	"{\"mcp.role\":\"sandbox\",\"mcp.instance_id\":\"i\",\"mcp.sandbox\":" \
	"\"ab000000-0000-0000-0000-000000000000\","                            \
	"\"mcp.created_at_unix_ms\":\"1700000000123\","                        \
	"\"mcp.tenant\":\"acme\","                                             \
	"\"mcp.policy_fingerprint\":\"0123456789abcdef\"}"

static int
container(const char *s, struct backend_container *c)
{
	static struct backend_report report;
	struct err e;

	return answer_container(s, strlen(s), "i", c, &report, &e);
}

TEST(a_running_container_is_read)
{
	struct backend_container c;

	assert_int_equal(container("{\"Id\":\"" ID
				   "\",\"State\":{\"Running\":true,\"Pid\":77,"
				   "\"Status\":\"running\",\"ExitCode\":0},"
				   "\"Config\":{\"Labels\":" LABELS "}}",
			     &c),
	    0);
	assert_string_equal(backend_handle_text(&c.handle), ID);
	assert_true(c.running && c.is_ours);
	assert_int_equal(c.pid, 77);
	assert_int_equal(c.created_ms, 1700000000123);
	assert_int_equal(c.identity.uuid.b[0], 0xab);
	assert_string_equal(c.identity.fingerprint, "0123456789abcdef");
	assert_string_equal(c.identity.tenant, "acme");
}

static struct backend_handle
started(int pid, const char *at)
{
	struct backend_container c;
	char s[400];

	(void)snprintf(s, sizeof(s),
	    "{\"Id\":\"" ID "\",\"State\":{\"Running\":true,\"Pid\":%d,"
	    "\"StartedAt\":\"%s\"},\"Config\":{\"Labels\":" LABELS "}}",
	    pid, at);
	assert_int_equal(container(s, &c), 0);
	return c.handle;
}

TEST(a_restart_begins_another_life)
{
	static const char t1[] = "2026-01-02T03:04:05.000000001Z";
	static const char t2[] = "2026-01-02T03:04:05.000000002Z";
	const struct backend_handle a = started(77, t1), b = started(77, t1);
	const struct backend_handle other = started(78, t1);
	const struct backend_handle later = started(77, t2);

	assert_true(backend_handle_is_same_life(&a, &b));
	assert_false(backend_handle_is_same_life(&a, &other));
	assert_false(backend_handle_is_same_life(&a, &later));
}

TEST(labels_of_another_are_not_ours)
{
	struct backend_container c;

	assert_int_equal(
	    container("{\"Id\":\"" ID "\",\"State\":{\"Running\":false},"
		      "\"Config\":{\"Labels\":{\"mcp.role\":\"sandbox\","
		      "\"mcp.instance_id\":\"other\",\"mcp.sandbox\":"
		      "\"ab000000-0000-0000-0000-000000000000\","
		      "\"mcp.created_at_unix_ms\":\"1\"}}}",
		&c),
	    0);
	assert_false(c.is_ours);
	assert_null(c.report);
}

TEST(of_a_container_that_rests_it_is_known_since_when)
{
	static const struct {
		const char *said;
		int64_t ms;
	} times[] = {{"2026-11-22T12:40:22.482123456Z", 1795351222000},
	    {"2026-11-22T14:40:22.482+02:00", 1795351222000},
	    {"2026-11-22T07:10:22-05:30", 1795351222000},
	    {"0001-01-01T00:00:00Z", 0}, {"1 hour ago", INT64_MAX},
	    {"2026-11-22T12:40:22.482", INT64_MAX}};
	struct backend_container c;

	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		char s[1024];

		(void)snprintf(s, sizeof(s),
		    "{\"Id\":\"" ID "\",\"Name\":\"/mcp-sbx-a-1\","
		    "\"State\":{\"Running\":false,\"FinishedAt\":\"%s\"},"
		    "\"Config\":{\"Labels\":" LABELS "}}",
		    times[i].said);
		assert_int_equal(container(s, &c), 0);
		assert_non_null(c.report);
		assert_string_equal(c.report->name, "mcp-sbx-a-1");
		assert_int_equal(c.report->finished_ms, times[i].ms);
	}
}

TEST(nothing_that_is_no_container_passes)
{
	static const char *const bad[] = {"", "null", "[]", "{}", "\"x\"",
	    "{\"Id\":\"../../x\",\"State\":{\"Running\":true,\"Pid\":7}}",
	    "{\"Id\":7,\"State\":{\"Running\":true,\"Pid\":7}}",
	    "{\"Id\":\"" ID "\"}", "{\"Id\":\"" ID "\",\"State\":[]}",
	    "{\"Id\":\"" ID "\",\"State\":{\"Running\":\"yes\"}}",
	    "{\"Id\":\"" ID "\",\"State\":{\"Running\":true}}",
	    "{\"Id\":\"" ID "\",\"State\":{\"Running\":true,\"Pid\":1}}",
	    "{\"Id\":\"" ID "\",\"State\":{\"Running\":true,\"Pid\":-7}}",
	    "{\"Id\":\"" ID
	    "\",\"State\":{\"Running\":true,\"Pid\":99999999999}}",
	    "{\"Id\":\"" ID
	    "\",\"State\":{\"Running\":false,\"ExitCode\":70000}}",
	    "{\"Id\":\"" ID "\",\"State\":{\"Running\":false}"};
	struct backend_container c;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(container(bad[i], &c), ERR_BACKEND);
}

TEST(json_that_is_too_deep_is_refused)
{
	char deep[4097];
	struct backend_container c;

	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(container(deep, &c), ERR_BACKEND);
}

TEST(a_list_leaves_out_what_it_cannot_read)
{
	static const char s[] =
	    "[{\"Id\":\"" ID "\",\"State\":\"running\",\"Labels\":" LABELS
	    "},{\"Id\":null},7,{\"Id\":\"" ID "\",\"State\":\"created\"}]";
	struct backend_container *list;
	struct err e;
	size_t n;

	assert_int_equal(answer_list(s, strlen(s), "i", &list, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_true(list[0].is_ours && list[0].running);
	assert_true(!list[1].is_ours && list[1].created);
	free(list);
}

static int
version(const char *newest, const char *oldest, char api[16])
{
	struct answer_version v = {.speak = ""};
	char s[128];
	struct err e;
	int rc;

	(void)snprintf(s, sizeof(s),
	    "{\"ApiVersion\":\"%s\",\"MinAPIVersion\":\"%s\"}", newest, oldest);
	rc = answer_version(s, strlen(s), &v, &e);
	memcpy(api, v.speak, 16);
	return rc;
}

TEST(the_version_is_as_near_to_ours_as_the_engine_allows)
{
	char api[16];

	assert_int_equal(version("1.41", "1.12", api), 0);
	assert_string_equal(api, "v1.41");
	assert_int_equal(version("1.52", "1.44", api), 0);
	assert_string_equal(api, "v1.44");
	assert_int_equal(version("1.40", "", api), 0);
	assert_string_equal(api, "v1.40");
	assert_int_equal(version("1.24", "1.12", api), 0);
	assert_string_equal(api, "v1.24");
	assert_int_equal(version("1.23", "1.12", api), ERR_BACKEND);
	assert_int_equal(version("2.0", "1.1", api), ERR_BACKEND);
	assert_int_equal(version("1.41/../x", "1.1", api), ERR_BACKEND);
	assert_int_equal(version("", "", api), ERR_BACKEND);
}

/* What these members say beside the version of the API. */
static struct answer_version
says(const char *members)
{
	struct answer_version v;
	char s[1000];
	struct err e;

	(void)snprintf(s, sizeof(s), "{\"ApiVersion\":\"1.41\",%s}", members);
	if (answer_version(s, strlen(s), &v, &e) != 0)
		fail_msg("%s", e.msg);
	return v;
}

static struct backend_about
about(const char *members)
{
	return says(members).about;
}

TEST(an_engine_says_what_it_is)
{
	struct backend_about a;

	a = about("\"Platform\":{\"Name\":\"\"},\"Components\":[{\"Name\":"
		  "\"Engine\"}],\"Version\":\"20.10.24+dfsg1\"");
	assert_string_equal(a.name, "Docker Engine");
	assert_string_equal(a.version, "20.10.24+dfsg1");
	assert_string_equal(a.api, "1.41");
	assert_string_equal(a.runtime, "");
	a = about("\"Platform\":{\"Name\":\"Docker Engine - Community\"},"
		  "\"Components\":[{\"Name\":\"Engine\"}]");
	assert_string_equal(a.name, "Docker Engine - Community");
	assert_string_equal(a.version, "");
	a = about("\"Platform\":{\"Name\":\"linux/amd64/debian-12\"},"
		  "\"Components\":[{\"Name\":\"Podman Engine\"}]");
	assert_string_equal(a.name, "Podman Engine");
}

TEST(a_hostile_engine_says_nothing_that_is_not_fit_to_be_shown)
{
	struct backend_about a;
	struct answer_version v;
	char s[600];
	struct err e;

	(void)snprintf(s, sizeof(s),
	    "\"Components\":[{\"Name\":\"a\\u001b[2J\\nb\"}],"
	    "\"Version\":\"%0500d\"",
	    0);
	a = about(s);
	assert_string_equal(a.name, "a [2J b");
	assert_int_equal(strlen(a.version), sizeof(a.version) - 1);
	assert_string_equal(about("\"Components\":{}").name, "");
	assert_int_equal(
	    answer_version("{\"ApiVersion\":[1]}", 18, &v, &e), ERR_BACKEND);
	assert_int_equal(answer_version("[]", 2, &v, &e), ERR_BACKEND);
	assert_int_equal(answer_version("{", 1, &v, &e), ERR_BACKEND);
}

TEST(podman_is_known_by_its_name)
{
	assert_true(
	    says("\"Components\":[{\"Name\":\"Podman Engine\"}]").is_podman);
	assert_false(
	    says("\"Components\":[1,{\"Name\":\"Engine\"}]").is_podman);
}

TEST(limits_that_are_not_enforced_show)
{
	static const char s[] = "{\"MemoryLimit\":true,\"CpuCfsQuota\":false,"
				"\"Runtimes\":{\"runc\":{}}}";
	struct answer_info info;
	struct err e;

	assert_int_equal(answer_info(s, strlen(s), "crun", &info, &e), 0);
	assert_true(info.memory_limit);
	assert_false(info.pids_limit);
	assert_false(info.cpu_quota);
	assert_false(info.has_runtime);
	assert_int_equal(answer_info(s, strlen(s), "", &info, &e), 0);
	assert_true(info.has_runtime);
	assert_int_equal(info.quota, ANSWER_QUOTA_NONE);
}

TEST(storage_says_whether_it_can_be_limited)
{
	static const struct {
		const char *info;
		enum answer_quota quota;
		const char *storage;
	} cases[] = {
	    {"{\"Driver\":\"btrfs\"}", ANSWER_QUOTA_WHOLE, "btrfs"},
	    {"{\"Driver\":\"overlay2\",\"DriverStatus\":[[\"x\",\"xfs\"],"
	     "[\"Backing Filesystem\",\"extfs\"]]}",
		ANSWER_QUOTA_NONE, "overlay2 on extfs"},
	    {"{\"Driver\":\"overlay2\",\"DriverStatus\":"
	     "[[\"Backing Filesystem\",\"xfs\"]]}",
		ANSWER_QUOTA_LAYER, "overlay2 on xfs"},
	    {"{\"Driver\":7,\"DriverStatus\":[7,[],[7],{}]}", ANSWER_QUOTA_NONE,
		"storage of no name"},
	};
	struct answer_info info;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *s = cases[i].info;

		assert_int_equal(answer_info(s, strlen(s), "", &info, &e), 0);
		assert_int_equal(info.quota, cases[i].quota);
		assert_string_equal(info.storage, cases[i].storage);
	}
}

TEST(events_say_what_happened_to_whom)
{
	static const char die[] = "{\"Action\":\"die\",\"Actor\":{\"ID\":\"" ID
				  "\",\"Attributes\":{\"exitCode\":\"137\"}}}";
	static const char other[] =
	    "{\"Action\":\"start\",\"Actor\":{\"ID\":\"" ID "\"}}";
	static const char forged[] =
	    "{\"Action\":\"die\",\"Actor\":{\"ID\":\"/\"}}";
	struct answer_event ev;
	struct err e;

	assert_int_equal(answer_event(die, strlen(die), &ev, &e), 1);
	assert_int_equal(ev.what, BACKEND_DIED);
	assert_string_equal(backend_handle_text(&ev.handle), ID);
	assert_int_equal(answer_event(other, strlen(other), &ev, &e), 0);
	assert_int_equal(answer_event(forged, strlen(forged), &ev, &e), 0);
	assert_int_equal(answer_event("{", 1, &ev, &e), ERR_BACKEND);
}

TEST(the_engines_words_are_made_printable)
{
	static const char s[] = "{\"message\":\"a\\u0007\\nb\\u001b[31mc\"}";
	char text[ANSWER_TEXT_MAX];
	char page[2000];

	answer_message(s, strlen(s), text);
	assert_string_equal(text, "a b [31mc");
	answer_message("<html>\n", 7, text);
	assert_string_equal(text, "<html>");
	memset(page, 'x', sizeof(page));
	answer_message(page, sizeof(page), text);
	assert_int_equal(strlen(text), ANSWER_TEXT_MAX - 1);
}

TEST(a_builds_failure_is_found_in_its_progress)
{
	static const char good[] = "{\"stream\":\"Step 1/2\"}";
	static const char fail[] =
	    "{\"errorDetail\":{\"message\":\"no\"},\"error\":\"no such\"}";
	char text[ANSWER_TEXT_MAX] = "";

	assert_int_equal(answer_progress(good, strlen(good), text), 0);
	assert_string_equal(text, "");
	assert_int_equal(answer_progress(fail, strlen(fail), text), 1);
	assert_string_equal(text, "no such");
}

TEST_MAIN(NULL, NULL)
