#include "common/buf.h"
#include "worker/policy.h"

struct fixture;
#define TEST_STATE struct fixture *f
#include "tests/unit/test.h"

struct fixture {
	struct conf *conf;
	struct policy policy;
};

static void
set(struct fixture *f, const char *key, const char *value)
{
	struct err e;

	assert_int_equal(conf_set(f->conf, key, value, &e), 0);
}

static void
take(struct fixture *f)
{
	struct err e = {0};
	int rc = policy_init(&f->policy, f->conf, &e);

	if (rc != 0)
		print_error("%s\n", e.msg);
	assert_int_equal(rc, 0);
}

static int
setup(void **state)
{
	static struct fixture f;

	f.conf = conf_new();
	memset(&f.policy, 0, sizeof(f.policy));
	*state = &f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	policy_clear(&f->policy);
	conf_free(f->conf);
	return 0;
}

static struct policy_template
plain_template(void)
{
	return (struct policy_template){.image = "", .runtime = ""};
}

static bool
has(char **list, const char *item)
{
	for (; *list != NULL; list++)
		if (strcmp(*list, item) == 0)
			return true;
	return false;
}

TEST(blanks_are_filled_with_what_is_configured)
{
	struct policy_template t = plain_template();
	struct err e;

	set(f, "SANDBOX_IMAGE", "a/b:1");
	set(f, "DEFAULT_MEMORY_MB", "64");
	take(f);
	assert_int_equal(policy_check(&f->policy, &t, &e), 0);
	assert_string_equal(t.image, "a/b:1");
	assert_int_equal(t.memory_bytes, 64 << 20);
	assert_int_equal(t.nano_cpus, 1000000000);
	assert_int_equal(t.pids, 256);
}

TEST(no_limit_can_be_exceeded)
{
	struct policy_template t = plain_template();
	struct err e;

	take(f);
	t.memory_bytes = f->policy.memory_bytes + 1;
	assert_int_equal(policy_check(&f->policy, &t, &e), ERR_POLICY);
	t = plain_template();
	t.nano_cpus = f->policy.nano_cpus + 1;
	assert_int_equal(policy_check(&f->policy, &t, &e), ERR_POLICY);
	t = plain_template();
	t.pids = f->policy.pids + 1;
	assert_int_equal(policy_check(&f->policy, &t, &e), ERR_POLICY);
}

TEST(only_listed_images_are_allowed)
{
	struct policy_template t = plain_template();
	struct err e;

	set(f, "SANDBOX_IMAGES_ALLOWED", "debian:12,r:5000/x@sha256:00");
	take(f);
	t.image = "debian:12";
	assert_int_equal(policy_check(&f->policy, &t, &e), 0);
	t.image = "r:5000/x@sha256:00";
	assert_int_equal(policy_check(&f->policy, &t, &e), 0);
	t.image = "debian:13";
	assert_int_equal(policy_check(&f->policy, &t, &e), ERR_POLICY);
	assert_non_null(strstr(e.msg, "SANDBOX_IMAGES_ALLOWED"));
}

TEST(no_word_that_could_leave_its_place_passes)
{
	static const char *const bad[] = {
	    "", "a", "../x", "a/b", "a?b", "a b", "-ab", ".ab", "a%2e", "a\nb"};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct policy_claim c = {.identifier = bad[i]};

		assert_false(policy_is_name(bad[i]));
		/* a tenant may be one letter */
		assert_int_equal(policy_is_tenant(bad[i]), i == 1);
		/* so may an identifier, and it may begin with '-' */
		assert_int_equal(policy_check_claim(&c, &e),
		    i != 1 && i != 6 ? ERR_POLICY : 0);
	}
	assert_false(policy_is_id("0123456789aB"));
	assert_false(policy_is_id("0123456789a"));
	assert_true(policy_is_id("0123456789ab"));
}

TEST(capabilities_are_taken_with_and_without_their_prefix)
{
	set(f, "SANDBOX_CAP_ADD", "cap_net_raw,SETUID");
	take(f);
	assert_true(has(f->policy.cap_add, "NET_RAW"));
	assert_true(has(f->policy.cap_add, "SETUID"));
	assert_false(has(f->policy.cap_add, "NET_ADMIN"));
}

TEST(the_agent_always_has_its_two_capabilities)
{
	set(f, "SANDBOX_CAP_ADD", "");
	take(f);
	assert_true(has(f->policy.cap_add, "KILL"));
	assert_true(has(f->policy.cap_add, "SETPCAP"));
	assert_true(has(f->policy.cap_add, "DAC_OVERRIDE"));
	assert_true(has(f->policy.cap_drop, "ALL"));
}

#define CAP(n) (UINT64_C(1) << (n))
#define CAPS_ALONE (CAP(5) | CAP(8)) /* KILL, SETPCAP */

/* Whatever commands may have, the agent can work; what it has for itself
 * alone it withholds from them. */
