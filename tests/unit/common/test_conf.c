#include <stdio.h>

#include "common/conf.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"

static struct conf *c;

static int
make_conf(void **state)
{
	(void)state;
	c = conf_new();
	return clearenv();
}

static int
free_conf(void **state)
{
	(void)state;
	conf_free(c);
	c = NULL;
	return 0;
}

static void
check_set(const char *key, const char *value)
{
	struct err e;

	if (conf_set(c, key, value, &e) != 0)
		fail_msg("%s", e.msg);
}

static void
check_refused(const char *key, const char *value, const char *why)
{
	struct err e = {0};

	assert_int_equal(conf_set(c, key, value, &e), ERR_INVAL);
	assert_string_equal(e.msg, why);
}

TEST(the_defaults_are_good)
{
	struct err e;

	assert_int_equal(conf_check(c, &e), 0);
	assert_string_equal(conf_str(c, CONF_BIND), "127.0.0.1");
	assert_int_equal(conf_int(c, CONF_PORT), 8080);
	assert_true(conf_bool(c, CONF_AUTO_BUILD_SANDBOX_IMAGE));
	assert_false(conf_bool(c, CONF_DENYLIST_ENABLED));
	assert_string_equal(conf_str(c, CONF_ARTIFACTS_DIR), "");
	assert_true(
	    conf_int(c, CONF_RUN_OUTPUT_MAX_BYTES) == INT64_C(2147483648));
	assert_string_equal(
	    conf_list(c, CONF_DENYLIST_PATTERNS)[0], "\\bdocker\\b");
	assert_null(conf_list(c, CONF_DENYLIST_PATTERNS)[4]);
	assert_null(conf_list(c, CONF_ALLOWED_HOSTS)[0]);
	assert_null(conf_list(c, CONF_PORT)[0]); /* not even a list */
}

TEST(numbers_are_checked_against_their_limits)
{
	check_set("PORT", "0");
	assert_int_equal(conf_int(c, CONF_PORT), 0);
	check_set("PORT", "65535");
	check_refused("PORT", "65536",
	    "PORT is \"65536\", want a number from 0 to 65535");
	check_refused(
	    "PORT", "-1", "PORT is \"-1\", want a number from 0 to 65535");
	check_refused(
	    "PORT", "", "PORT is \"\", want a number from 0 to 65535");
	check_refused(
	    "PORT", " 1", "PORT is \" 1\", want a number from 0 to 65535");
	check_refused(
	    "PORT", "+1", "PORT is \"+1\", want a number from 0 to 65535");
	check_refused(
	    "PORT", "80x", "PORT is \"80x\", want a number from 0 to 65535");
	check_refused("PORT", "99999999999999999999",
	    "PORT is \"99999999999999999999\", want a number from 0 to 65535");
	assert_int_equal(conf_int(c, CONF_PORT), 65535); /* as before */
}

TEST(truth_has_many_words_and_one_form)
{
	static const char *const yes[] = {
	    "1", "true", "TRUE", "Yes", "y", "oN"};
	static const char *const no[] = {
	    "0", "false", "False", "NO", "N", "off"};

	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		check_set("LOG_TOOLCALLS", "off");
		check_set("LOG_TOOLCALLS", yes[i]);
		assert_true(conf_bool(c, CONF_LOG_TOOLCALLS));
		assert_string_equal(conf_str(c, CONF_LOG_TOOLCALLS), "true");
		check_set("LOG_TOOLCALLS", no[i]);
		assert_false(conf_bool(c, CONF_LOG_TOOLCALLS));
		assert_string_equal(conf_str(c, CONF_LOG_TOOLCALLS), "false");
	}
	check_refused("LOG_TOOLCALLS", "maybe",
	    "LOG_TOOLCALLS is \"maybe\", want true or false");
	check_refused(
	    "LOG_TOOLCALLS", "2", "LOG_TOOLCALLS is \"2\", want true or false");
}

