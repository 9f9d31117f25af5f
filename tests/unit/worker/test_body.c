#include <fcntl.h>
#include <stdio.h>

#include "common/js.h"
#include "common/xmalloc.h"
#include "worker/docker/body.h"
#include "tests/unit/test.h"

static struct conf *conf;
static struct policy policy;
static bool is_podman;
static uint32_t ttl_s;

static json_t *
build(void)
{
	static const char *const command[] = {"/inside/agent", "x", NULL};
	struct backend_wishes wishes = {.nmounts = 2, .command = command};
	struct backend_spec spec = {.name = "mcp-sbx-a-01",
	    .identity = {.uuid = {{0xab}}, .tenant = "default"},
	    .template = {.image = "img:1",
		.runtime = "",
		.memory_bytes = 64 << 20,
		.nano_cpus = 500000000,
		.pids = 20},
	    .claim = {.identifier = "a", .generation = 3},
	    .ttl_s = ttl_s,
	    .wishes = &wishes};
	struct body_create c = {.policy = &policy,
	    .instance = "inst",
	    .id = "5eed",
	    .image_id = "sha256:00ff",
	    .spec = &spec,
	    .created_ms = 1700000000123,
	    .has_io_weight = true,
	    .is_podman = is_podman};
	json_t *o = NULL;
	struct err e;
	char *s;

	(void)snprintf(wishes.mounts[0].source, BACKEND_PATH_MAX, "/data/x");
	wishes.mounts[0].target = "/inside";
	(void)snprintf(wishes.mounts[1].source, BACKEND_PATH_MAX, "/data/y");
	wishes.mounts[1].target = "/beside";
	memcpy(spec.identity.fingerprint, policy.fingerprint,
	    sizeof(spec.identity.fingerprint));
	s = body_create(&c);

	assert_int_equal(js_parse(s, strlen(s), 65536, 16, &o, &e), 0);
	free(s);
	return o;
}

static int
setup(void **state)
{
	(void)state;
	conf = conf_new();
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	policy_clear(&policy);
	conf_free(conf);
	return 0;
}

static void
take_policy(void)
{
	struct err e;

	assert_int_equal(policy_init(&policy, conf, &e), 0);
}

static const char expected[] =
    "{'Image':'sha256:00ff','Entrypoint':['/inside/"
    "agent','x'],'Cmd':['-k','120','-b','10737418240','-n','500000'],"
    "'User':'0:0','WorkingDir':'/workspace','Hostname':'sandbox',"
    "'NetworkDisabled':true,'Tty':false,"
    "'Labels':{'mcp.role':'sandbox','mcp.instance':'inst',"
    "'mcp.instance_id':'5eed',"
    "'mcp.sandbox':'ab000000-0000-0000-0000-000000000000',"
    "'mcp.tenant':'default','mcp.identifier':'a','mcp.generation':'3',"
    "'mcp.created_at_unix_ms':'1700000000123','mcp.image':'img:1',"
    "'mcp.nano_cpus':'500000000','mcp.memory_bytes':'67108864',"
    "'mcp.policy_fingerprint':'%s'},"
    "'HostConfig':{'LogConfig':{'Type':'none'},'NetworkMode':'none',"
    "'CapDrop':['ALL'],'CapAdd':['SETUID','SETGID','CHOWN','FOWNER',"
    "'DAC_OVERRIDE','KILL','SETPCAP'],'ShmSize':67108864,"
    "'Memory':67108864,'MemorySwap':67108864,'CpuPeriod':100000,'CpuQuota':"
    "50000,"
    "'PidsLimit':20,'CpuShares':256,'BlkioWeight':100,"
    "'Ulimits':[{'Name':'core','Soft':0,'Hard':0},"
    "{'Name':'sigpending','Soft':1024,'Hard':1024},"
    "{'Name':'msgqueue','Soft':0,'Hard':0},"
    "{'Name':'fsize','Soft':21474836480,'Hard':21474836480}],"
    "'Tmpfs':{'/tmp':'rw,exec,nosuid,nodev,mode=1777,size=256m'},"
    "'Mounts':[{'Type':'bind','Source':'/data/x','Target':'/inside',"
    "'ReadOnly':true},{'Type':'bind','Source':'/data/y','Target':'/beside',"
    "'ReadOnly':true}],'ReadonlyRootfs':false,'Init':false,"
    "'RestartPolicy':{'Name':'no'},'AutoRemove':false,'Privileged':false}}";