TEST(what_the_agent_needs_is_not_the_commands)
{
	static const struct {
		const char *add, *drop;
		uint64_t withheld;
	} cases[] = {
	    {"SETUID,SETGID,CHOWN,FOWNER,DAC_OVERRIDE", "ALL", CAPS_ALONE},
	    {"NET_RAW", "ALL",
		CAPS_ALONE | CAP(0) | CAP(1) | CAP(3) | CAP(6) | CAP(7)},
	    {"CHOWN,KILL", "ALL",
		CAPS_ALONE | CAP(1) | CAP(3) | CAP(6) | CAP(7)},
	    {"NET_RAW", "SETUID", CAPS_ALONE | CAP(7)},
	    {"SETUID", "SETUID", CAPS_ALONE},
	    {"ALL", "SETUID,NET_RAW", CAPS_ALONE | CAP(7)},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		set(f, "SANDBOX_CAP_ADD", cases[i].add);
		set(f, "SANDBOX_CAP_DROP", cases[i].drop);
		policy_clear(&f->policy);
		take(f);
		assert_int_equal(f->policy.withheld, cases[i].withheld);
		assert_true(has(f->policy.cap_add, "SETUID"));
		assert_false(has(f->policy.cap_drop, "SETUID"));
	}
}

TEST(a_bound_of_writes_is_of_a_device)
{
	static const char *const bad[] = {"sda", "/dev/", "/dev/../etc/passwd",
	    "/dev/s da", "/tmp/x", "/dev/sda\""};
	struct err e;

	set(f, "SANDBOX_WRITE_MB_S", "40");
	assert_int_equal(policy_init(&f->policy, f->conf, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "SANDBOX_WRITE_DEVICE"));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		set(f, "SANDBOX_WRITE_DEVICE", bad[i]);
		assert_int_equal(
		    policy_init(&f->policy, f->conf, &e), ERR_INVAL);
		assert_non_null(strstr(e.msg, "SANDBOX_WRITE_DEVICE"));
	}
	set(f, "SANDBOX_WRITE_DEVICE", "/dev/disk/by-path/pci-0000:00:1f.2");
	take(f);
	assert_int_equal(f->policy.write_bytes_s, 40 << 20);
}

TEST(an_unknown_capability_is_refused_by_name)
{
	struct err e;

	set(f, "SANDBOX_CAP_DROP", "ALL,ROOT");
	assert_int_equal(policy_init(&f->policy, f->conf, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "SANDBOX_CAP_DROP"));
	assert_non_null(strstr(e.msg, "ROOT"));
}

TEST(an_unknown_capability_is_left_out_when_not_strict)
{
	set(f, "SANDBOX_CAPS_STRICT", "false");
	set(f, "SANDBOX_CAP_ADD", "SETUID,NEW_ONE");
	take(f);
	assert_false(has(f->policy.cap_add, "NEW_ONE"));
	assert_true(has(f->policy.cap_add, "SETUID"));
}

TEST(an_unknown_capability_is_passed_on_when_told_so)
{
	set(f, "SANDBOX_CAPS_BYPASS_CHECK", "true");
	set(f, "SANDBOX_CAP_ADD", "NEW_ONE");
	take(f);
	assert_true(has(f->policy.cap_add, "NEW_ONE"));
}

/* As many as may be, each as long as one may be. */
TEST(long_lists_of_capabilities_have_a_fingerprint)
{
	struct buf list;

	buf_init(&list, 1 << 16);
	for (int i = 0; i < 32; i++)
		(void)buf_printf(&list, "%sX%062d", i > 0 ? "," : "", i);
	assert_int_equal(buf_append(&list, "", 1), 0);
	set(f, "SANDBOX_CAPS_BYPASS_CHECK", "true");
	set(f, "SANDBOX_CAP_ADD", (const char *)buf_data(&list));
	set(f, "SANDBOX_CAP_DROP", (const char *)buf_data(&list));
	take(f);
	assert_int_equal(strlen(f->policy.fingerprint), POLICY_FINGERPRINT_LEN);
	buf_clear(&list);
}

TEST(the_fingerprint_knows_policy_and_no_order)
{
	char first[POLICY_FINGERPRINT_LEN + 1];
	set(f, "SANDBOX_CAP_ADD", "SETUID,CHOWN");
	take(f);
	memcpy(first, f->policy.fingerprint, sizeof(first));
	assert_int_equal(strlen(first), POLICY_FINGERPRINT_LEN);
	policy_clear(&f->policy);
	set(f, "SANDBOX_CAP_ADD", "CHOWN,SETUID");
	take(f);
	assert_string_equal(first, f->policy.fingerprint);
	policy_clear(&f->policy);
	set(f, "SANDBOX_NETWORK_MODE", "bridge");
	take(f);
	assert_string_not_equal(first, f->policy.fingerprint);
}

TEST(an_image_name_that_is_none_stops_the_start)
{
	struct err e;

	set(f, "SANDBOX_IMAGE", "a/../b");
	assert_int_equal(policy_init(&f->policy, f->conf, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "SANDBOX_IMAGE"));
}

TEST_MAIN(setup, teardown)
