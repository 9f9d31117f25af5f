#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/js.h"
#include "worker/policy.h"
#include "worker/profile.h"

struct profile_fixture;
#define TEST_STATE struct profile_fixture *f
#include "tests/unit/test.h"

struct profile_fixture {
	struct conf *conf;
	char path[64];
};

static int
setup(void **state)
{
	static struct profile_fixture f;
	int fd;

	f.conf = conf_new();
	(void)snprintf(
	    f.path, sizeof(f.path), "/tmp/worker-test-profile-XXXXXX");
	fd = mkostemp(f.path, O_CLOEXEC);
	assert_true(fd >= 0);
	(void)close(fd);
	*state = &f;
	return 0;
}

static int
teardown(void **state)
{
	struct profile_fixture *f = *state;

	(void)unlink(f->path);
	conf_free(f->conf);
	return 0;
}

static void
set(struct profile_fixture *f, const char *key, const char *value)
{
	struct err e;

	assert_int_equal(conf_set(f->conf, key, value, &e), 0);
}

static void
put_file(struct profile_fixture *f, const char *text)
{
	FILE *p = fopen(f->path, "we");

	assert_non_null(p);
	assert_true(fputs(text, p) >= 0);
	assert_int_equal(fclose(p), 0);
	set(f, "SANDBOX_SECCOMP", f->path);
}

static char *
load(struct profile_fixture *f)
{
	AUTO(auto_free) char *path = NULL;
	char *out = NULL;
	struct err e;

	assert_int_equal(profile_load(f->conf, &out, &path, &e), 0);
	assert_non_null(out);
	return out;
}

static void
refused(struct profile_fixture *f, const char *why)
{
	char *out = NULL, *path = NULL;
	struct err e;

	assert_int_equal(profile_load(f->conf, &out, &path, &e), ERR_INVAL);
	assert_null(out);
	assert_null(path);
	assert_non_null(strstr(e.msg, "SANDBOX_SECCOMP"));
	if (strstr(e.msg, why) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.msg, why);
}

static const json_t *
rule_of(const json_t *rules, const char *call, const char *action)
{
	const json_t *rule, *name;
	size_t i, k;

	json_array_foreach (rules, i, rule)
		json_array_foreach (json_object_get(rule, "names"), k, name)
			if (strcmp(json_string_value(name), call) == 0 &&
			    strcmp(json_string_value(
				       json_object_get(rule, "action")),
				action) == 0)
				return rule;
	return NULL;
}

TEST(ours_denies_what_it_does_not_name)
{
	static const char *const denied[] = {"io_uring_setup", "bpf", "keyctl",
	    "userfaultfd", "perf_event_open", "mount", "fsopen", "unshare",
	    "setns", "open_by_handle_at", "kexec_load", "init_module",
	    "pidfd_getfd", "modify_ldt", "quotactl", "syslog"};
	AUTO(auto_free) char *s = load(f);
	AUTO(auto_json) json_t *o = NULL;
	const json_t *rules;
	struct err e;

	assert_int_equal(js_parse(s, strlen(s), 65536, 8, &o, &e), 0);
	assert_string_equal(
	    json_string_value(json_object_get(o, "defaultAction")),
	    "SCMP_ACT_ERRNO");
	rules = json_object_get(o, "syscalls");
	for (size_t i = 0; i < ARRAY_LEN(denied); i++)
		assert_null(rule_of(rules, denied[i], "SCMP_ACT_ALLOW"));
	assert_null(json_object_get(
	    rule_of(rules, "openat", "SCMP_ACT_ALLOW"), "args"));
	assert_non_null(
	    json_object_get(rule_of(rules, "clone", "SCMP_ACT_ALLOW"), "args"));
	assert_int_equal(
	    json_integer_value(json_object_get(
		rule_of(rules, "clone3", "SCMP_ACT_ERRNO"), "errnoRet")),
	    38);
}

TEST(an_operators_file_is_passed_on_compact)
{
	AUTO(auto_free) char *s = NULL;

	put_file(f,
	    "{\n \"defaultAction\": \"SCMP_ACT_ERRNO\",\n"
	    " \"syscalls\": []\n}\n");
	s = load(f);
	assert_string_equal(
	    s, "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[]}");
}

TEST(what_denies_nothing_is_refused_unless_meant)
{
	static const char open_file[] =
	    "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":"
	    "[\"read\"],\"action\":\"SCMP_ACT_LOG\"}]}";
	char *s;

	set(f, "SANDBOX_SECCOMP", "unconfined");
	refused(f, "SANDBOX_ALLOW_UNCONFINED");
	put_file(f, open_file);
	refused(f, "SANDBOX_ALLOW_UNCONFINED");
	set(f, "SANDBOX_ALLOW_UNCONFINED", "true");
	free(load(f));
	set(f, "SANDBOX_SECCOMP", "unconfined");
	s = load(f);
	assert_string_equal(s, "unconfined");
	free(s);
}

TEST(a_list_of_denials_is_a_profile)
{
	put_file(f,
	    "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":"
	    "[\"bpf\"],\"action\":\"SCMP_ACT_ERRNO\"}]}");
	free(load(f));
}

TEST(a_file_that_is_no_profile_is_refused)
{
	put_file(f, "{\"defaultAction\":");
	refused(f, f->path);
	put_file(f, "{\"defaultAction\":\"SCMP_ACT_ERRNO\"}");
	refused(f, "no seccomp profile");
	put_file(f, "[]");
	refused(f, "no seccomp profile");
	set(f, "SANDBOX_SECCOMP", "/nowhere/at/all");
	refused(f, "No such file");
	set(f, "SANDBOX_SECCOMP", "/tmp");
	refused(f, "no regular file");
	set(f, "SANDBOX_SECCOMP", "none");
	refused(f, "want default");
	set(f, "SANDBOX_SECCOMP", "");
	refused(f, "want default");
}

TEST(a_file_that_others_may_write_is_refused)
{
	put_file(f, "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[]}");
	assert_int_equal(chmod(f->path, 0646), 0);
	refused(f, "others");
	assert_int_equal(chmod(f->path, 0644), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(f->path, 54321, 0), 0);
		refused(f, "54321");
	}
}

TEST(another_profile_is_another_fingerprint)
{
	char first[POLICY_FINGERPRINT_LEN + 1];
	struct policy p;
	struct err e;

	assert_int_equal(policy_init(&p, f->conf, &e), 0);
	memcpy(first, p.fingerprint, sizeof(first));
	policy_clear(&p);
	put_file(f, "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[]}");
	assert_int_equal(policy_init(&p, f->conf, &e), 0);
	assert_string_not_equal(first, p.fingerprint);
	policy_clear(&p);
}

TEST_MAIN(setup, teardown)
