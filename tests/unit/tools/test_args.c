#include <stdio.h>

#include "common/js.h"
#include "common/embed.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/registry.h"
#include "supervisor/tools/args.h"
#include "tests/unit/quoted.h"
#include "tests/unit/test.h"

static struct conf *conf;
static struct registry *registry;
static const struct schema *schema; /* the registry's */
static struct run_args q;           /* of the last call that was taken */

static void
on_call(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)c;
	(void)arguments;
	(void)arg;
}

/* The tool's own schema, as a call is held against it. */
static void
load_schema(void)
{
	AUTO(auto_json) json_t *tool = NULL;
	const struct embed_file *f = embed_tools;
	struct err e;

	while (strcmp(f->name, "run_sandbox.json") != 0)
		f++;
	tool = json_loadb(f->data, f->len, 0, NULL);
	registry = registry_new();
	assert_int_equal(registry_add(registry, tool, on_call, NULL, &e), 0);
	schema = registry_find(registry, "run_sandbox")->input;
}

static int
set_up(void **state)
{
	(void)state;
	conf = conf_new();
	load_schema();
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	run_wish_clear(&q.wish);
	q = (struct run_args){0};
	registry_free(registry);
	conf_free(conf);
	return 0;
}

/* What fits the schema, as it does in a call; 0, or what it cannot say. */
static int
take(json_t *args, const struct denylist *deny, struct err *e)
{
	assert_int_equal(schema_check(schema, args, e), 0);
	run_wish_clear(&q.wish);
	q = (struct run_args){0};
	return args_run_from(conf, deny, args, &q, e);
}

/* A call with these commands and options, with ' for ". */
static json_t *
call(const char *commands, const char *options)
{
	AUTO(auto_free)
	char *text = xasprintf("{'identifier':'a','commands':[%s],"
			       "'options':{%s}}",
	    commands, options);

	return quoted_json(text);
}

/* Take such a call: q is what became of it. */
static void
parse(const char *commands, const char *options)
{
	AUTO(auto_json) json_t *args = call(commands, options);
	struct err e;

	assert_int_equal(take(args, NULL, &e), 0);
}

/* By the schema or behind it: the caller is told the same way. */
static void
refuse_json(json_t *args, const char *word)
{
	struct err e = {0};

	if (schema_check(schema, args, &e) == 0)
		assert_int_equal(
		    args_run_from(conf, NULL, args, &q, &e), ERR_INVAL);
	if (strstr(e.msg, word) == NULL)
		fail_msg("\"%s\" does not name %s", e.msg, word);
	json_decref(args);
}

static void
refuse(const char *commands, const char *options, const char *word)
{
	refuse_json(call(commands, options), word);
}

TEST(a_shell_text_is_marked)
{
	parse("{'shell':'ls'}", "");
	assert_string_equal(q.wish.spec.commands[0].argv[0], "ls");
	assert_int_equal(q.wish.spec.commands[0].argc, 1);
	assert_int_equal(q.wish.spec.commands[0].flags, RUNSPEC_SHELL);
	assert_string_equal(q.wish.spec.commands[0].cwd, "/workspace");
	assert_int_equal(q.wish.spec.commands[0].timeout_ms, 120000);
	assert_string_equal(q.wish.commands[0].shell, "ls");
}

TEST(a_shell_text_keeps_its_blanks)
{
	parse("{'shell':' \\n printf a\\\\ '}", "");
	assert_string_equal(q.wish.spec.commands[0].argv[0], " \n printf a\\ ");
	assert_string_equal(q.wish.commands[0].shell, " \n printf a\\ ");
}

TEST(a_shell_text_of_blanks_is_none)
{
	parse("{'shell':' \\t\\r\\n','argv':['ls']}", "");
	assert_int_equal(q.wish.spec.commands[0].flags, 0);
	refuse("{'shell':' \\n'}", "",
	    "command 0 must set exactly one of shell or argv");
}

TEST(crlf_of_a_shell_text_is_run_as_lf_and_recorded_as_said)
{
	parse("{'shell':'echo a\\rb\\r\\nls\\r\\n'},"
	      "{'argv':['bash','-c','ls\\r\\n']},"
	      "{'shell':'x','argv':['echo a\\r\\nls','-l']}",
	    "");
	assert_string_equal(q.wish.spec.commands[0].argv[0], "echo a\rb\nls\n");
	assert_string_equal(q.wish.commands[0].shell, "echo a\rb\r\nls\r\n");
	assert_string_equal(q.wish.spec.commands[1].argv[2], "ls\r\n");
	assert_string_equal(q.wish.spec.commands[2].argv[0], "echo a\nls -l");
	assert_int_equal(q.took_crlf, 1u << 0 | 1u << 2);
}

