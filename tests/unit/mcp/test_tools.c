/* The product's tool definitions, schema/tools/, through the real library. */
#include "supervisor/mcp/registry.h"
#include "tests/unit/mcp/fake.h"
#include "tests/unit/quoted.h"
#include "tests/unit/test.h"

static const char *const names[] = {"run_sandbox", "delete_sandbox",
    "restart_sandbox", "initialize_sandbox", "execute_code", "stop_sandbox",
    "get_run", "list_runs", "list_sandboxes", "control_run"};

#define NAMED 6              /* the first of them, that take an identifier */
#define LIST_BYTES_MAX 18000 /* about 4,500 tokens */

static json_t *
load(const char *name)
{
	const char *top = getenv("srcdir"); /* set by automake's tests */
	char path[4096];
	json_error_t je;
	json_t *j;

	(void)snprintf(path, sizeof(path), "%s/schema/tools/%s.json",
	    top == NULL ? "." : top, name);
	j = json_load_file(path, JSON_REJECT_DUPLICATES, &je);
	if (j == NULL)
		fail_msg("%s:%d: %s", path, je.line, je.text);
	return j;
}

static int
setup(void **state)
{
	struct mcp *m = fake_server();
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		json_t *definition = load(names[i]);

		if (mcp_add_tool(m, definition, fake_echo_cb, NULL, &e) != 0)
			fail_msg("%s: %s", names[i], e.msg);
		json_decref(definition);
	}
	*state = m;
	return 0;
}

static int
teardown(void **state)
{
	mcp_free(*state);
	return fake_teardown(state);
}

/* Call with these arguments (' for "); the refusal holds want, NULL: taken. */
static void
expect(struct mcp *m, const char *tool, const char *arguments, const char *want)
{
	char *s = fake_session(m), text[2000], *body;
	struct fake_client c = fake_client(s);
	struct fake_answer a;
	const char *got;
	json_t *result;
	int called = fake_called;

	(void)snprintf(text, sizeof(text),
	    "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':"
	    "{'name':'%s','arguments':%s}}",
	    tool, arguments);
	body = quoted(text);
	fake_post(m, &c, body, &a);
	fake_expect(&a, 200, 0);
	result = json_object_get(fake_seen, "result");
	got = json_string_value(json_object_get(
	    json_array_get(json_object_get(result, "content"), 0), "text"));
	assert_int_equal(fake_called - called, want == NULL ? 1 : 0);
	assert_true(
	    json_is_true(json_object_get(result, "isError")) == (want != NULL));
	if (want != NULL)
		fake_expect_has(got, want);
	fake_clear(&a);
	free(body);
	free(s);
}

/* What it does not name is refused, which is not listed: clients that check
 * by themselves say less of it than we do. */
static bool
is_closed(const json_t *schema)
{
	const json_t *more = json_object_get(schema, "x-unlisted");

	return json_is_false(json_object_get(more, "additionalProperties"));
}

TEST(each_file_has_all_that_a_client_shows)
{
	static const char *const hints[] = {"readOnlyHint", "destructiveHint",
	    "idempotentHint", "openWorldHint"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		json_t *d = load(names[i]);
		json_t *input = json_object_get(d, "inputSchema");
		json_t *notes = json_object_get(d, "annotations");

		assert_string_equal(
		    json_string_value(json_object_get(d, "name")), names[i]);
		assert_true(json_is_string(json_object_get(d, "title")));
		assert_true(json_is_string(json_object_get(d, "description")));
		assert_true(is_closed(input));
		assert_true(json_is_object(json_object_get(d, "outputSchema")));
		/* Claude Code's documents say 2 KiB of one. */
		assert_in_range(
		    json_string_length(json_object_get(d, "description")), 40,
		    2048);
		for (size_t h = 0; h < ARRAY_LEN(hints); h++)
			assert_true(
			    json_is_boolean(json_object_get(notes, hints[h])));
		/* Only what reads changes nothing. */
		assert_int_equal(
		    json_is_true(json_object_get(notes, "readOnlyHint")),
		    strncmp(names[i], "get_", 4) == 0 ||
			strncmp(names[i], "list_", 5) == 0);
		assert_true(
		    json_is_false(json_object_get(notes, "openWorldHint")));
		json_decref(d);
	}
}