TEST_WITH(setup, teardown, a_container_is_asked_for_exactly_so)
{
	AUTO(auto_json) json_t *got = NULL;
	AUTO(auto_json) json_t *want = NULL;
	char text[sizeof(expected) + 32];
	json_t *host;
	struct err e;
	int n;

	take_policy();
	n = snprintf(text, sizeof(text), expected, policy.fingerprint);
	for (int i = 0; i < n; i++)
		if (text[i] == '\'')
			text[i] = '"';
	assert_int_equal(js_parse(text, (size_t)n, 65536, 16, &want, &e), 0);
	got = build();
	/* Long lists: the two tests below. */
	host = json_object_get(got, "HostConfig");
	(void)json_object_del(host, "SecurityOpt");
	(void)json_object_del(host, "MaskedPaths");
	(void)json_object_del(host, "ReadonlyPaths");
	if (!json_equal(got, want))
		print_error("%s\n", json_dumps(got, 0));
	assert_true(json_equal(got, want));
}

static const json_t *
of_host(const json_t *o, const char *key)
{
	return json_object_get(json_object_get(o, "HostConfig"), key);
}

TEST_WITH(setup, teardown, the_profile_goes_with_every_container)
{
	AUTO(auto_json) json_t *got = NULL;
	AUTO(auto_json) json_t *profile = NULL;
	const json_t *opts;
	const char *seccomp;
	struct err e;

	take_policy();
	got = build();
	opts = of_host(got, "SecurityOpt");
	assert_int_equal(json_array_size(opts), 2);
	assert_string_equal(
	    json_string_value(json_array_get(opts, 0)), "no-new-privileges");
	seccomp = json_string_value(json_array_get(opts, 1));
	assert_memory_equal(seccomp, "seccomp={", 9);
	assert_int_equal(
	    js_parse(seccomp + 8, strlen(seccomp + 8), 65536, 8, &profile, &e),
	    0);
	assert_string_equal(
	    json_string_value(json_object_get(profile, "defaultAction")),
	    "SCMP_ACT_ERRNO");
}

TEST_WITH(setup, teardown, podman_is_given_paths)
{
	AUTO(auto_json) json_t *got = NULL;
	const json_t *opts;

	take_policy();
	free(policy.seccomp_path);
	policy.seccomp_path = xstrdup("/where/it/is.json");
	is_podman = true;
	got = build();
	is_podman = false;
	opts = of_host(got, "SecurityOpt");
	assert_int_equal(json_array_size(opts), 3);
	assert_string_equal(json_string_value(json_array_get(opts, 1)),
	    "seccomp=/where/it/is.json");
	assert_memory_equal(json_string_value(json_array_get(opts, 2)),
	    "mask=/proc/acpi:/proc/asound:", 29);
}

static bool
has_text(const json_t *list, const char *want)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		if (strcmp(json_string_value(item), want) == 0)
			return true;
	return false;
}

TEST_WITH(setup, teardown, what_tells_of_the_machine_is_masked)
{
	static const char *const paths[] = {"/proc/kcore", "/proc/keys",
	    "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup",
	    "/proc/timer_list", "/proc/sched_debug", "/proc/latency_stats",
	    "/proc/acpi", "/proc/scsi", "/sys/firmware", "/sys/kernel/debug"};
	AUTO(auto_json) json_t *got = NULL;

	take_policy();
	got = build();
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		assert_true(has_text(of_host(got, "MaskedPaths"), paths[i]));
	assert_true(has_text(of_host(got, "ReadonlyPaths"), "/proc/sys"));
	assert_true(has_text(of_host(got, "ReadonlyPaths"), "/etc/hostname"));
	assert_false(has_text(of_host(got, "ReadonlyPaths"), "/etc/hosts"));
}

TEST_WITH(setup, teardown, a_bridge_is_only_there_when_configured)
{
	AUTO(auto_json) json_t *got = NULL;
	struct err e;

	assert_int_equal(
	    conf_set(conf, "SANDBOX_NETWORK_MODE", "bridge", &e), 0);
	take_policy();
	got = build();
	assert_null(json_object_get(got, "NetworkDisabled"));
	assert_true(has_text(of_host(got, "ReadonlyPaths"), "/etc/hosts"));
	assert_string_equal(
	    json_string_value(json_object_get(
		json_object_get(got, "HostConfig"), "NetworkMode")),
	    "bridge");
}

