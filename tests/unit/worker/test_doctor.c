#include <stdio.h>

#include "common/js.h"
#include "worker/docker/docker.h"
#include "worker/doctor/finding.h"
#include "worker/doctor/host.h"
#include "worker/doctor/advisory.h"
#include "worker/doctor/reach.h"
#include "tests/unit/test.h"

static size_t
count(const struct findings *f, enum finding_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		n += f->all[i].state == state;
	return n;
}

static bool
says(const struct findings *f, const char *text)
{
	for (size_t i = 0; i < f->n; i++)
		if (strstr(f->all[i].text, text) != NULL)
			return true;
	return false;
}

static struct findings
look(struct advisory_subject s)
{
	struct findings f = {.n = 0};

	advisory_look(&s, &f);
	return f;
}

TEST(a_version_is_held_against_the_table)
{
	struct findings f = look((struct advisory_subject){
	    .component = "runc", .version = "1.1.5", .package = ""});

	assert_true(says(&f, "CVE-2024-21626"));
	assert_true(says(&f, "CVE-2025-31133"));
	assert_false(says(&f, "CVE-2023-25809"));
	assert_false(findings_all_hold(&f));
}

TEST(debians_package_may_be_mended_without_a_new_version)
{
	struct findings f = look((struct advisory_subject){.component = "runc",
	    .version = "1.1.5",
	    .package = "1.1.5+ds1-1+deb12u1"});

	assert_false(says(&f, "CVE-2024-21626"));
	assert_true(says(&f, "CVE-2025-31133"));
}

TEST(what_the_profile_shuts_is_not_open)
{
	struct advisory_subject s = {.component = "kernel",
	    .version = "6.18.5",
	    .package = "",
	    .has_profile = true};
	struct findings f = look(s);

	assert_false(says(&f, "CVE-2026-31431"));
	assert_true(says(&f, "CVE-2026-23394"));
	s.has_profile = false;
	f = look(s);
	assert_true(says(&f, "CVE-2026-31431"));
}

TEST(a_distributions_own_patches_are_not_known)
{
	struct findings f =
	    look((struct advisory_subject){.component = "kernel",
		.version = "5.15.0",
		.package = "",
		.patched = true});

	assert_int_equal(count(&f, FINDING_FAILS), 0);
	assert_true(count(&f, FINDING_UNKNOWN) > 1);
	f = look((struct advisory_subject){
	    .component = "runc", .version = "", .package = ""});
	assert_int_equal(count(&f, FINDING_UNKNOWN), 1);
}

TEST(a_kernel_newer_than_the_table_holds)
{
	struct findings f = look((struct advisory_subject){
	    .component = "kernel", .version = "99.1.0", .package = ""});

	assert_int_equal(f.n, 1);
	assert_true(findings_all_hold(&f));
}

TEST(a_kernels_version_is_upstreams)
{
	struct host_kernel k = {.patched = false};

	host_kernel_of("6.1.0-37-amd64",
	    "#1 SMP PREEMPT_DYNAMIC Debian 6.1.140-1 (2025-05-22)", &k);
	assert_string_equal(k.version, "6.1.140");
	assert_false(k.patched);
	host_kernel_of("5.15.0-91-generic", "#101-Ubuntu SMP", &k);
	assert_true(k.patched);
	host_kernel_of("5.14.0-362.el9.x86_64", "#1 SMP", &k);
	assert_true(k.patched);
	host_kernel_of("6.18.44-own", "#1 SMP", &k);
	assert_string_equal(k.version, "6.18.44");
	assert_false(k.patched);
}

TEST(packages_are_found_in_dpkgs_words)
{
	static const char status[] =
	    "Package: runc\nStatus: deinstall ok config-files\n"
	    "Version: 1.0\n\n"
	    "Package: docker.io\nStatus: install ok installed\n"
	    "Description: x\n Version: no\nVersion: 20.10.24+dfsg1-1\n\n"
	    "Package: last\nStatus: install ok installed\nVersion: 2";
	char got[HOST_WORD_MAX];

	host_package_of(status, "docker.io", got);
	assert_string_equal(got, "20.10.24+dfsg1-1");
	host_package_of(status, "runc", got);
	assert_string_equal(got, "");
	host_package_of(status, "last", got);
	assert_string_equal(got, "2");
	host_package_of(status, "docker", got);
	assert_string_equal(got, "");
}

