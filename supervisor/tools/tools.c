#include "supervisor/tools/tools.h"

#include <stdio.h>

#include <openssl/evp.h>

#include "common/exit.h"
#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/core/acts.h"
#include "supervisor/core/denylist.h"
#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/mcp/mcp.h"
#include "supervisor/tools/definition.h"
#include "supervisor/tools/languages.h"
#include "supervisor/tools/tool_text.h"
#include "supervisor/tools/tool.h"

static const struct tool *const all[] = {
    &tool_run_sandbox,
    &tool_delete_sandbox,
    &tool_restart_sandbox,
    &tool_initialize_sandbox,
    &tool_execute_code,
    &tool_stop_sandbox,
    &tool_get_run,
    &tool_list_runs,
    &tool_list_sandboxes,
    &tool_control_run,
};

struct tool_bound { /* what the registry gives back */
	struct tools *tools;
	const struct tool *tool;
};

struct tools {
	struct core *core;
	struct mcp *mcp;
	const struct embed_file *files; /* definitions */
	struct denylist *denylist;      /* NULL: off */
	struct languages *languages;
	uint8_t page_key[SIPHASH_KEY_BYTES];
	EVP_MD *sha256; /* to look for it costs as much as to use it */
	LIST_HEAD(tool_calls, tool_call) calls;
	void (*on_idle)(void *arg);
	void *idle_arg;
	struct tool_bound bound[ARRAY_LEN(all)];
};

/* ---- a call */

const struct denylist *
tools_denylist(const struct tools *t)
{
	return t->denylist;
}

const struct languages *
tools_languages(const struct tools *t)
{
	return t->languages;
}

size_t
tool_stream_max(const struct tool_call *t)
{
	return (size_t)conf_int(
	    core_conf(t->core), CONF_RESULT_OUTPUT_MAX_BYTES);
}

enum tool_text_form
tool_form(const struct tool_call *t)
{
	return strcmp(conf_str(core_conf(t->core), CONF_TOOL_TEXT), "json") ==
		0 ?
	    TOOL_TEXT_JSON :
	    TOOL_TEXT_TRANSCRIPT;
}

const uint8_t *
tool_page_key(const struct tool_call *t)
{
	return t->tools->page_key;
}

static void
check_idle(struct tools *ts)
{
	void (*on_idle)(void *) = ts->on_idle;

	if (on_idle == NULL || !LIST_EMPTY(&ts->calls))
		return;
	ts->on_idle = NULL;
	on_idle(ts->idle_arg);
}

static void
tool_end(
    struct tool_call *t, struct mcp_content *content, enum mcp_outcome outcome)
{
	struct tools *ts = t->tools;
	struct mcp_call *mcp = t->mcp;

	call_release(t->call);
	if (t->tool->clear != NULL)
		t->tool->clear(t);
	LIST_REMOVE(t, link);
	json_decref(t->arguments);
	free(t);
	mcp_call_result(mcp, content, outcome);
	check_idle(ts);
}

void
tool_result(struct tool_call *t, json_t *result)
{
	AUTO(auto_free) char *text = tool_text(t->tool, result, tool_form(t));
	struct mcp_content *content = mcp_content_new();

	/* A program that failed is no failed call: MCP's isError is for what
	 * keeps a tool from doing its work. */
	mcp_content_text(content, text, strlen(text));
	mcp_content_structured(content, result);
	tool_end(t, content, MCP_TOOL_DONE);
}

/* The word by which clients of the compatible server know a failure. */
static const char *
fail_word(const struct tool *tool, int code)
{
	if (code == ERR_BACKEND)
		return "BACKEND_UNAVAILABLE";
	if (code == ERR_QUOTA || code == ERR_NO_SECRET ||
	    code == ERR_NO_SECRET_KEY)
		return err_name(code);
	return tool->failed != NULL ? tool->failed : tool->name;
}

/* Also what the model cannot mend itself: it can tell its user, and try again.
 * There is no structured content: clients hold it against the tool's output
 * schema even then.  What a program wants to know of a quota is in _meta. */
void
tool_fail(struct tool_call *t, const struct err *why)
{
	AUTO(auto_free)
	char *text =
	    xasprintf("%s: %s", fail_word(t->tool, why->code), why->msg);
	struct mcp_content *content = mcp_content_new();

	mcp_content_text(content, text, strlen(text));
	if (why->code == ERR_QUOTA)
		mcp_content_meta(content, TOOL_REFUSAL,
		    json_pack("{s:s, s:s, s:I, s:I, s:I}", "code",
			err_name(why->code), "quota", why->refusal.quota,
			"limit", (json_int_t)why->refusal.limit, "used",
			(json_int_t)why->refusal.used, "retry_after",
			(json_int_t)why->refusal.wait_s));
	tool_end(t, content, MCP_TOOL_FAILED);
}

/* ---- what it has begun */

static int
digest_cb(const char *p, size_t n, void *arg)
{
	return EVP_DigestUpdate(arg, p, n) == 1 ? 0 : -1;
}

/* SHA-256 of the call's arguments as compact JSON with sorted members: whoever
 * has the arguments can show that the call had them.  The text is nowhere as a
 * whole, and made once per call: arguments may have megabytes. */