TEST_WITH(setup, teardown, runtime_and_privileges_follow_the_configuration)
{
	AUTO(auto_json) json_t *got = NULL;
	const json_t *host;
	struct err e;

	assert_int_equal(conf_set(conf, "SANDBOX_RUNTIME", "crun", &e), 0);
	assert_int_equal(
	    conf_set(conf, "SANDBOX_NO_NEW_PRIVILEGES", "false", &e), 0);
	take_policy();
	got = build();
	host = json_object_get(got, "HostConfig");
	assert_string_equal(
	    json_string_value(json_object_get(host, "Runtime")), "crun");
	assert_int_equal(
	    json_array_size(json_object_get(host, "SecurityOpt")), 1);
}

static const char *
label(const json_t *body, const char *name)
{
	return json_string_value(
	    json_object_get(json_object_get(body, "Labels"), name));
}

TEST_WITH(setup, teardown, the_label_of_the_end_is_creation_and_ttl)
{
	AUTO(auto_json) json_t *got = NULL;
	AUTO(auto_json) json_t *endless = NULL;

	take_policy();
	ttl_s = 3600;
	got = build();
	ttl_s = 0;
	endless = build();
	assert_string_equal(
	    label(got, "mcp.expires_at_unix_ms"), "1700003600123");
	assert_null(label(endless, "mcp.expires_at_unix_ms"));
}

TEST_WITH(setup, teardown, users_of_its_own_are_asked_for)
{
	AUTO(auto_json) json_t *usual = NULL;
	AUTO(auto_json) json_t *own = NULL;
	char before[POLICY_FINGERPRINT_LEN + 1];
	struct err e;

	take_policy();
	memcpy(before, policy.fingerprint, sizeof(before));
	usual = build();
	policy_clear(&policy);
	assert_int_equal(conf_set(conf, "SANDBOX_USERNS", "auto", &e), 0);
	take_policy();
	own = build();
	assert_null(of_host(usual, "UsernsMode"));
	assert_string_equal(
	    json_string_value(of_host(own, "UsernsMode")), "auto");
	/* Those made before have the host's, and are made anew. */
	assert_string_not_equal(policy.fingerprint, before);
}

/* What tar prints with these options about the archive in b. */
static void
run_tar(const char *options, const struct buf *b, char *out, size_t size)
{
	char path[] = "/tmp/worker-test-tar-XXXXXX", command[96];
	int fd = mkostemp(path, O_CLOEXEC);
	size_t n;
	FILE *p;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, buf_data(b), buf_len(b)), buf_len(b));
	(void)snprintf(
	    command, sizeof(command), "LC_ALL=C tar %s %s 2>&1", options, path);
	p = popen(command, "re");
	assert_non_null(p);
	n = fread(out, 1, size - 1, p);
	out[n] = '\0';
	assert_int_equal(pclose(p), 0);
	(void)close(fd);
	(void)unlink(path);
}

TEST_WITH(setup, teardown, what_is_written_is_bounded_where_it_is_configured)
{
	json_t *o, *all, *first;
	struct err e;

	assert_int_equal(conf_set(conf, "SANDBOX_WRITE_MB_S", "40", &e), 0);
	assert_int_equal(
	    conf_set(conf, "SANDBOX_WRITE_DEVICE", "/dev/mapper/a-b", &e), 0);
	take_policy();
	o = build();
	all = json_object_get(
	    json_object_get(o, "HostConfig"), "BlkioDeviceWriteBps");
	assert_int_equal(json_array_size(all), 1);
	first = json_array_get(all, 0);
	assert_string_equal(json_string_value(json_object_get(first, "Path")),
	    "/dev/mapper/a-b");
	assert_int_equal(json_integer_value(json_object_get(first, "Rate")),
	    INT64_C(40) << 20);
	json_decref(o);
}