/* The kernel's are this machine's: they are left out here. */
static bool
is_listed(const json_t *o, const char *list, const char *word)
{
	const json_t *item;
	size_t i;

	json_array_foreach (json_object_get(o, list), i, item)
		if (strcmp(json_string_value(item), word) == 0)
			return true;
	return false;
}

TEST(a_worker_knows_what_is_open_on_its_host)
{
	AUTO(auto_json)
	json_t *version =
	    json_pack("{s:s, s:[{s:s, s:s}, {s:s, s:s, s:{s:s}}]}", "Version",
		"20.10.24+dfsg1", "Components", "Name", "containerd", "Version",
		"v1.7.26", "Name", "runc", "Version", "1.1.5+ds1", "Details",
		"GitCommit", "1.1.5+ds1-1+deb12u1");
	AUTO(auto_json) json_t *o = advisory_list_open(version, true);

	assert_true(is_listed(o, "open", "CVE-2024-40635"));
	assert_false(is_listed(o, "open", "CVE-2023-25173"));
	assert_true(is_listed(o, "open", "CVE-2024-45310"));
	/* Its package has it mended, and the version does not say so. */
	assert_false(is_listed(o, "open", "CVE-2024-21626"));
	/* Debian's engine does not say which package it is. */
	assert_true(is_listed(o, "unknown", "CVE-2024-41110"));
	assert_false(is_listed(o, "open", "CVE-2024-41110"));
}

TEST(what_an_engine_does_not_say_is_not_known)
{
	static const char wrong[] =
	    "{\"Version\":7,\"Components\":{\"Name\":\"runc\"}}";
	static const char worse[] =
	    "{\"Components\":[1,{\"Name\":\"runc\",\"Version\":[],"
	    "\"Details\":7}]}";
	static const char *const words[] = {"{}", "[]", wrong, worse};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		AUTO(auto_json) json_t *version = NULL;
		AUTO(auto_json) json_t *o = NULL;
		struct err e;

		assert_int_equal(
		    js_parse(words[i], strlen(words[i]), 1000, 8, &version, &e),
		    0);
		o = advisory_list_open(version, true);
		assert_true(is_listed(o, "unknown", "engine"));
		assert_true(is_listed(o, "unknown", "containerd"));
		assert_true(is_listed(o, "unknown", "runc"));
	}
}

TEST(an_engines_word_is_read)
{
	static const char version[] =
	    "{\"Version\":\"20.10.24+dfsg1\",\"Components\":["
	    "{\"Name\":\"containerd\",\"Version\":\"1.6.20~ds1\"},"
	    "{\"Name\":\"runc\",\"Version\":\"1.1.5\"}]}";
	static const char info[] =
	    "{\"ContainerdCommit\":{\"ID\":\"4567abc\"},"
	    "\"RuncCommit\":{\"ID\":\"1.1.5+ds1-1+deb12u1\"},"
	    "\"SecurityOptions\":[\"name=seccomp,profile=default\","
	    "\"name=userns\"],\"KernelVersion\":\"6.1.0-37-amd64\",\"Driver\":"
	    "\"overlay2\",\"DriverStatus\":"
	    "[[\"Backing Filesystem\",\"xfs\"]],\"CgroupVersion\":\"2\","
	    "\"MemoryLimit\":true,\"Runtimes\":{\"runc\":{}},"
	    "\"SystemTime\":\"2026-01-01T02:00:00.5+02:00\"}";
	struct backend_facts f;

	docker_read_facts(version, info, 1767225600000, &f);
	assert_string_equal(f.engine, "20.10.24+dfsg1");
	assert_string_equal(f.containerd, "1.6.20~ds1");
	assert_string_equal(f.runc, "1.1.5+ds1-1+deb12u1");
	assert_string_equal(f.storage, "overlay2 on xfs");
	assert_string_equal(f.kernel, "6.1.0-37-amd64");
	assert_true(f.seccomp && f.maps_users);
	assert_true(f.limits_disk && f.limits_memory);
	assert_false(f.apparmor || f.rootless || f.limits_pids);
	assert_true(runtimes_have(f.runtimes, "runc"));
	assert_true(runtimes_have(f.runtimes, ""));
	assert_false(runtimes_have(f.runtimes, "run"));
	assert_int_equal(f.ahead_ms, 0);
}

