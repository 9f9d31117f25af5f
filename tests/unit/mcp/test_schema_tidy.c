#include "supervisor/mcp/schema.h"
#include "tests/unit/quoted.h"
#include "tests/unit/test.h"

static void
expect(const char *schema, const char *arguments, const char *want)
{
	json_t *root = quoted_json(schema), *args = quoted_json(arguments);
	json_t *wanted = quoted_json(want), *removed = json_array();
	json_t *again = json_deep_copy(args);
	struct schema *s = NULL;
	struct err e = {0};

	if (schema_new(root, &s, &e) != 0)
		fail_msg("schema: %s", e.msg);
	schema_tidy(s, args, NULL);
	schema_tidy(s, again, removed);
	if (!json_equal(args, wanted) || !json_equal(again, wanted))
		fail_msg("%s became %s", arguments, json_dumps(args, 0));
	assert_int_equal(
	    json_array_size(removed) > 0, strcmp(arguments, want) != 0);
	json_decref(removed);
	json_decref(again);
	schema_free(s);
	json_decref(wanted);
	json_decref(args);
	json_decref(root);
}

#define STRICT                                                                 \
	"{'type':'object','properties':{'id':{'type':'string'},"               \
	"'n':{'type':'integer'},'o':{'anyOf':[{'type':'string'},"              \
	"{'type':'null'}]},'list':{'type':'array','items':{'type':"            \
	"'object','properties':{'a':{'type':'string'}},"                       \
	"'additionalProperties':false}},'free':{'type':'object'}},"            \
	"'required':['id'],'additionalProperties':false}"

TEST(null_for_an_optional_argument_is_taken_out)
{
	expect(STRICT, "{'id':'x','n':null}", "{'id':'x'}");
	expect(STRICT, "{'id':'x','list':null,'free':null}", "{'id':'x'}");
	expect(STRICT, "{'id':'x','list':[{'a':null},{'a':'b'}]}",
	    "{'id':'x','list':[{},{'a':'b'}]}");
}

TEST(null_stays_where_it_has_a_meaning_or_is_a_fault)
{
	expect(STRICT, "{'id':null}", "{'id':null}");
	expect(STRICT, "{'id':'x','o':null}", "{'id':'x','o':null}");
	expect(STRICT, "{'id':'x','what':null}", "{'id':'x','what':null}");
	expect(STRICT, "{'id':'x','list':[null]}", "{'id':'x','list':[null]}");
	expect(STRICT, "{'id':'x','free':{'k':null}}",
	    "{'id':'x','free':{'k':null}}");
	expect("{'properties':{'x':{}}}", "{'x':null}", "{'x':null}");
	expect("{'properties':{'x':{'type':['null','string']}}}", "{'x':null}",
	    "{'x':null}");
}

#define FILLED_IN                                                              \
	"{'type':'object','properties':{'id':{'type':'string'},"               \
	"'text':{'type':'string','minLength':1,'pattern':'^a'},"               \
	"'word':{'type':'string','enum':['a','b']},'any':{'type':'string'},"   \
	"'few':{'type':'integer','minimum':1,'maximum':9},"                    \
	"'part':{'type':'number','minimum':0.5},"                              \
	"'wait':{'type':'integer','minimum':0},'code':{'type':'integer',"      \
	"'minimum':-1},'free':{'type':'integer'},"                             \
	"'form':{'anyOf':[{'type':'string'},{'type':'boolean'}]},"             \
	"'needed':{'type':'integer','minimum':1},"                             \
	"'in':{'type':'object','properties':{'word':{'type':'string',"         \
	"'enum':['a']},'few':{'type':'integer','minimum':1}}},"                \
	"'env':{'type':'object','additionalProperties':"                       \
	"{'type':'string'}}},'required':['id','needed']}"
#define NEEDED "'id':'x','needed':1"

TEST(empty_text_for_an_optional_argument_is_taken_out)
{
	expect(FILLED_IN, "{" NEEDED ",'text':'','word':'','any':''}",
	    "{" NEEDED "}");
	expect(
	    FILLED_IN, "{" NEEDED ",'in':{'word':''}}", "{" NEEDED ",'in':{}}");
	expect(FILLED_IN, "{" NEEDED ",'any':' '}", "{" NEEDED ",'any':' '}");
}

TEST(zero_is_taken_out_where_it_can_mean_nothing)
{
	expect(FILLED_IN, "{" NEEDED ",'few':0,'part':0}", "{" NEEDED "}");
	expect(FILLED_IN, "{" NEEDED ",'few':0.0,'part':-0.0}", "{" NEEDED "}");
	expect(
	    FILLED_IN, "{" NEEDED ",'in':{'few':0}}", "{" NEEDED ",'in':{}}");
	expect(FILLED_IN, "{" NEEDED ",'wait':0,'code':0,'free':0,'few':-1}",
	    "{" NEEDED ",'wait':0,'code':0,'free':0,'few':-1}");
}

TEST(what_is_needed_or_of_another_form_stays_empty)
{
	expect(FILLED_IN, "{'id':'','needed':0}", "{'id':'','needed':0}");
	expect(FILLED_IN, "{" NEEDED ",'form':'','few':'','in':''}",
	    "{" NEEDED ",'form':'','few':'','in':''}");
	expect(FILLED_IN, "{" NEEDED ",'text':0,'env':{'K':''},'what':''}",
	    "{" NEEDED ",'text':0,'env':{'K':''},'what':''}");
}

TEST(decorations_are_taken_out_and_other_keys_stay)
{
	expect(STRICT,
	    "{'id':'x','description':'d','reason':'r','explanation':1,"
	    "'thought':{}}",
	    "{'id':'x'}");
	expect(STRICT, "{'id':'x','list':[{'a':'b','thought':'t','b':1}]}",
	    "{'id':'x','list':[{'a':'b','b':1}]}");
	expect(STRICT, "{'id':'x','free':{'reason':'r'}}",
	    "{'id':'x','free':{'reason':'r'}}");
	expect("{'properties':{'x':{}}}", "{'reason':'r'}", "{'reason':'r'}");
	expect("{'properties':{'reason':{'type':'string'}},"
	       "'additionalProperties':false}",
	    "{'reason':'r'}", "{'reason':'r'}");
}

TEST(what_is_no_object_stays_as_it_is)
{
	expect(STRICT, "{'id':{'n':null},'list':'x','n':[1,null]}",
	    "{'id':{'n':null},'list':'x','n':[1,null]}");
	expect("{'type':'array','items':false}", "[null,{'thought':1}]",
	    "[null,{'thought':1}]");
}

TEST_MAIN(NULL, NULL)