TEST(a_choice_must_be_one_of_its_words)
{
	check_set("LOG_LEVEL", "debug");
	assert_string_equal(conf_str(c, CONF_LOG_LEVEL), "debug");
	check_refused("LOG_LEVEL", "inf",
	    "LOG_LEVEL is \"inf\", want one of error,warn,info,debug");
	check_refused("LOG_LEVEL", "warn,info",
	    "LOG_LEVEL is \"warn,info\", want one of error,warn,info,debug");
	check_refused("SANDBOX_NETWORK_MODE", "host",
	    "SANDBOX_NETWORK_MODE is \"host\", want one of none,bridge");
}

TEST(lists_are_split_and_trimmed)
{
	char *const *v;

	check_set("ALLOWED_HOSTS", " a.example , ,b.example:80,");
	v = conf_list(c, CONF_ALLOWED_HOSTS);
	assert_string_equal(v[0], "a.example");
	assert_string_equal(v[1], "b.example:80");
	assert_null(v[2]);
	check_set("ALLOWED_HOSTS", "");
	assert_null(conf_list(c, CONF_ALLOWED_HOSTS)[0]);
}

TEST(no_added_capability_means_the_default)
{
	check_set("SANDBOX_CAP_ADD", "CHOWN");
	assert_null(conf_list(c, CONF_SANDBOX_CAP_ADD)[1]);
	check_set("SANDBOX_CAP_ADD", "");
	assert_string_equal(conf_list(c, CONF_SANDBOX_CAP_ADD)[0], "SETUID");
	check_set("SANDBOX_CAP_DROP", ""); /* this one may be empty */
	assert_null(conf_list(c, CONF_SANDBOX_CAP_DROP)[0]);
}

TEST(an_unknown_key_is_named)
{
	struct err e;

	assert_int_equal(conf_set(c, "PROT", "1", &e), ERR_NOTFOUND);
	assert_non_null(strstr(e.msg, "PROT"));
	assert_int_equal(conf_set(c, "", "1", &e), ERR_NOTFOUND);
	assert_int_equal(conf_set(c, "port", "1", &e), ERR_NOTFOUND);
}

TEST(control_characters_and_endless_values_are_refused)
{
	AUTO(auto_free) char *text = xcalloc(1, 40000);
	struct err e;

	check_refused("INSTANCE", "a\nb",
	    "INSTANCE has the control character \\x0a, want none");
	memset(text, 'x', 39999);
	assert_int_equal(conf_set(c, "INSTANCE", text, &e), ERR_INVAL);
	assert_int_equal(conf_set(c, "PORT", text, &e), ERR_INVAL);
	text[32767] = '\0';
	check_set("INSTANCE", text);
}

TEST(tool_descriptions_are_extra_keys)
{
	struct err e;

	assert_null(conf_extra(c, "TOOL_DESC_RUN_SANDBOX_OVERRIDE"));
	check_set("TOOL_DESC_RUN_SANDBOX_OVERRIDE", "two\nlines");
	check_set("TOOL_DESC_RUN_SANDBOX_APPEND", "more");
	check_set("TOOL_DESC_RUN_SANDBOX_OVERRIDE", "other");
	assert_string_equal(
	    conf_extra(c, "TOOL_DESC_RUN_SANDBOX_OVERRIDE"), "other");
	assert_string_equal(
	    conf_extra(c, "TOOL_DESC_RUN_SANDBOX_APPEND"), "more");
	check_set("TOOL_DESC_RUN_SANDBOX_OVERRIDE", "");
	assert_null(conf_extra(c, "TOOL_DESC_RUN_SANDBOX_OVERRIDE"));
	assert_string_equal(
	    conf_extra(c, "TOOL_DESC_RUN_SANDBOX_APPEND"), "more");
	assert_int_equal(
	    conf_set(c, "TOOL_DESC_x_APPEND", "v", &e), ERR_NOTFOUND);
	assert_int_equal(
	    conf_set(c, "TOOL_DESC__APPEND", "v", &e), ERR_NOTFOUND);
	assert_int_equal(
	    conf_set(c, "TOOL_DESC_OVERRIDE", "v", &e), ERR_NOTFOUND);
	assert_int_equal(
	    conf_set(c, "TOOL_DESC_A_OTHER", "v", &e), ERR_NOTFOUND);
	check_refused("TOOL_DESC_A_APPEND", "\x1b",
	    "TOOL_DESC_A_APPEND has the control character \\x1b, want none");
}