TEST(nonsense_of_an_engine_is_nothing)
{
	static const char odd[] =
	    "{\"DriverStatus\":[1,[2],[\"Backing Filesystem\"]],"
	    "\"SecurityOptions\":{\"a\":1},\"SystemTime\":\"soon\"}";
	static const char *const words[] = {
	    "", "{", "[]", "{\"Version\":1}", odd};
	struct backend_facts f;

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		docker_read_facts(words[i], words[i], 0, &f);
		assert_string_equal(f.engine, "");
		assert_string_equal(f.runc, "");
		assert_false(f.seccomp);
		assert_true(f.ahead_ms == INT64_MIN);
	}
}

TEST(findings_are_printed_for_people_and_programs)
{
	struct findings f = {.n = 0};
	char *text = NULL;
	size_t size;
	FILE *out;

	findings_add(&f, "one", FINDING_HOLDS, "none", "all is %s", "well");
	assert_true(findings_all_hold(&f));
	findings_add(&f, "two", FINDING_UNKNOWN, "look", "a\nb \"c\"");
	assert_false(findings_all_hold(&f));
	out = open_memstream(&text, &size);
	findings_print_table(&f, out);
	findings_print_json(&f, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text,
	    "holds    one           all is well\n"
	    "unknown  two           a b \"c\"\n"
	    "                         -> look\n"
	    "1 hold, 0 do not, 1 unknown\n"
	    "{\"holds\":false,\"findings\":[{\"what\":\"one\",\"state\":"
	    "\"holds\",\"text\":\"all is well\",\"advice\":\"\"},{\"what\":"
	    "\"two\",\"state\":\"unknown\",\"text\":\"a b \\\"c\\\"\","
	    "\"advice\":\"look\"}],"
	    "\"not_shown\":0}\n");
	free(text);
}

TEST(findings_without_room_are_counted)
{
	static struct findings f;
	char *text = NULL;
	size_t size;
	FILE *out;

	for (int i = 0; i < FINDINGS_MAX; i++)
		findings_add(&f, "one", FINDING_HOLDS, "", "well");
	assert_true(findings_all_hold(&f));
	findings_add(&f, "two", FINDING_HOLDS, "", "well");
	findings_add(&f, "three", FINDING_FAILS, "", "bad");
	assert_false(findings_all_hold(&f));
	out = open_memstream(&text, &size);
	findings_print_table(&f, out);
	findings_print_json(&f, out);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "unknown, 2 more are not shown\n"));
	assert_non_null(strstr(text, "\"not_shown\":2}"));
	free(text);
}

#define HERE "6.1.0-37-amd64"
#define ELSEWHERE "6.12.5-linuxkit"

/* The state of the one finding, which begins with these words. */
static enum finding_state
reach(const char *setting, const char *runtime,
    const struct backend_facts *engine, const char *words)
{
	static char runsc[] = "runsc", crun[] = "crun";
	char *const apart[] = {crun, runsc, NULL}, *const none[] = {NULL};
	bool is_list = strcmp(runtime, "listed") == 0;
	struct findings f = {.n = 0};

	reach_look(&(struct reach_subject){.setting = setting,
		       .runtime = is_list ? "" : runtime,
		       .runtimes = is_list ? apart : none,
		       .kernel = HERE,
		       .engine = engine},
	    &f);
	assert_int_equal(f.n, 1);
	assert_string_equal(f.all[0].what, "carrier");
	assert_memory_equal(f.all[0].text, words, strlen(words));
	return f.all[0].state;
}