static const uint8_t *
digest_arguments(struct tool_call *t)
{
	EVP_MD_CTX *c;

	if (t->has_digest)
		return t->digest;
	c = EVP_MD_CTX_new();
	if (c == NULL || EVP_DigestInit_ex(c, t->tools->sha256, NULL) != 1 ||
	    json_dump_callback(t->arguments, digest_cb, c,
		JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) != 0)
		fatal(EXIT_BUG, "SHA-256 of arguments failed");
	if (EVP_DigestFinal_ex(c, t->digest, NULL) != 1)
		fatal(EXIT_BUG, "SHA-256 of arguments failed");
	EVP_MD_CTX_free(c);
	t->has_digest = true;
	return t->digest;
}

void
tool_tell(struct tool_call *t, const char *what, const char *subject,
    const char *detail)
{
	acts_note(core_acts(t->core),
	    &(struct act){.what = what,
		.who = t->call->who,
		.origin = t->call->origin,
		.request_id = t->call->request_id,
		.tenant = t->call->who->tenant_name,
		.subject = subject,
		.detail = detail,
		.digest = digest_arguments(t)});
}

void
tool_tell_run(struct tool_call *t, const char *what, const struct run *r)
{
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&r->row.uuid, id);
	tool_tell(t, what, id, r->row.sandbox_name);
}

void
tool_tell_sandbox(struct tool_call *t, const struct sandbox *sb)
{
	tool_tell(t, "sandbox.start", sb->row.name, sb->row.image);
}

static void
log_call(const struct tool_call *t)
{
	const char *identifier = js_text(t->arguments, "identifier");

	if (conf_bool(core_conf(t->core), CONF_LOG_TOOLCALLS))
		log_info("tool %s sandbox %.36s", t->tool->name,
		    identifier[0] != '\0' ? identifier : "default");
}

static void
tool_on_call(struct mcp_call *mcp, json_t *arguments, void *arg)
{
	const struct tool_bound *b = arg;
	struct tool_call *t = xcalloc(1, b->tool->size);

	t->tool = b->tool;
	t->tools = b->tools;
	t->core = b->tools->core;
	t->mcp = mcp;
	t->call = mcp_call_base(mcp);
	t->arguments = json_incref(arguments);
	LIST_INSERT_HEAD(&b->tools->calls, t, link);
	log_call(t);
	t->tool->start(t);
}

/* ---- definitions */

static int
add_tool(struct tools *ts, struct tool_bound *b, struct err *e)
{
	AUTO(auto_json) json_t *definition = NULL;

	if (definition_make(core_conf(ts->core), ts->files, b->tool->name,
		&definition, e) != 0)
		return e->code;
	return mcp_add_tool(ts->mcp, definition, tool_on_call, b, e);
}

static int
add_all(struct tools *ts, struct err *e)
{
	size_t nfiles = 0;

	while (ts->files[nfiles].name != NULL)
		nfiles++;
	if (nfiles != ARRAY_LEN(all))
		return err_set(e, ERR_INVAL,
		    "%zu tool definitions for %zu functions", nfiles,
		    ARRAY_LEN(all));
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		ts->bound[i] = (struct tool_bound){ts, all[i]};
		if (add_tool(ts, &ts->bound[i], e) != 0)
			return e->code;
	}
	return 0;
}

/* What is listed says what the settings say now. */
static void
change_all(const struct tools *ts)
{
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		AUTO(auto_json) json_t *definition = NULL;

		if (definition_make(core_conf(ts->core), ts->files,
			all[i]->name, &definition, &e) != 0 ||
		    mcp_change_tool(ts->mcp, definition, &e) != 0)
			log_warn("%s: it is listed as before", e.msg);
	}
}

/* ---- life */

int
tools_new(struct core *core, struct mcp *m, const struct embed_file *files,
    const uint8_t key[SIPHASH_KEY_BYTES], struct tools **out, struct err *e)
{
	struct tools *ts = xcalloc(1, sizeof(*ts));

	ts->core = core;
	ts->mcp = m;
	ts->files = files;
	memcpy(ts->page_key, key, sizeof(ts->page_key));
	LIST_INIT(&ts->calls);
	ts->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (ts->sha256 == NULL)
		fatal(EXIT_BUG, "no SHA-256");
	if (languages_load(&ts->languages, e) != 0 ||
	    denylist_new(core_conf(core), &ts->denylist, e) != 0 ||
	    add_all(ts, e) != 0) {
		tools_free(ts);
		return e->code;
	}
	*out = ts;
	return 0;
}

void
tools_free(struct tools *ts)
{
	struct tool_call *t;
	struct err e;

	if (ts == NULL)
		return;
	ts->on_idle = NULL;
	(void)err_set(&e, ERR_WRONG_STATE, "the server is shutting down");
	while ((t = LIST_FIRST(&ts->calls)) != NULL)
		tool_fail(t, &e);
	languages_free(ts->languages);
	denylist_free(ts->denylist);
	EVP_MD_free(ts->sha256);
	free(ts);
}

void
tools_reload(struct tools *ts)
{
	struct denylist *deny;
	struct err e;

	change_all(ts);
	if (denylist_new(core_conf(ts->core), &deny, &e) != 0) {
		log_warn("%s: the old patterns stay", e.msg);
		return;
	}
	denylist_free(ts->denylist);
	ts->denylist = deny;
}

void
tools_drain(struct tools *ts, void (*on_idle)(void *arg), void *arg)
{
	ts->on_idle = on_idle;
	ts->idle_arg = arg;
	check_idle(ts);
}