/* A denylist of these patterns; NULL: of the default ones. */
static struct denylist *
deny_all_of(const char *patterns)
{
	struct denylist *deny;
	struct err e;

	assert_int_equal(conf_set(conf, "DENYLIST_ENABLED", "true", &e), 0);
	if (patterns != NULL)
		assert_int_equal(
		    conf_set(conf, "DENYLIST_PATTERNS", patterns, &e), 0);
	assert_int_equal(denylist_new(conf, &deny, &e), 0);
	return deny;
}

TEST(the_denylist_looks_at_what_is_run)
{
	AUTO(auto_json) json_t *args = call("{'shell':'rm -rf /\\r'}", "");
	struct denylist *deny = deny_all_of("rm -rf /$");
	struct err e;

	assert_int_equal(take(args, deny, &e), 0);
	assert_true(q.wish.spec.commands[0].flags & RUNSPEC_DENIED);
	denylist_free(deny);
}

TEST(shell_and_argv_together_join_argv)
{
	parse("{'shell':'/bin/bash','argv':['ls','/']}", "");
	assert_string_equal(q.wish.spec.commands[0].argv[0], "ls /");
}

static void
expect_env(const char *const *want, uint32_t n)
{
	assert_int_equal(q.wish.spec.commands[0].nenv, n);
	for (uint32_t i = 0; i < n; i++)
		assert_string_equal(q.wish.spec.commands[0].env[i], want[i]);
}

TEST(later_variables_replace_earlier_ones)
{
	static const char *const want[] = {"A=2", "B=x=y", "N=8080", "T=true"};

	parse("{'shell':'x','env':{'A':'2','N':8080,'T':true}}",
	    "'default_env':['A=1','B=x=y']");
	expect_env(want, ARRAY_LEN(want));
}

TEST(a_number_is_the_text_that_was_said)
{
	static const char *const want[] = {"A=3.1", "B=0.1", "C=1.0",
	    "D=-2.5e-7", "E=1234567890.125", "F=0.30000000000000004",
	    "G=9007199254740993"};

	parse("{'shell':'x','env':{'A':3.1,'B':0.1,'C':1.0,'D':-2.5e-7,"
	      "'E':1234567890.125,'F':0.30000000000000004,"
	      "'G':9007199254740993}}",
	    "");
	expect_env(want, ARRAY_LEN(want));
}

TEST(the_row_has_names_of_variables_and_no_values)
{
	parse("{'argv':['x'],'env':{'KEY':'hunter2'}}", "");
	assert_string_equal(q.wish.commands[0].env_json, "{\"KEY\":\"***\"}");
	assert_string_equal(q.wish.commands[0].argv_json, "[\"x\"]");
}

TEST(what_is_wrong_is_named)
{
	refuse_json(quoted_json("{'commands':[{'shell':'x'}]}"), "identifier");
	refuse_json(
	    quoted_json("{'identifier':'a b','commands':[{'shell':'x'}]}"),
	    "identifier");
	refuse("", "", "commands");
	refuse("{'shell':'x'},{}", "",
	    "command 1 must set exactly one of shell or argv");
	refuse(
	    "{'shell':'x','cwd':'r'}", "", "commands[0].cwd must be absolute");
	refuse("{'shell':'x','timeout_ms':86400001}", "", "timeout_ms");
	refuse("{'shell':'x','env':['=v']}", "", "commands[0].env[0]");
	refuse("{'shell':'x'}", "'default_cwd':'r'", "options.default_cwd");
}

TEST(sixty_four_commands_pass_and_one_more_is_refused)
{
	AUTO(auto_json)
	json_t *args = json_pack("{s:s, s:[]}", "identifier", "a", "commands");
	json_t *commands = json_object_get(args, "commands");
	struct err e;

	for (int i = 0; i < RUNSPEC_COMMANDS_MAX; i++)
		json_array_append_new(
		    commands, json_pack("{s:s}", "shell", "x"));
	assert_int_equal(take(args, NULL, &e), 0);
	json_array_append_new(commands, json_pack("{s:s}", "shell", "x"));
	assert_int_equal(schema_check(schema, args, &e), ERR_INVAL);
}

TEST(the_denylist_marks_a_command)
{
	AUTO(auto_json)
	json_t *args =
	    call("{'argv':['docker','ps']},{'shell':'echo dockers'}", "");
	struct denylist *deny = deny_all_of(NULL);
	struct err e;

	assert_int_equal(take(args, deny, &e), 0);
	assert_true(q.wish.spec.commands[0].flags & RUNSPEC_DENIED);
	assert_string_equal(q.wish.spec.commands[0].deny, "\\bdocker\\b");
	assert_false(q.wish.spec.commands[1].flags & RUNSPEC_DENIED);
	denylist_free(deny);
}