static void
check_name(const char *name, const char *tool)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "abcdefghijklmnopqrstuvwxyz"
				       "0123456789_.-";

	if (*name == '\0' || strlen(name) > 64 ||
	    strspn(name, alphabet) != strlen(name))
		fail_msg("%s: a property named %s", tool, name);
}

/* Keywords whose meaning is the same in draft-07 and 2020-12, one type for
 * each value, and no form beside another. */
static void
walk_listed(json_t *node, const char *tool)
{
	static const char *const known[] = {"type", "properties", "required",
	    "additionalProperties", "items", "minItems", "maxItems", "minimum",
	    "maximum", "minLength", "maxLength", "pattern", "enum", "default",
	    "description"};
	json_t *part;
	const char *key;
	size_t i;

	json_object_foreach (node, key, part) {
		for (i = 0; i < ARRAY_LEN(known); i++)
			if (strcmp(key, known[i]) == 0)
				break;
		if (i == ARRAY_LEN(known))
			fail_msg("%s: keyword %s", tool, key);
	}
	if (!json_is_string(json_object_get(node, "type")))
		fail_msg("%s: a value without one type", tool);
	if (json_is_false(json_object_get(node, "additionalProperties")))
		fail_msg("%s: further properties are forbidden", tool);
	json_object_foreach (json_object_get(node, "properties"), key, part) {
		check_name(key, tool);
		walk_listed(part, tool);
	}
	part = json_object_get(node, "items");
	if (part != NULL)
		walk_listed(part, tool);
	part = json_object_get(node, "additionalProperties");
	if (part != NULL)
		walk_listed(part, tool);
}

/* Whatever has properties takes no others in what a client sends. */
static void
walk_definition(json_t *node, const char *tool)
{
	json_t *properties = json_object_get(node, "properties"), *part;
	const char *key;

	if (properties != NULL && !is_closed(node))
		fail_msg("%s: an object is open", tool);
	json_object_foreach (properties, key, part)
		walk_definition(part, tool);
	part = json_object_get(node, "items");
	if (part != NULL)
		walk_definition(part, tool);
}

TEST(arguments_that_nobody_knows_are_refused_everywhere)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		json_t *d = load(names[i]);

		walk_definition(json_object_get(d, "inputSchema"), names[i]);
		json_decref(d);
	}
}

TEST_WITH(
    setup, teardown, schemas_use_only_keywords_that_all_clients_read_alike)
{
	char *s = fake_session(*state);
	struct fake_client c = fake_client(s);
	struct fake_answer a;
	json_t *tool;
	size_t i;

	fake_post(*state, &c,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", &a);
	fake_expect(&a, 200, 0);
	json_array_foreach (
	    json_object_get(json_object_get(fake_seen, "result"), "tools"), i,
	    tool)
		walk_listed(json_object_get(tool, "inputSchema"), names[i]);
	assert_int_equal(i, ARRAY_LEN(names));
	fake_clear(&a);
	free(s);
}

/* Else they are names without a schema in a client that defers tools. */
TEST(the_two_that_run_something_are_always_loaded)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		json_t *d = load(names[i]);
		bool runs = strcmp(names[i], "run_sandbox") == 0 ||
		    strcmp(names[i], "execute_code") == 0;

		assert_int_equal(
		    json_is_true(json_object_get(
			json_object_get(d, "_meta"), "anthropic/alwaysLoad")),
		    runs);
		json_decref(d);
	}
}