TEST(extra_keys_are_bounded)
{
	char key[64];
	struct err e;

	for (int i = 0; i < 64; i++) {
		(void)snprintf(key, sizeof(key), "TOOL_DESC_T%d_APPEND", i);
		check_set(key, "x");
	}
	assert_int_equal(
	    conf_set(c, "TOOL_DESC_T64_APPEND", "x", &e), ERR_INVAL);
	check_set("TOOL_DESC_T63_APPEND", "known ones may change");
}

TEST(the_environment_gives_its_known_keys)
{
	struct err e;

	assert_int_equal(setenv("PORT", "9000", 1), 0);
	assert_int_equal(setenv("WORKERS", "", 1), 0);
	assert_int_equal(setenv("LOG_LEVEL", "", 1), 0);
	assert_int_equal(setenv("LOG_TOOLCALLS", "", 1), 0);
	assert_int_equal(setenv("RUN_AS_FRONT", "", 1), 0);
	assert_int_equal(setenv("HOME", "/root", 1), 0);
	assert_int_equal(setenv("TOOL_DESC_GET_RUN_APPEND", "hm", 1), 0);
	assert_int_equal(setenv("TOOL_DESC_what", "hm", 1), 0);
	assert_int_equal(conf_load_env(c, &e), 0);
	assert_int_equal(conf_int(c, CONF_PORT), 9000);
	assert_int_equal(conf_int(c, CONF_WORKERS), 2);
	assert_string_equal(conf_str(c, CONF_LOG_LEVEL), "info");
	assert_string_equal(conf_str(c, CONF_RUN_AS_FRONT), "");
	assert_string_equal(conf_extra(c, "TOOL_DESC_GET_RUN_APPEND"), "hm");
}

TEST(a_wrong_value_in_the_environment_is_named)
{
	struct err e;

	assert_int_equal(setenv("WORKERS", "many", 1), 0);
	assert_int_equal(conf_load_env(c, &e), ERR_INVAL);
	assert_string_equal(e.msg,
	    "environment: WORKERS is \"many\", want a number from 1 to 64");
}

static void
count_cb(const char *key, const char *value, void *arg)
{
	struct err e;

	/* What a child is sent, it must be able to take. */
	assert_int_equal(conf_set(arg, key, value, &e), 0);
}

TEST(each_process_is_given_its_keys_and_no_others)
{
	struct conf *worker = conf_new(), *front = conf_new();

	check_set("SANDBOX_RUNTIME", "crun"); /* worker */
	check_set("MAX_SANDBOXES", "7");      /* front */
	check_set("RUN_AS_FRONT", "someone"); /* supervisor */
	check_set("INSTANCE", "blue");        /* all */
	check_set("TOOL_DESC_GET_RUN_APPEND", "x");
	conf_each(c, CONF_WORKER, count_cb, worker);
	conf_each(c, CONF_FRONT, count_cb, front);
	assert_string_equal(conf_str(worker, CONF_SANDBOX_RUNTIME), "crun");
	assert_string_equal(conf_str(front, CONF_SANDBOX_RUNTIME), "");
	assert_int_equal(conf_int(worker, CONF_MAX_SANDBOXES), 200);
	assert_int_equal(conf_int(front, CONF_MAX_SANDBOXES), 7);
	assert_string_equal(conf_str(front, CONF_RUN_AS_FRONT), "mcp-front");
	assert_string_equal(conf_str(worker, CONF_INSTANCE), "blue");
	assert_string_equal(conf_str(front, CONF_INSTANCE), "blue");
	assert_null(conf_extra(worker, "TOOL_DESC_GET_RUN_APPEND"));
	assert_string_equal(conf_extra(front, "TOOL_DESC_GET_RUN_APPEND"), "x");
	conf_free(worker);
	conf_free(front);
}