TEST(a_bad_denylist_pattern_is_named)
{
	struct denylist *deny;
	struct err e;

	assert_int_equal(conf_set(conf, "DENYLIST_ENABLED", "true", &e), 0);
	assert_int_equal(conf_set(conf, "DENYLIST_PATTERNS", "ok,(", &e), 0);
	assert_int_equal(denylist_new(conf, &deny, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "DENYLIST_PATTERNS"));
}

TEST(a_pattern_that_is_not_read_once_is_refused)
{
	struct denylist *deny;
	struct err e;

	assert_int_equal(conf_set(conf, "DENYLIST_ENABLED", "true", &e), 0);
	assert_int_equal(
	    conf_set(conf, "DENYLIST_PATTERNS", "ok,(a)\\1", &e), 0);
	assert_int_equal(denylist_new(conf, &deny, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "\"(a)\\1\" (has back references)"));
}

/* A call with a command of argv, two words of n bytes "rm rm ..." in it. */
static json_t *
with_long_words(size_t n)
{
	AUTO(auto_free) char *word = xcalloc(n + 1, 1);

	for (size_t i = 0; i < n; i++)
		word[i] = "rm "[i % 3];
	return json_pack("{s:s, s:[{s:[s, s]}]}", "identifier", "a", "commands",
	    "argv", word, word);
}

/* Searched for from each of its bytes on it takes minutes. */
TEST(a_long_command_is_looked_through_once)
{
	struct denylist *deny =
	    deny_all_of("rm .*-ra,rm .*-rb,rm .*-rc,rm .*-rd,rm .*-re,rm .*-rf,"
			"rm .*-rg,rm .*-rh,rm .*-ri,rm .*-rj,rm .*-rk,(m*)*-");
	AUTO(auto_json)
	json_t *args = with_long_words(RUNSPEC_ARG_BYTES_MAX - 1);
	struct err e;

	(void)alarm(30);
	assert_int_equal(take(args, deny, &e), 0);
	(void)alarm(0);
	assert_false(q.wish.spec.commands[0].flags & RUNSPEC_DENIED);
	denylist_free(deny);
}

TEST(what_is_looked_through_has_a_bound)
{
	static const size_t words = RUNSPEC_ARG_BYTES_MAX - 1;
	AUTO(auto_json) json_t *args = with_long_words(words);
	struct denylist *deny = deny_all_of("mount");
	struct err e;

	json_array_append_new(json_object_get(args, "commands"),
	    json_pack("{s:s}", "shell", "ls"));
	assert_int_equal(take(args, deny, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "262145 bytes"));
	assert_non_null(strstr(e.msg, "262144"));
	assert_int_equal(take(args, NULL, &e), 0);
	denylist_free(deny);
}

TEST(a_ttl_is_defaulted_and_cut)
{
	AUTO(auto_json) json_t *o = json_object();

	assert_int_equal(args_ttl(conf, NULL), 3600);
	json_object_set_new(o, "ttl_seconds", json_integer(5));
	assert_int_equal(args_ttl(conf, o), 5);
	json_object_set_new(o, "ttl_seconds", json_integer(99999999));
	assert_int_equal(args_ttl(conf, o), 604800);
}

/* ---- what is too large */

#define SECRET_LOOKING "hunter2"

/* A call of one command with a variable; length bytes of value. */
static json_t *
with_variable(const char *name, size_t length)
{
	AUTO(auto_free) char *value = xcalloc(length + 1, 1);

	memset(value, 'v', length);
	if (length >= strlen(SECRET_LOOKING))
		memcpy(value, SECRET_LOOKING, strlen(SECRET_LOOKING));
	return json_pack("{s:s, s:[{s:s, s:{s:s}}]}", "identifier", "a",
	    "commands", "shell", "x", "env", name, value);
}

/* Refused with a text that has all words, and no value. */
static void
refuse_with(json_t *args, const char *const *words)
{
	struct err e = {0};

	assert_int_equal(take(args, NULL, &e), ERR_INVAL);
	for (; *words != NULL; words++)
		if (strstr(e.msg, *words) == NULL)
			fail_msg("\"%s\" does not say %s", e.msg, *words);
	assert_null(strstr(e.msg, SECRET_LOOKING));
	json_decref(args);
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void
pass(json_t *args)
{
	struct err e = {0};

	if (take(args, NULL, &e) != 0)
		fail_msg("refused: %s", e.msg);
	json_decref(args);
}

TEST(a_variable_that_is_too_long_is_named_with_the_rule)
{
	pass(with_variable("BIG", RUNSPEC_ARG_BYTES_MAX - strlen("BIG=")));
	refuse_with(
	    with_variable("BIG", RUNSPEC_ARG_BYTES_MAX - strlen("BIG=") + 1),
	    WORDS("commands[0].env.BIG", "131072 bytes", "131071", "file"));
	refuse_with(with_variable("BIG", 200000),
	    WORDS("commands[0].env.BIG", "200004 bytes", "131071"));
}

TEST(the_name_of_a_variable_has_rules_that_are_said)
{
	char name[ARGS_NAME_MAX + 2];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	refuse_with(with_variable("A=" SECRET_LOOKING, 1),
	    WORDS("commands[0].env.A", "contains \"=\""));
	refuse_with(with_variable("", 1), WORDS("commands[0].env", "no name"));
	refuse_with(with_variable(name, 1),
	    WORDS("commands[0].env.nnnn", "1025 bytes", "1024"));
	name[ARGS_NAME_MAX] = '\0';
	pass(with_variable(name, 1));
}

/* n variables, in the form of a list. */
static json_t *
variables(const char *prefix, int n)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(
		    list, json_sprintf("%s%d=" SECRET_LOOKING, prefix, i));
	return list;
}

