#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "common/js.h"
#include "common/embed.h"
#include "supervisor/mcp/schema.h"
#include "supervisor/tools/args.h"

static struct conf *conf;
static struct schema *schema;

/* The tool's own schema, as a call is held against it. */
static struct schema *
load_schema(void)
{
	AUTO(auto_json) json_t *tool = NULL;
	const struct embed_file *f = embed_tools;
	struct schema *s;
	struct err e;

	while (strcmp(f->name, "run_sandbox.json") != 0)
		f++;
	tool = json_loadb(f->data, f->len, 0, NULL);
	assert_int_equal(
	    schema_new(json_object_get(tool, "inputSchema"), &s, &e), 0);
	return s;
}

static int
set_up(void **state)
{
	(void)state;
	conf = conf_new();
	schema = load_schema();
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	schema_free(schema);
	conf_free(conf);
	return 0;
}

/* What fits the schema, as it does in a call; 0, or what it cannot say. */
static int
take(json_t *args, const struct denylist *deny, struct run_args *q,
    struct err *e)
{
	assert_int_equal(schema_check(schema, args, e), 0);
	return args_run_from(conf, deny, args, q, e);
}

/* Parse a call's arguments; 0 or the error's code with its text in *e. */
static int
parse(const char *text, struct run_args *q, struct err *e)
{
	AUTO(auto_json) json_t *args = json_loads(text, 0, NULL);

	assert_non_null(args);
	return take(args, NULL, q, e);
}

/* By the schema or behind it: the caller is told the same way. */
static void
refuse(const char *text, const char *word)
{
	AUTO(auto_json) json_t *args = json_loads(text, 0, NULL);
	struct run_args q;
	struct err e = {0};

	assert_non_null(args);
	if (schema_check(schema, args, &e) == 0)
		assert_int_equal(
		    args_run_from(conf, NULL, args, &q, &e), ERR_INVAL);
	if (strstr(e.msg, word) == NULL)
		fail_msg("\"%s\" does not name %s", e.msg, word);
}

static void
test_a_shell_text_is_marked(void **state)
{
	struct run_args q;
	struct err e;

	(void)state;
	assert_int_equal(
	    parse("{\"identifier\":\"a\",\"commands\":[{\"shell\":\"ls\"}]}",
		&q, &e),
	    0);
	assert_string_equal(q.wish.spec.commands[0].argv[0], "ls");
	assert_int_equal(q.wish.spec.commands[0].argc, 1);
	assert_int_equal(q.wish.spec.commands[0].flags, RUNSPEC_SHELL);
	assert_string_equal(q.wish.spec.commands[0].cwd, "/workspace");
	assert_int_equal(q.wish.spec.commands[0].timeout_ms, 120000);
	assert_string_equal(q.wish.commands[0].shell, "ls");
	run_wish_clear(&q.wish);
}

static void
test_a_shell_text_keeps_its_blanks(void **state)
{
	struct run_args q;
	struct err e;

	(void)state;
	assert_int_equal(parse("{\"identifier\":\"a\",\"commands\":[{\"shell\":"
			       "\" \\n printf a\\\\ \"}]}",
			     &q, &e),
	    0);
	assert_string_equal(
	    q.wish.spec.commands[0].argv[0], " \n printf a\\ ");
	assert_string_equal(q.wish.commands[0].shell, " \n printf a\\ ");
	run_wish_clear(&q.wish);
}

static void
test_a_shell_text_of_blanks_is_none(void **state)
{
	struct run_args q;
	struct err e;

	(void)state;
	assert_int_equal(parse("{\"identifier\":\"a\",\"commands\":[{\"shell\":"
			       "\" \\t\\r\\n\",\"argv\":[\"ls\"]}]}",
			     &q, &e),
	    0);
	assert_int_equal(q.wish.spec.commands[0].flags, 0);
	run_wish_clear(&q.wish);
	refuse("{\"identifier\":\"a\",\"commands\":[{\"shell\":\" \\n\"}]}",
	    "command 0 must set exactly one of shell or argv");
}

static void
test_shell_and_argv_together_join_argv(void **state)
{
	struct run_args q;
	struct err e;

	(void)state;
	assert_int_equal(parse("{\"identifier\":\"a\",\"commands\":[{\"shell\":"
			       "\"/bin/bash\",\"argv\":[\"ls\",\"/\"]}]}",
			     &q, &e),
	    0);
	assert_string_equal(q.wish.spec.commands[0].argv[0], "ls /");
	run_wish_clear(&q.wish);
}

static void
test_later_variables_replace_earlier_ones(void **state)
{
	struct run_args q;
	struct err e;

	(void)state;
	assert_int_equal(
	    parse("{\"identifier\":\"a\",\"commands\":[{\"shell\":\"x\","
		  "\"env\":{\"A\":\"2\",\"N\":8080,\"T\":true}}],"
		  "\"options\":{\"default_env\":[\"A=1\",\"B=x=y\"]}}",
		&q, &e),
	    0);
	assert_int_equal(q.wish.spec.commands[0].nenv, 4);
	assert_string_equal(q.wish.spec.commands[0].env[0], "A=2");
	assert_string_equal(q.wish.spec.commands[0].env[1], "B=x=y");
	assert_string_equal(q.wish.spec.commands[0].env[2], "N=8080");
	assert_string_equal(q.wish.spec.commands[0].env[3], "T=true");
	run_wish_clear(&q.wish);
}

