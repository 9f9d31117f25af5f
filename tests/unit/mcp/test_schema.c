#include "supervisor/mcp/schema.h"
#include "tests/unit/quoted.h"
#include "tests/unit/test.h"

/* The refusal must be exactly want; NULL: the arguments fit. */
static void
expect(const char *schema, const char *arguments, const char *want)
{
	json_t *root = quoted_json(schema), *args = quoted_json(arguments);
	struct schema *s = NULL;
	struct err e = {0};
	int rc;

	if (schema_new(root, &s, &e) != 0)
		fail_msg("schema: %s", e.msg);
	rc = schema_check(s, args, &e);
	assert_int_equal(rc, want == NULL ? 0 : ERR_INVAL);
	if (want != NULL)
		assert_string_equal(e.msg, want);
	schema_free(s);
	json_decref(args);
	json_decref(root);
}

#define X(schema) "{'type':'object','properties':{'x':" schema "}}"

TEST(types_are_told_apart)
{
	expect(X("{'type':'integer'}"), "{'x':1}", NULL);
	expect(X("{'type':'integer'}"), "{'x':'1'}",
	    "argument x: want an integer, got a string");
	expect(X("{'type':'integer'}"), "{'x':1.5}",
	    "argument x: want an integer, got a number");
	expect(X("{'type':'number'}"), "{'x':1}", NULL);
	expect(X("{'type':'number'}"), "{'x':1.5}", NULL);
	expect(X("{'type':'number'}"), "{'x':true}",
	    "argument x: want a number, got a boolean");
	expect(X("{'type':'boolean'}"), "{'x':false}", NULL);
	expect(X("{'type':'boolean'}"), "{'x':0}",
	    "argument x: want a boolean, got an integer");
	expect(X("{'type':'null'}"), "{'x':null}", NULL);
	expect(X("{'type':'null'}"), "{'x':{}}",
	    "argument x: want null, got an object");
	expect(X("{'type':'array'}"), "{'x':{}}",
	    "argument x: want an array, got an object");
	expect(X("{'type':'object'}"), "{'x':[]}",
	    "argument x: want an object, got an array");
	expect(X("{'type':'string'}"), "{'x':null}",
	    "argument x: want a string, got null");
	expect(X("{}"), "{'x':[{}]}", NULL);
	expect(X("true"), "{'x':1}", NULL);
	expect(X("false"), "{}", NULL);
	expect(X("false"), "{'x':1}", "argument x: must not be there");
	expect("{'type':'object'}", "[]",
	    "arguments: want an object, got an array");
}

TEST(several_types_may_be_allowed)
{
	expect(X("{'type':['string','null','boolean']}"), "{'x':true}", NULL);
	expect(X("{'type':['string','null','boolean']}"), "{'x':'a'}", NULL);
	expect(X("{'type':['string','null','boolean']}"), "{'x':7}",
	    "argument x: want a string, null or a boolean, got an integer");
}

TEST(a_whole_number_becomes_the_integer_that_it_is)
{
	json_t *root =
	    quoted_json("{'type':'object','properties':{'x':{'type':"
			"'integer'},'a':{'items':{'type':'integer'}}}}");
	json_t *args = quoted_json("{'x':30.0,'a':[1,2.0]}");
	struct schema *s = NULL;
	struct err e;

	assert_int_equal(schema_new(root, &s, &e), 0);
	assert_int_equal(schema_check(s, args, &e), 0);
	assert_true(json_is_integer(json_object_get(args, "x")));
	assert_int_equal(json_integer_value(json_object_get(args, "x")), 30);
	assert_int_equal(
	    json_integer_value(json_array_get(json_object_get(args, "a"), 1)),
	    2);
	schema_free(s);
	json_decref(args);
	json_decref(root);
	expect(X("{'type':'integer'}"), "{'x':1e300}",
	    "argument x: want an integer, got a number");
}

TEST(defaults_are_not_filled_in)
{
	json_t *root = quoted_json(X("{'type':'integer','default':5}"));
	json_t *args = quoted_json("{}");
	struct schema *s = NULL;
	struct err e;

	assert_int_equal(schema_new(root, &s, &e), 0);
	assert_int_equal(schema_check(s, args, &e), 0);
	assert_int_equal(json_object_size(args), 0);
	schema_free(s);
	json_decref(args);
	json_decref(root);
}

