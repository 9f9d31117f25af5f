/* asker.h - a tool, a prompt and resources that ask their client, for the tests
 * of questions */
#ifndef TESTS_MCP_ASKER_H
#define TESTS_MCP_ASKER_H

#include "common/js.h"
#include "supervisor/mcp/offer.h"
#include "tests/unit/mcp/call_ground.h"

#define QUESTION_NAME                                                          \
	"{\"name\":{\"method\":\"elicitation/create\",\"params\":"             \
	"{\"message\":\"Your name?\",\"requestedSchema\":{\"type\":\"object\"" \
	",\"properties\":{\"name\":{\"type\":\"string\"}}}}}}"
#define QUESTION_PAIR                                                          \
	"{\"a\":{\"method\":\"sampling/createMessage\",\"params\":{}},"        \
	"\"b\":{\"method\":\"roots/list\"}}"

/* What it does, and what it was called with. */
static struct {
	const char *questions, *state; /* to ask with */
	int rounds;                    /* it asks so often */
	bool waits; /* holds the call instead of asking at once */
	int called;
	char *answers[4], *states[4]; /* of each call; NULL: none */
	struct mcp_call *held;
} asker;

static inline void
asker_clear(void)
{
	for (size_t i = 0; i < ARRAY_LEN(asker.answers); i++) {
		free(asker.answers[i]);
		free(asker.states[i]);
	}
	memset(&asker, 0, sizeof(asker));
}

static inline void
asker_ask(struct mcp_call *c)
{
	json_t *questions = json_loads(asker.questions, 0, NULL);

	assert_non_null(questions);
	mcp_call_ask(c, questions, asker.state);
}

/* false: it has asked, or will. */
static inline bool
asker_goes_on(struct mcp_call *c)
{
	const json_t *answers = mcp_call_answers(c);
	const char *state = mcp_call_state(c);
	int i = asker.called++;

	assert_in_range(i, 0, 3);
	asker.answers[i] = answers == NULL ? NULL : js_dump(answers);
	asker.states[i] = state == NULL ? NULL : xstrdup(state);
	if (asker.waits) {
		asker.held = c;
		return false;
	}
	if (i < asker.rounds)
		asker_ask(c);
	return i >= asker.rounds;
}

static inline void
asker_tool_cb(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arguments;
	(void)arg;
	if (asker_goes_on(c))
		fake_done(c, "done", NULL);
}

static inline void
asker_prompt_cb(struct mcp_call *c, const json_t *arguments, void *arg)
{
	(void)arguments;
	(void)arg;
	if (asker_goes_on(c))
		mcp_call_answer(c, json_pack("{s:[]}", "messages"));
}

static inline void
asker_list_cb(struct mcp_call *c, const char *cursor, void *arg)
{
	(void)cursor;
	(void)arg;
	if (asker_goes_on(c))
		mcp_call_answer(c, json_pack("{s:[]}", "resources"));
}

static inline void
asker_read_cb(struct mcp_call *c, const char *uri, void *arg)
{
	(void)arg;
	assert_string_equal(uri, "x://y");
	if (asker_goes_on(c))
		mcp_call_answer(c, json_pack("{s:[]}", "contents"));
}

static const struct mcp_resource_ops asker_ops = {
    .list = asker_list_cb, .read = asker_read_cb};

static inline void
asker_add(struct mcp *m)
{
	AUTO(auto_json) json_t *prompt = json_pack("{s:s}", "name", "asker");
	struct err e;

	fake_add(m,
	    "{\"name\":\"asker\",\"description\":\"d\","
	    "\"inputSchema\":{\"type\":\"object\"}}",
	    asker_tool_cb);
	fake_add(m,
	    "{\"name\":\"other\",\"description\":\"d\","
	    "\"inputSchema\":{\"type\":\"object\"}}",
	    asker_tool_cb);
	assert_int_equal(
	    mcp_add_prompt(m, prompt, asker_prompt_cb, NULL, &e), 0);
	mcp_set_resources(m, NULL, &asker_ops, NULL);
	asker.questions = QUESTION_NAME;
	asker.rounds = 1;
}

#endif