static const struct backend_facts beside = {
    .where = "/run/docker.sock", .kernel = HERE};
static const struct backend_facts remote = {
    .where = "tcp://engine:2376", .kernel = HERE, .is_remote = true};
static const struct backend_facts machine = {
    .where = "/run/docker.sock", .kernel = ELSEWHERE};

TEST(a_carrier_that_is_set_is_held_against_the_engine)
{
	static const struct {
		const char *setting, *runtime;
		const struct backend_facts *engine;
		enum finding_state state;
	} rows[] = {{"bridge", "", &beside, FINDING_HOLDS},
	    {"bridge", "runsc", &machine, FINDING_HOLDS},
	    {"bridge", "", NULL, FINDING_HOLDS},
	    {"unix", "", &beside, FINDING_HOLDS},
	    {"unix", "crun", &beside, FINDING_HOLDS},
	    {"unix", "runsc", &beside, FINDING_FAILS},
	    {"unix", "listed", &beside, FINDING_FAILS},
	    {"unix", "", &machine, FINDING_FAILS},
	    {"unix", "", &remote, FINDING_UNKNOWN},
	    {"unix", "", NULL, FINDING_UNKNOWN}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(reach(rows[i].setting, rows[i].runtime,
				     rows[i].engine, rows[i].setting),
		    rows[i].state);
}

TEST(what_only_a_trial_says_is_not_guessed)
{
	assert_int_equal(reach("auto", "", &beside,
			     "auto: unix where the engine at /run/docker.sock "
			     "sees DATA_DIR"),
	    FINDING_HOLDS);
	assert_int_equal(reach("auto", "listed", &remote,
			     "auto: unix where the engine at "
			     "tcp://engine:2376 sees"),
	    FINDING_HOLDS);
	assert_int_equal(reach("auto", "", NULL, "auto: there is no engine"),
	    FINDING_UNKNOWN);
}

TEST(what_needs_no_trial_is_said)
{
	struct backend_facts silent = beside;

	assert_int_equal(
	    reach("auto", "runsc", NULL, "bridge: no socket of this host"),
	    FINDING_HOLDS);
	assert_int_equal(
	    reach("auto", "", &machine, "bridge, as each worker will find"),
	    FINDING_HOLDS);
	silent.kernel[0] = '\0';
	assert_int_equal(
	    reach("auto", "", &silent, "auto: unix where"), FINDING_HOLDS);
}

/* The versions are those of the kernel's own records (CVE list). */
TEST(a_stable_branch_has_its_own_first_good_version)
{
	static const struct {
		const char *version, *cve;
		bool is_open;
	} rows[] = {{"5.10.234", "CVE-2025-21756", true},
	    {"5.10.235", "CVE-2025-21756", false},
	    {"5.15.179", "CVE-2025-21756", false},
	    {"5.4.290", "CVE-2025-21756", false}, /* it began with 5.5 */
	    {"5.4.294", "CVE-2025-38352", true},
	    {"5.4.295", "CVE-2025-38352", false},
	    {"4.14.230", "CVE-2021-22555", true},
	    {"4.14.231", "CVE-2021-22555", false},
	    {"6.1.169", "CVE-2026-31431", true},
	    {"6.1.170", "CVE-2026-31431", false}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct findings f =
		    look((struct advisory_subject){.component = "kernel",
			.version = rows[i].version,
			.package = ""});

		assert_int_equal(says(&f, rows[i].cve), rows[i].is_open);
	}
}

TEST(a_path_that_is_not_there_yet_has_a_disk)
{
	struct host_disk disk;

	assert_true(host_disk("/tmp/not/there/yet", &disk));
	assert_string_equal(disk.path, "/tmp");
	assert_true(host_disk("nor-this", &disk));
	assert_string_equal(disk.path, ".");
	assert_true(host_disk(".nor-this/nor-that", &disk));
	assert_string_equal(disk.path, ".");
	assert_true(host_disk("/nor-this", &disk));
	assert_string_equal(disk.path, "/");
}

TEST_MAIN(NULL, NULL)