#define OPTIONS                                                                \
	"{'type':'object','required':['options'],'properties':{'options':"     \
	"{'type':'object','properties':{'ttl_seconds':{},'as_user':{}},"       \
	"'required':['as_user'],'additionalProperties':false}},"               \
	"'additionalProperties':false}"

TEST(missing_and_unknown_arguments_are_named)
{
	expect(OPTIONS, "{'options':{'as_user':1}}", NULL);
	expect(OPTIONS, "{}", "argument options: missing, and it is required");
	expect(OPTIONS, "{'options':{}}",
	    "argument options.as_user: missing, and it is required");
	expect(OPTIONS, "{'options':{'foo':1}}",
	    "unknown argument options.foo; known: ttl_seconds, as_user");
	expect(OPTIONS, "{'option':{}}",
	    "unknown argument option; known: options");
	expect("{'type':'object','additionalProperties':false}", "{'a':1}",
	    "unknown argument a; known: none");
}

TEST(additional_properties_may_have_a_schema)
{
	expect("{'additionalProperties':{'type':'string'}}", "{'a':'b'}", NULL);
	expect("{'additionalProperties':{'type':'string'}}", "{'a':'b','c':1}",
	    "argument c: want a string, got an integer");
	expect("{'additionalProperties':true}", "{'a':1}", NULL);
}

TEST(items_are_counted_and_checked_with_their_index)
{
	expect(X("{'type':'array','minItems':1}"), "{'x':[]}",
	    "argument x: want at least 1 item, got 0");
	expect(X("{'type':'array','maxItems':2}"), "{'x':[1,2,3]}",
	    "argument x: want at most 2 items, got 3");
	expect(X("{'items':{'properties':{'timeout_ms':{'type':'integer'}}}}"),
	    "{'x':[{},{'timeout_ms':'soon'}]}",
	    "argument x[1].timeout_ms: want an integer, got a string");
	expect(X("{'items':{'items':{'type':'null'}}}"), "{'x':[[null,4]]}",
	    "argument x[0][1]: want null, got an integer");
}

TEST(numbers_have_bounds)
{
	expect(X("{'minimum':0,'maximum':86400000}"), "{'x':0}", NULL);
	expect(X("{'minimum':0,'maximum':86400000}"), "{'x':86400000}", NULL);
	expect(X("{'minimum':0,'maximum':86400000}"), "{'x':-1}",
	    "argument x: want at least 0, got -1");
	expect(X("{'minimum':0,'maximum':86400000}"), "{'x':86400001}",
	    "argument x: want at most 86400000, got 86400001");
	expect(X("{'minimum':0.5}"), "{'x':0.25}",
	    "argument x: want at least 0.5, got 0.25");
}

TEST(lengths_count_characters_not_bytes)
{
	expect(X("{'minLength':2,'maxLength':3}"),
	    "{'x':'\xc3\xa4\xf0\x9f\x98\x80\xe2\x82\xac'}", NULL);
	expect(X("{'minLength':2,'maxLength':3}"), "{'x':'\xc3\xa4'}",
	    "argument x: want at least 2 characters, got 1");
	expect(X("{'minLength':2,'maxLength':3}"), "{'x':'abcd'}",
	    "argument x: want at most 3 characters, got 4");
	expect(X("{'minLength':1}"), "{'x':''}",
	    "argument x: want at least 1 character, got 0");
}

TEST(patterns_are_matched)
{
	expect(X("{'pattern':'^[a-z]{1,3}$'}"), "{'x':'abc'}", NULL);
	expect(X("{'pattern':'^[a-z]{1,3}$'}"), "{'x':'ab/'}",
	    "argument x: want text that matches ^[a-z]{1,3}$, got \"ab/\"");
	expect(X("{'pattern':'b'}"), "{'x':'abc'}", NULL);
	expect(X("{'pattern':'^[a-z]+$'}"), "{'x':'a\\nb'}",
	    "argument x: want text that matches ^[a-z]+$, got \"a\\nb\"");
}

TEST(choices_are_listed)
{
	expect(X("{'enum':['sandbox','root']}"), "{'x':'root'}", NULL);
	expect(X("{'enum':['sandbox','root']}"), "{'x':'me'}",
	    "argument x: want one of \"sandbox\", \"root\", got \"me\"");
	expect(X("{'const':{'a':1}}"), "{'x':{'a':1}}", NULL);
	expect(X("{'const':7}"), "{'x':8}", "argument x: want 7, got 8");
}