TEST(a_copy_is_equal_and_its_own)
{
	struct conf *copy;

	check_set("PORT", "1234");
	check_set("ALLOWED_HOSTS", "a,b");
	check_set("TOOL_DESC_GET_RUN_APPEND", "x");
	copy = conf_copy(c);
	check_set("PORT", "1");
	check_set("ALLOWED_HOSTS", "c");
	check_set("TOOL_DESC_GET_RUN_APPEND", "");
	assert_int_equal(conf_int(copy, CONF_PORT), 1234);
	assert_string_equal(conf_str(copy, CONF_PORT), "1234");
	assert_string_equal(conf_list(copy, CONF_ALLOWED_HOSTS)[1], "b");
	assert_string_equal(conf_extra(copy, "TOOL_DESC_GET_RUN_APPEND"), "x");
	conf_free(copy);
}

TEST(a_reload_takes_what_may_change_and_tells_the_rest)
{
	struct conf *newer = conf_new();
	const char *first = "";
	struct err e;

	assert_int_equal(conf_take_reload(c, newer, &first), 0);
	assert_null(first);
	assert_int_equal(conf_set(newer, "MAX_RUNS", "5", &e), 0);
	assert_int_equal(conf_set(newer, "WORKERS", "3", &e), 0);
	assert_int_equal(conf_set(newer, "PORT", "81", &e), 0);
	assert_int_equal(conf_set(newer, "ALLOWED_HOSTS", "x,y", &e), 0);
	assert_int_equal(
	    conf_set(newer, "TOOL_DESC_GET_RUN_APPEND", "x", &e), 0);
	assert_int_equal(conf_take_reload(c, newer, &first), 2);
	assert_string_equal(first, "PORT");
	assert_int_equal(conf_int(c, CONF_MAX_RUNS), 5);
	assert_int_equal(conf_int(c, CONF_WORKERS), 2);
	assert_int_equal(conf_int(c, CONF_PORT), 8080);
	assert_string_equal(conf_list(c, CONF_ALLOWED_HOSTS)[1], "y");
	assert_string_equal(conf_extra(c, "TOOL_DESC_GET_RUN_APPEND"), "x");
	conf_free(newer);
}

TEST(rules_across_keys_name_both)
{
	struct err e;

	check_set("MAX_TTL_SECONDS", "100");
	assert_int_equal(conf_check(c, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "DEFAULT_TTL_SECONDS is 3600"));
	assert_non_null(strstr(e.msg, "MAX_TTL_SECONDS, which is 100"));
	check_set("DEFAULT_TTL_SECONDS", "100");
	assert_int_equal(conf_check(c, &e), 0);
}