TEST_WITH(setup, teardown, the_build_context_has_one_file)
{
	static const size_t sizes[] = {0, 1, 511, 512, 513, 70000};
	char content[70001], got[70001];
	struct buf b;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		memset(content, 'x', sizes[i]);
		content[sizes[i]] = '\0';
		buf_init(&b, 1 << 20);
		assert_int_equal(
		    body_tar(&(struct body_entry){.name = "Dockerfile",
				 .mode = 0644,
				 .data = content,
				 .len = sizes[i]},
			1, &b, &e),
		    0);
		run_tar("-tf", &b, got, sizeof(got));
		assert_string_equal(got, "Dockerfile\n");
		run_tar("-xOf", &b, got, sizeof(got));
		assert_string_equal(got, content);
		buf_clear(&b);
	}
}

TEST_WITH(setup, teardown, a_program_is_in_its_directory)
{
	static const struct body_entry entries[] = {
	    {.name = "a/", .mode = 0755},
	    {.name = "a/p", .mode = 0555, .data = "run", .len = 3}};
	char got[1000];
	struct buf b;
	struct err e;

	buf_init(&b, 1 << 20);
	assert_int_equal(body_tar(entries, ARRAY_LEN(entries), &b, &e), 0);
	run_tar("-tf", &b, got, sizeof(got));
	assert_string_equal(got,
	    "a/\n"
	    "a/p\n");
	run_tar("-xOf", &b, got, sizeof(got));
	assert_string_equal(got, "run");
	run_tar("-tvf", &b, got, sizeof(got));
	assert_non_null(strstr(got, "drwxr-xr-x 0/0 "));
	assert_non_null(strstr(got, "-r-xr-xr-x 0/0 "));
	buf_clear(&b);
}

TEST_WITH(setup, teardown, a_file_that_does_not_fit_is_refused)
{
	struct buf b;
	struct err e;

	buf_init(&b, 1024);
	assert_int_equal(body_tar(&(struct body_entry){.name = "Dockerfile",
				      .data = "FROM x\n",
				      .len = 7},
			     1, &b, &e),
	    ERR_LIMIT);
	buf_clear(&b);
}

TEST_WITH(setup, teardown, filters_ask_for_our_label_only)
{
	AUTO(auto_free) char *s = body_filters_list("i-1");

	assert_string_equal(
	    s, "%7B%22label%22%3A%5B%22mcp.instance_id%3Di-1%22%5D%7D");
}

TEST(bounds_are_a_quota_of_a_period_that_the_kernel_takes)
{
	static const struct {
		struct backend_bounds bounds;
		enum body_cpus form;
		const char *text;
	} rows[] = {
	    {{.cpu_shares = 64}, BODY_CPUS_AS_QUOTA, "{\"CpuShares\":64}"},
	    {{.cpu_shares = 64}, BODY_CPUS_AS_NANO, "{\"CpuShares\":64}"},
	    {{.cpu_shares = 64, .nano_cpus = 1000000000}, BODY_CPUS_AS_QUOTA,
		"{\"CpuShares\":64,\"CpuPeriod\":5000,\"CpuQuota\":5000}"},
	    {{.cpu_shares = 64, .nano_cpus = 1000000000}, BODY_CPUS_AS_NANO,
		"{\"CpuShares\":64,\"NanoCpus\":1000000000}"},
	    {{.cpu_shares = 2, .nano_cpus = 125000000}, BODY_CPUS_AS_QUOTA,
		"{\"CpuShares\":2,\"CpuPeriod\":8001,\"CpuQuota\":1000}"},
	    {{.cpu_shares = 2, .nano_cpus = 1}, BODY_CPUS_AS_QUOTA,
		"{\"CpuShares\":2,\"CpuPeriod\":1000000,\"CpuQuota\":1000}"},
	    {{.cpu_shares = 1000, .nano_cpus = UINT64_MAX}, BODY_CPUS_AS_QUOTA,
		NULL},
	};
	char got[BODY_BOUNDS_MAX];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		body_bounds(got, &rows[i].bounds, rows[i].form, NULL);
		assert_true(strlen(got) < BODY_BOUNDS_MAX - 1);
		assert_int_equal(got[strlen(got) - 1], '}');
		if (rows[i].text != NULL)
			assert_string_equal(got, rows[i].text);
	}
	body_bounds(got, &rows[0].bounds, BODY_CPUS_AS_QUOTA, "0-3,6");
	assert_string_equal(got, "{\"CpuShares\":64,\"CpusetCpus\":\"0-3,6\"}");
}

TEST_MAIN(NULL, NULL)