#define ENV                                                                    \
	X("{'anyOf':[{'type':'object','additionalProperties':{'type':"         \
	  "['string','number','boolean']}},{'type':'array','items':{'type':"   \
	  "'string'}}]}")

TEST(of_several_forms_the_one_that_was_meant_is_explained)
{
	expect(ENV, "{'x':{'A':'b','C':1,'D':true}}", NULL);
	expect(ENV, "{'x':['A=b']}", NULL);
	expect(ENV, "{'x':{'A':null}}",
	    "argument x.A: want a string, a number or a boolean, got null");
	expect(ENV, "{'x':['A=b',2]}",
	    "argument x[1]: want a string, got an integer");
	expect(ENV, "{'x':'A=b'}",
	    "argument x: want an object or an array, got a string");
}

TEST(text_with_nul_is_refused_wherever_it_stands)
{
	expect("{}", "{'x':'a\\u0000b'}",
	    "argument x: text with a NUL character cannot be used");
	expect("{}", "{'y':[{'z':['\\u0000']}]}",
	    "argument y[0].z[0]: text with a NUL character cannot be used");
}

TEST(unknown_keywords_are_ignored)
{
	expect("{'$schema':'x','$defs':{'a':7},'allOf':[{}],'if':{},"
	       "'format':'date','title':'t'}",
	    "{'x':1}", NULL);
}

TEST(what_a_client_wrote_is_shown_in_part_only)
{
	char text[4096], *p = text;
	json_t *root =
	    quoted_json("{'type':'object','additionalProperties':false}");
	json_t *args = json_object();
	struct schema *s = NULL;
	struct err e;

	for (size_t i = 0; i < 1000; i++) {
		memcpy(p, "\xe2\x82\xac", 3);
		p += 3;
	}
	*p = '\0';
	assert_int_equal(json_object_set_new(args, text, json_null()), 0);
	assert_int_equal(schema_new(root, &s, &e), 0);
	assert_int_equal(schema_check(s, args, &e), ERR_INVAL);
	assert_int_equal(
	    strlen(e.msg), strlen("unknown argument ; known: none") + 48);
	schema_free(s);
	json_decref(args);
	json_decref(root);
}

TEST(a_schema_that_cannot_be_used_is_refused)
{
	static const struct {
		const char *schema, *want;
	} bad[] = {{"{'type':'text'}", "type is not the name of a type"},
	    {"{'type':[]}", "type is not the name of a type"},
	    {"{'type':['string',1]}", "type[1] is not the name of a type"},
	    {X("{'pattern':'['}"), "x: pattern [: "},
	    {X("{'pattern':1}"), "x: pattern is not a string"},
	    {"{'minItems':-1}", "minItems is not a count"},
	    {"{'maximum':'9'}", "maximum is not a number"},
	    {"{'required':'x'}", "required is not an array"},
	    {"{'required':[1]}", "required[0] is not a string"},
	    {"{'enum':1}", "enum is not an array"},
	    {"{'properties':[]}", "properties is not an object"},
	    {"{'items':[]}", "items: a schema is not an object"},
	    {"{'anyOf':[]}", "anyOf is not an array of forms"},
	    {"{'anyOf':[{},3]}", "anyOf[1]: a schema is not an object"},
	    {"{'additionalProperties':1}",
		"additionalProperties: a schema is not an object"}};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		json_t *root = quoted_json(bad[i].schema);
		struct schema *s = NULL;
		struct err e = {0};

		assert_int_equal(schema_new(root, &s, &e), ERR_INVAL);
		assert_null(s);
		if (strncmp(e.msg, bad[i].want, strlen(bad[i].want)) != 0)
			fail_msg("%s is not %s", e.msg, bad[i].want);
		json_decref(root);
	}
}

TEST(subschemas_are_bounded_in_depth)
{
	json_t *root = json_object();
	struct schema *s = NULL;
	struct err e;

	for (int i = 0; i < SCHEMA_DEPTH_MAX; i++)
		root = json_pack("{s:o}", "items", root);
	assert_int_equal(schema_new(root, &s, &e), 0);
	schema_free(s);
	root = json_pack("{s:o}", "items", root);
	assert_int_equal(schema_new(root, &s, &e), ERR_LIMIT);
	json_decref(root);
}

TEST_MAIN(NULL, NULL)