TEST_WITH(setup, teardown, the_whole_list_is_short)
{
	char *s = fake_session(*state);
	struct fake_client c = fake_client(s);
	struct fake_answer a;

	fake_post(*state, &c,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", &a);
	fake_expect(&a, 200, 0);
	assert_in_range(strlen(a.body), 1, LIST_BYTES_MAX);
	fake_clear(&a);
	free(s);
}

#define RUN(command) "{'identifier':'a','commands':[{" command "}]}"
#define WITH(options)                                                          \
	"{'identifier':'a','commands':[{'shell':'x'}],'options':{" options "}" \
	"}"

TEST_WITH(setup, teardown, run_sandbox_takes_all_forms_of_the_seed)
{
	expect(*state, "run_sandbox", RUN("'shell':'ls'"), NULL);
	expect(*state, "run_sandbox", RUN("'shell':null,'argv':['ls','-l']"),
	    NULL);
	expect(*state, "run_sandbox", RUN("'shell':false,'argv':['ls']"), NULL);
	expect(*state, "run_sandbox", RUN("'shell':'','argv':['ls']"), NULL);
	expect(*state, "run_sandbox",
	    RUN("'argv':['a'],'cwd':'/x','allow_failure':true,"
		"'timeout_ms':86400000,'env':{'A':'b','C':1,'D':true}"),
	    NULL);
	expect(*state, "run_sandbox", RUN("'argv':['a'],'env':['A=b']"), NULL);
	expect(*state, "run_sandbox", RUN("'argv':['a'],'timeout_ms':0"), NULL);
	expect(*state, "run_sandbox",
	    WITH("'ttl_seconds':1,'default_cwd':'/','default_env':['A=b'],"
		 "'as_user':'root','continue_on_error':true,"
		 "'lock_sandbox':true,'await_completion':true,"
		 "'await_timeout_ms':0"),
	    NULL);
	expect(*state, "run_sandbox", WITH("'default_env':{'A':1}"), NULL);
}

TEST_WITH(setup, teardown, run_sandbox_says_what_is_wrong)
{
	expect(*state, "run_sandbox", "{'identifier':'a'}",
	    "argument commands: missing");
	expect(*state, "run_sandbox", "{'commands':[{'shell':'x'}]}",
	    "argument identifier: missing");
	expect(*state, "run_sandbox", "{'identifier':'a','commands':[]}",
	    "argument commands: want at least 1 item");
	expect(*state, "run_sandbox", RUN("'shell':7"),
	    "argument commands[0].shell: want a string or a boolean");
	expect(*state, "run_sandbox", RUN("'timeout_ms':'1'"),
	    "argument commands[0].timeout_ms: want an integer, got a string");
	expect(*state, "run_sandbox", RUN("'timeout_ms':-1"),
	    "argument commands[0].timeout_ms: want at least 0");
	expect(*state, "run_sandbox", RUN("'timeout_ms':86400001"),
	    "argument commands[0].timeout_ms: want at most 86400000");
	expect(*state, "run_sandbox", RUN("'timeout':1"),
	    "unknown argument commands[0].timeout; known: shell, argv, cwd, "
	    "env, timeout_ms, allow_failure");
	expect(*state, "run_sandbox", RUN("'env':{'A':null}"),
	    "argument commands[0].env.A: want");
	expect(*state, "run_sandbox", RUN("'env':'A=b'"),
	    "argument commands[0].env: want an object or an array");
	expect(*state, "run_sandbox", WITH("'foo':1"),
	    "unknown argument options.foo; known: ttl_seconds, default_cwd, "
	    "default_env, as_user, continue_on_error, lock_sandbox, "
	    "kill_leftovers, "
	    "await_completion, await_timeout_ms");
	expect(*state, "run_sandbox", WITH("'as_user':'me'"),
	    "argument options.as_user: want one of \"sandbox\", \"root\"");
	expect(*state, "run_sandbox", WITH("'ttl_seconds':-1"),
	    "argument options.ttl_seconds: want at least 1");
	expect(*state, "run_sandbox", WITH("'await_timeout_ms':-1"),
	    "argument options.await_timeout_ms: want at least 0");
}

TEST_WITH(setup, teardown, identifiers_are_checked_in_every_tool)
{
	static const char *const bad[] = {"'a b'", "'../x'", "'a.b'",
	    "'\xc3\xa4'", "'1234567890123456789012345678901234567'", "7",
	    "'a\\n'"};
	char arguments[200];

	for (size_t i = 0; i < NAMED; i++)
		for (size_t b = 0; b < ARRAY_LEN(bad); b++) {
			(void)snprintf(arguments, sizeof(arguments),
			    "{'identifier':%s}", bad[b]);
			expect(*state, names[i], arguments,
			    "argument identifier: want");
		}
	expect(*state, "delete_sandbox",
	    "{'identifier':'123456789012345678901234567890123_-Z'}", NULL);
}

TEST_WITH(setup, teardown, delete_and_restart_want_an_identifier)
{
	expect(*state, "delete_sandbox", "{'identifier':'a'}", NULL);
	expect(*state, "restart_sandbox", "{'identifier':'a'}", NULL);
	expect(*state, "restart_sandbox",
	    "{'identifier':'a','options':{'ttl_seconds':5}}", NULL);
	expect(*state, "delete_sandbox", "{}", "identifier: missing");
	expect(*state, "restart_sandbox", "{}", "identifier: missing");
	expect(*state, "delete_sandbox", "{'identifier':''}", "identifier");
	expect(*state, "restart_sandbox", "{'identifier':''}", "identifier");
	expect(*state, "delete_sandbox", "{'identifier':'a','force':true}",
	    "unknown argument force; known: identifier");
	expect(*state, "restart_sandbox",
	    "{'identifier':'a','options':{'ttl_seconds':-1}}",
	    "options.ttl_seconds: want at least 1");
	expect(*state, "delete_sandbox", "{'identifier':''}",
	    "argument identifier: want at least 1 character");
	expect(*state, "restart_sandbox", "{'identifier':''}",
	    "argument identifier: want at least 1 character");
}

TEST_WITH(setup, teardown, the_interpreters_tools_need_no_identifier)
{
	expect(*state, "initialize_sandbox", "{}", NULL);
	expect(*state, "initialize_sandbox",
	    "{'image':'alpine:latest','identifier':'a'}", NULL);
	expect(*state, "execute_code", "{'code':''}", NULL);
	expect(*state, "execute_code",
	    "{'code':'x','language':'bash','identifier':'a'}", NULL);
	expect(*state, "execute_code", "{}", "argument code: missing");
	expect(*state, "execute_code", "{'code':'x','timeout':1}",
	    "unknown argument timeout; known: code, language, identifier");
	expect(*state, "stop_sandbox", "{}", NULL);
	expect(*state, "stop_sandbox", "{'x':1}", "known: identifier");
}

/* Some clients fill in every argument. */
TEST_WITH(setup, teardown, what_is_left_empty_counts_as_not_given)
{
	expect(*state, "run_sandbox",
	    WITH("'ttl_seconds':0,'default_cwd':'','as_user':'',"
		 "'await_timeout_ms':0"),
	    NULL);
	expect(*state, "run_sandbox",
	    RUN("'shell':'x','argv':[],'cwd':'','timeout_ms':0"), NULL);
	expect(*state, "restart_sandbox",
	    "{'identifier':'a','options':{'ttl_seconds':0}}", NULL);
	expect(
	    *state, "initialize_sandbox", "{'image':'','identifier':''}", NULL);
	expect(*state, "execute_code",
	    "{'code':'x','language':'','identifier':''}", NULL);
	expect(*state, "stop_sandbox", "{'identifier':''}", NULL);
	expect(*state, "get_run",
	    "{'run_id':'01234567-89ab-7def-8123-456789abcdef','cursor':'',"
	    "'wait_ms':0,'artifacts_from':0}",
	    NULL);
	expect(*state, "control_run",
	    "{'run_id':'01234567-89ab-7def-8123-456789abcdef',"
	    "'action':'list','process':''}",
	    NULL);
	expect(*state, "list_runs",
	    "{'identifier':'','sandbox':'','principal':'','tool':'',"
	    "'language':'','state':'','end_reason':'','since':'','until':'',"
	    "'min_duration_ms':0,'max_duration_ms':0,'q':'','artifact':'',"
	    "'sort':'','limit':0,'cursor':''}",
	    NULL);
	expect(*state, "list_sandboxes",
	    "{'identifier':'','state':'','limit':0,'cursor':''}", NULL);
	expect(*state, "get_run", "{'run_id':''}", "argument run_id: want");
}

/* What the service gives back must fit what the list promises. */
static void
expect_output(const char *tool, const char *text)
{
	json_t *d = load(tool), *value = quoted_json(text);
	struct schema *s = NULL;
	struct err e = {0};

	if (schema_new(json_object_get(d, "outputSchema"), &s, &e) != 0 ||
	    schema_check(s, value, &e) != 0)
		fail_msg("%s: %s", tool, e.msg);
	schema_free(s);
	json_decref(value);
	json_decref(d);
}

TEST(results_fit_the_output_schemas)
{
	expect_output("run_sandbox",
	    "{'tool':'run_sandbox','run_id':'r','events_url':'e',"
	    "'status_url':'s','identifier':'a','sandbox_name':'n'}");
	expect_output("run_sandbox",
	    "{'tool':'run_sandbox','run_id':'r','events_url':'e',"
	    "'status_url':'s','identifier':'a','sandbox_name':'n',"
	    "'final':null}");
	expect_output("run_sandbox",
	    "{'tool':'run_sandbox','run_id':'r','identifier':'a',"
	    "'final':{'run_id':'r','state':'failed','ended_at':null,"
	    "'commands':[{'index':0,'status':'queued','exit_code':null,"
	    "'stdout':'','stdout_bytes':0,'stdout_truncated':false,"
	    "'signal':9}],'artifacts':[{}],'error':'e'}}");
	expect_output("delete_sandbox",
	    "{'tool':'delete_sandbox','deleted':true,'identifier':'a'}");
	expect_output("restart_sandbox",
	    "{'tool':'restart_sandbox','sandbox':{'identifier':'a',"
	    "'container_id':'c','name':'n','created_at':'t',"
	    "'expires_at':null,'image':'i'}}");
	expect_output(
	    "initialize_sandbox", "{'status':'success','container_id':'c'}");
	expect_output("initialize_sandbox",
	    "{'status':'error','error_type':'DockerException','message':'m'}");
	expect_output("execute_code",
	    "{'status':'success','exit_code':0,'output':'o','run_id':'r'}");
	expect_output("execute_code",
	    "{'status':'error','error_type':'ExecutionError',"
	    "'message':'m','output':null,'exit_code':null}");
	expect_output("stop_sandbox", "{'status':'success','message':'m'}");
	expect_output("get_run",
	    "{'run_id':'r','state':'queued','waits_for':'lock',"
	    "'ended_at':null,'commands':[],'artifacts':[]}");
}

/* Some function-calling dialects drop a property whose type is a list. */
static void
no_list_of_types(const json_t *node, const char *where)
{
	const char *key;
	const json_t *sub;
	size_t i;

	if (json_is_array(json_object_get(node, "type")))
		fail_msg("%s: a list of types", where);
	json_object_foreach ((json_t *)(uintptr_t)node, key, sub)
		no_list_of_types(sub, key);
	json_array_foreach (node, i, sub)
		no_list_of_types(sub, where);
}

TEST(no_output_schema_has_a_list_of_types)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		json_t *d = load(names[i]);

		no_list_of_types(json_object_get(d, "outputSchema"), names[i]);
		json_decref(d);
	}
}

TEST_WITH(setup, teardown, strict_callers_and_decorating_models_are_understood)
{
	expect(*state, "run_sandbox",
	    RUN("'shell':'x','argv':null,'cwd':null,'env':null,"
		"'timeout_ms':null,'allow_failure':null,'description':'d'"),
	    NULL);
	expect(*state, "run_sandbox",
	    "{'identifier':'a','commands':[{'shell':null,'argv':['x']}],"
	    "'options':null,'reason':'because'}",
	    NULL);
	expect(*state, "run_sandbox",
	    WITH("'ttl_seconds':null,'as_user':null,'thought':'t'"), NULL);
	expect(*state, "run_sandbox", RUN("'shell':'x','colour':'d'"),
	    "unknown argument commands[0].colour");
	expect(*state, "run_sandbox",
	    "{'identifier':null,'commands':[{'shell':'x'}]}",
	    "argument identifier: want a string, got null");
}

TEST_MAIN(NULL, NULL)