TEST(values_that_no_type_can_judge_are_checked)
{
	static const struct {
		const char *key, *value;
		int want;
	} known[] = {
	    {"BIND", "0.0.0.0", 0},
	    {"BIND", "::1", 0},
	    {"BIND", "localhost", ERR_INVAL},
	    {"BIND", "", ERR_INVAL},
	    {"BIND", "127.0.0.1:80", ERR_INVAL},
	    {"BIND", "::", 0},
	    {"MCP_PATH", "/", 0},
	    {"MCP_PATH", "/a/b-c_d.e", 0},
	    {"MCP_PATH", "mcp", ERR_INVAL},
	    {"MCP_PATH", "/mcp/", ERR_INVAL},
	    {"MCP_PATH", "//x", ERR_INVAL},
	    {"MCP_PATH", "/a b", ERR_INVAL},
	    {"MCP_PATH", "/%41", ERR_INVAL},
	    {"MCP_PATH", "/api", ERR_INVAL},
	    {"MCP_PATH", "/api/x", ERR_INVAL},
	    {"MCP_PATH", "/apix", 0},
	    {"DATA_DIR", "", ERR_INVAL},
	    {"DATA_DIR", "/var/lib/x", 0},
	    {"SANDBOX_IMAGE", "", ERR_INVAL},
	    {"SANDBOX_IMAGE", "a:b", 0},
	    {"INSTANCE", "a b", ERR_INVAL},
	    {"INSTANCE", "a-b_c.9", 0},
	    {"DOCKER_HOST", "tcp://x", ERR_INVAL},
	    {"DOCKER_HOST", "tcp://x:0", ERR_INVAL},
	    {"DOCKER_HOST", "tcp://x:2375", 0},
	    {"DOCKER_HOST", "tcp://[::1]:2375", 0},
	    {"DOCKER_HOST", "unix:///run/docker.sock", 0},
	    {"SANDBOX_CAP_ADD", "SETUID,CAP_NET_RAW", 0},
	    {"SANDBOX_CAP_ADD", "SETUID,sys_admin", ERR_INVAL},
	    {"SANDBOX_CAP_ADD", "CAP_SYS_PTRACE", ERR_INVAL},
	    {"SANDBOX_CAP_ADD", "ALL", ERR_INVAL},
	    {"DATA_DIR", "/", ERR_INVAL},
	    {"DATA_DIR", "/etc//", ERR_INVAL},
	    {"DATA_DIR", "/etc/x", 0},
	    {"ARTIFACTS_DIR", "/usr/share/", ERR_INVAL},
	    {"ARTIFACTS_DIR", "/srv/x", 0},
	    {"CORS_ALLOW_ORIGINS", "*", ERR_INVAL},
	    {"CORS_ALLOW_ORIGINS", "https://a.example,null", ERR_INVAL},
	    {"CORS_ALLOW_ORIGINS", "https://", ERR_INVAL},
	    {"CORS_ALLOW_ORIGINS", "https://a/b", ERR_INVAL},
	    {"CORS_ALLOW_ORIGINS", "https://a.example:1,http://[::1]", 0},
	    {"ALLOWED_HOSTS", "*.example", ERR_INVAL},
	    {"ALLOWED_HOSTS", "http://a", ERR_INVAL},
	    {"ALLOWED_HOSTS", "a.example,[::1]:80", 0},
	    {"DENYLIST_PATTERNS", "(", 0}, /* not in use */
	    {"DENYLIST_ENABLED", "true", ERR_INVAL},
	    {"DENYLIST_PATTERNS", "\\brm\\b,a+", 0},
	    {"DENYLIST_PATTERNS", "a{255}[(]\\\\1", 0},
	    {"DENYLIST_PATTERNS", "a{256}", ERR_INVAL},
	    {"DENYLIST_ENABLED", "true", 0},
	    {"DENYLIST_PATTERNS", "(a)\\1", ERR_INVAL},
	};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		check_set(known[i].key, known[i].value);
		if (conf_check(c, &e) != known[i].want)
			fail_msg("%s=%s", known[i].key, known[i].value);
		if (known[i].want != 0 && known[i].key[0] != 'D')
			assert_non_null(strstr(e.msg, known[i].key));
		if (known[i].want != 0 &&
		    strcmp(known[i].key, "DENYLIST_ENABLED") != 0) {
			conf_free(c);
			c = conf_new();
		}
	}
}

TEST(help_has_every_key)
{
	AUTO(auto_free) char *text = NULL;
	size_t len = 0, keys = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	conf_print_help(f);
	assert_int_equal(fclose(f), 0);
	assert_non_null(strstr(text, "  BIND=127.0.0.1\n"));
	assert_non_null(strstr(text, "(0 to 65535)"));
	assert_non_null(strstr(text, "one of none,bridge"));
	assert_non_null(strstr(text, "  TOOL_DESC_OVERRIDES_ENABLED=true\n"));
	for (const char *p = text; p != NULL; p = strchr(p, '\n')) {
		p += *p == '\n';
		keys += p[0] == ' ' && p[1] == ' ' && p[2] != ' ';
	}
	assert_int_equal(keys, CONF_KEY_COUNT);
}

TEST_MAIN(make_conf, free_conf)
