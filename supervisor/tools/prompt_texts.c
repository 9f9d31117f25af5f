/*
 * prompt_texts.c - prompts that a person can pick: run this code, debug this
 * failure, analyse this file
 *
 * Each is one message of a user, made of a text with {ARGUMENT} in it.  What a
 * client fills in is text to a model, and nothing else here.
 */
#include "supervisor/tools/offers.h"

#include "common/buf.h"
#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/offer.h"

#define ARGUMENTS 3
#define PROMPT_MAX (1u << 20) /* bytes of a message; code may be long */

struct prompt_text {
	const char *name, *title, *description;
	struct {
		const char *name, *description;
		bool is_required;
	} argument[ARGUMENTS];
	const char *text;
	/* Behind it, if the last argument was given. */
	const char *more;
};

static const struct prompt_text prompts[] = {
    {"run_code", "Run code", "Run a program in the sandbox and explain it",
	{{"language", "Such as python or bash", true},
	    {"code", "The whole program", true},
	    {"identifier", "Which sandbox; a new one if it is left out",
		false}},
	"Run this {language} program in a sandbox with the tool execute_code "
	"or run_sandbox, then say what it printed and whether it did what it "
	"seems to be meant for. Install what it needs in the sandbox if that "
	"is possible. If it fails, mend it and run it again.\n\n"
	"```{language}\n{code}\n```\n",
	"\nUse the sandbox with the identifier {identifier}.\n"},
    {"debug_run", "Debug a failed run",
	"Find out why a run failed, and mend it",
	{{"run_id", "The run, as list_runs names it", true},
	    {"expected", "What should have happened", false}},
	"The run {run_id} did not do what it should. Look at it with the tool "
	"get_run (state, exit code, both ends of its output; page through it "
	"with cursor where bytes were left out). Say in one sentence what "
	"went wrong, then mend the cause in the same sandbox and run it again "
	"until it works. Leave alone what is not part of the fault.\n",
	"\nWhat should have happened: {expected}\n"},
    {"analyse_file", "Analyse a file",
	"Look at a file in a sandbox and answer a question about it",
	{{"identifier", "Which sandbox", true},
	    {"path", "The file, such as /workspace/data.csv", true},
	    {"question", "What to find out", false}},
	"In the sandbox with the identifier {identifier} is the file {path}. "
	"Find out with run_sandbox what it is (file, head, its size), read as "
	"much of it as is needed, and describe what is in it: its structure, "
	"ranges and anything odd. Write pictures and tables to /artifacts, "
	"and name them in your answer.\n",
	"\nThe question: {question}\n"},
};

static json_t *
definition_of(const struct prompt_text *p)
{
	json_t *arguments = json_array();

	for (size_t i = 0; i < ARGUMENTS && p->argument[i].name != NULL; i++)
		json_array_append_new(arguments,
		    json_pack("{s:s, s:s, s:b}", "name", p->argument[i].name,
			"description", p->argument[i].description, "required",
			p->argument[i].is_required));
	return json_pack("{s:s, s:s, s:s, s:o}", "name", p->name, "title",
	    p->title, "description", p->description, "arguments", arguments);
}

/* text begins with "{NAME}"; returns what is behind it */
static const char *
add_argument(struct buf *b, const char *text, const json_t *arguments)
{
	size_t n = strcspn(text, "}");
	AUTO(auto_free) char *name = xstrndup(text + 1, n - 1);
	const char *value = js_text(arguments, name);

	(void)!buf_append(b, value, strlen(value));
	return text + n + 1;
}

/* The argument's text is put in as it is: what it has in braces is its own. */
static void
add_filled(struct buf *b, const char *text, const json_t *arguments)
{
	while (*text != '\0') {
		size_t plain = strcspn(text, "{");

		(void)!buf_append(b, text, plain);
		text += plain;
		if (*text != '\0')
			text = add_argument(b, text, arguments);
	}
}

static const char *
last_argument(const struct prompt_text *p)
{
	size_t i = ARGUMENTS;

	while (p->argument[i - 1].name == NULL)
		i--;
	return p->argument[i - 1].name;
}

static void
on_get(struct mcp_call *call, const json_t *arguments, void *arg)
{
	const struct prompt_text *p = arg;
	struct buf b;
	struct err e;
	json_t *text;

	buf_init(&b, 0); /* it is not longer than twice the request */
	add_filled(&b, p->text, arguments);
	if (js_text(arguments, last_argument(p))[0] != '\0')
		add_filled(&b, p->more, arguments);
	if (buf_len(&b) > PROMPT_MAX) {
		buf_clear(&b);
		(void)err_set(&e, ERR_INVAL,
		    "the prompt would have more than 1 MiB: put the text into "
		    "a file of the sandbox");
		mcp_call_error(call, MCP_INVALID_PARAMS, e.msg, NULL);
		return;
	}
	text = js_string_bytes(buf_data(&b), buf_len(&b), NULL);
	buf_clear(&b);
	mcp_call_answer(call,
	    json_pack("{s:s, s:[{s:s, s:{s:s, s:o}}]}", "description",
		p->description, "messages", "role", "user", "content", "type",
		"text", "text", text));
}

int
prompt_texts_add(struct mcp *m, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(prompts); i++) {
		AUTO(auto_json) json_t *definition = definition_of(&prompts[i]);

		if (mcp_add_prompt(m, definition, on_get,
			(void *)(uintptr_t)&prompts[i], e) != 0)
			return e->code;
	}
	return 0;
}