static json_t *
with_variables(int defaults, int own)
{
	return json_pack("{s:s, s:[{s:s, s:o}], s:{s:o}}", "identifier", "a",
	    "commands", "shell", "x", "env", variables("OWN", own), "options",
	    "default_env", variables("ALL", defaults));
}

TEST(the_variables_of_a_command_are_counted_with_the_defaults)
{
	pass(with_variables(0, RUNSPEC_ENV_MAX));
	pass(with_variables(RUNSPEC_ENV_MAX - 1, 1));
	refuse_with(with_variables(0, RUNSPEC_ENV_MAX + 1),
	    WORDS("commands[0].env", "512", "options.default_env"));
	refuse_with(with_variables(RUNSPEC_ENV_MAX, 1),
	    WORDS("commands[0].env", "512", "options.default_env"));
	refuse_with(with_variables(RUNSPEC_ENV_MAX + 1, 0),
	    WORDS("options.default_env", "512"));
}

static json_t *
text_of(size_t n)
{
	AUTO(auto_free) char *text = xcalloc(n + 1, 1);

	memset(text, 'x', n);
	return json_string(text);
}

static json_t *
with_shell(size_t n)
{
	return json_pack("{s:s, s:[{s:o}]}", "identifier", "a", "commands",
	    "shell", text_of(n));
}

static json_t *
with_argument(size_t n)
{
	return json_pack("{s:s, s:[{s:[s, o]}]}", "identifier", "a", "commands",
	    "argv", "echo", text_of(n));
}

TEST(a_long_text_is_sent_to_execute_code_or_a_file)
{
	pass(with_shell(RUNSPEC_ARG_BYTES_MAX));
	refuse_with(with_shell(RUNSPEC_ARG_BYTES_MAX + 1),
	    WORDS("commands[0].shell", "131072 bytes", "131071", "execute_code",
		"1048576", "file"));
	pass(with_argument(RUNSPEC_ARG_BYTES_MAX));
	refuse_with(with_argument(RUNSPEC_ARG_BYTES_MAX + 1),
	    WORDS("commands[0].argv[1]", "131072 bytes", "131071",
		"execute_code", "file"));
}

TEST(words_that_are_too_long_together_are_named)
{
	refuse_with(json_pack("{s:s, s:[{s:s, s:[o, o]}]}", "identifier", "a",
			"commands", "shell", "x", "argv", text_of(70000),
			text_of(70000)),
	    WORDS("commands[0].argv", "140001 bytes", "131071"));
}

/* Of 128 KiB each, which is allowed, more than a run may have. */
TEST(a_run_that_is_too_large_is_refused_before_it_begins)
{
	json_t *args = with_shell(RUNSPEC_ARG_BYTES_MAX);
	json_t *commands = json_object_get(args, "commands");

	for (int i = 0; i < 16; i++)
		json_array_append(commands, json_array_get(commands, 0));
	refuse_with(args, WORDS("2097152"));
}

/* What 64 commands share is not copied 64 times to be refused. */
TEST(a_run_that_is_too_large_is_not_made_whole)
{
	AUTO(auto_json)
	json_t *args = json_pack("{s:s, s:[], s:{s:{s:o}}}", "identifier", "a",
	    "commands", "options", "default_env", "EACH", text_of(100000));
	unsigned long bytes = 0;
	struct err e = {0};

	for (int i = 0; i < RUNSPEC_COMMANDS_MAX; i++)
		json_array_append_new(json_object_get(args, "commands"),
		    json_pack("{s:s}", "shell", "x"));
	assert_int_equal(take(args, NULL, &e), ERR_INVAL);
	assert_int_equal(sscanf(e.msg, "%*[^0-9]%lu", &bytes), 1);
	assert_in_range(bytes, RUNSPEC_BYTES_MAX, RUNSPEC_BYTES_MAX + 200000);
}

TEST_MAIN(set_up, tear_down)