static void
test_the_row_has_names_of_variables_and_no_values(void **state)
{
	struct run_args q;
	struct err e;

	(void)state;
	assert_int_equal(
	    parse("{\"identifier\":\"a\",\"commands\":[{\"argv\":[\"x\"],"
		  "\"env\":{\"KEY\":\"hunter2\"}}]}",
		&q, &e),
	    0);
	assert_string_equal(q.wish.commands[0].env_json, "{\"KEY\":\"***\"}");
	assert_string_equal(q.wish.commands[0].argv_json, "[\"x\"]");
	run_wish_clear(&q.wish);
}

static void
test_what_is_wrong_is_named(void **state)
{
	(void)state;
	refuse("{\"commands\":[{\"shell\":\"x\"}]}", "identifier");
	refuse("{\"identifier\":\"a b\",\"commands\":[{\"shell\":\"x\"}]}",
	    "identifier");
	refuse("{\"identifier\":\"a\",\"commands\":[]}", "commands");
	refuse("{\"identifier\":\"a\",\"commands\":[{\"shell\":\"x\"},{}]}",
	    "command 1 must set exactly one of shell or argv");
	refuse("{\"identifier\":\"a\",\"commands\":[{\"shell\":\"x\","
	       "\"cwd\":\"r\"}]}",
	    "commands[0].cwd must be absolute");
	refuse("{\"identifier\":\"a\",\"commands\":[{\"shell\":\"x\","
	       "\"timeout_ms\":86400001}]}",
	    "timeout_ms");
	refuse("{\"identifier\":\"a\",\"commands\":[{\"shell\":\"x\","
	       "\"env\":[\"=v\"]}]}",
	    "commands[0].env[0]");
	refuse("{\"identifier\":\"a\",\"commands\":[{\"shell\":\"x\"}],"
	       "\"options\":{\"default_cwd\":\"r\"}}",
	    "options.default_cwd");
}

static void
test_sixty_four_commands_pass_and_one_more_is_refused(void **state)
{
	AUTO(auto_json)
	json_t *args = json_pack("{s:s, s:[]}", "identifier", "a", "commands");
	json_t *commands = json_object_get(args, "commands");
	struct run_args q;
	struct err e;

	(void)state;
	for (int i = 0; i < RUNSPEC_COMMANDS_MAX; i++)
		json_array_append_new(
		    commands, json_pack("{s:s}", "shell", "x"));
	assert_int_equal(take(args, NULL, &q, &e), 0);
	run_wish_clear(&q.wish);
	json_array_append_new(commands, json_pack("{s:s}", "shell", "x"));
	assert_int_equal(schema_check(schema, args, &e), ERR_INVAL);
}

static void
test_the_denylist_marks_a_command(void **state)
{
	AUTO(auto_json)
	json_t *args = json_loads("{\"identifier\":\"a\",\"commands\":"
				  "[{\"argv\":[\"docker\",\"ps\"]},"
				  "{\"shell\":\"echo dockers\"}]}",
	    0, NULL);
	struct denylist *deny;
	struct run_args q;
	struct err e;

	(void)state;
	assert_int_equal(conf_set(conf, "DENYLIST_ENABLED", "true", &e), 0);
	assert_int_equal(denylist_new(conf, &deny, &e), 0);
	assert_int_equal(take(args, deny, &q, &e), 0);
	assert_true(q.wish.spec.commands[0].flags & RUNSPEC_DENIED);
	assert_string_equal(q.wish.spec.commands[0].deny, "\\bdocker\\b");
	assert_false(q.wish.spec.commands[1].flags & RUNSPEC_DENIED);
	run_wish_clear(&q.wish);
	denylist_free(deny);
}

static void
test_a_bad_denylist_pattern_is_named(void **state)
{
	struct denylist *deny;
	struct err e;

	(void)state;
	assert_int_equal(conf_set(conf, "DENYLIST_ENABLED", "true", &e), 0);
	assert_int_equal(conf_set(conf, "DENYLIST_PATTERNS", "ok,(", &e), 0);
	assert_int_equal(denylist_new(conf, &deny, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "DENYLIST_PATTERNS"));
}

static void
test_a_ttl_is_defaulted_and_cut(void **state)
{
	AUTO(auto_json) json_t *o = json_object();

	(void)state;
	assert_int_equal(args_ttl(conf, NULL), 3600);
	json_object_set_new(o, "ttl_seconds", json_integer(5));
	assert_int_equal(args_ttl(conf, o), 5);
	json_object_set_new(o, "ttl_seconds", json_integer(99999999));
	assert_int_equal(args_ttl(conf, o), 604800);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	    T(test_a_shell_text_is_marked),
	    T(test_a_shell_text_keeps_its_blanks),
	    T(test_a_shell_text_of_blanks_is_none),
	    T(test_shell_and_argv_together_join_argv),
	    T(test_later_variables_replace_earlier_ones),
	    T(test_the_row_has_names_of_variables_and_no_values),
	    T(test_what_is_wrong_is_named),
	    T(test_sixty_four_commands_pass_and_one_more_is_refused),
	    T(test_the_denylist_marks_a_command),
	    T(test_a_bad_denylist_pattern_is_named),
	    T(test_a_ttl_is_defaulted_and_cut),
	};

	return cmocka_run_group_tests_name("args", tests, NULL, NULL);
}
