/*
 * tools.c - the tools registered, and their calls from begin to end
 */
#include "supervisor/tools/tools.h"

#include <ctype.h>
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
#include "supervisor/mcp/offer.h"
#include "supervisor/tools/images.h"
#include "supervisor/tools/languages.h"
#include "supervisor/tools/offers.h"
#include "supervisor/tools/progress.h"
#include "supervisor/tools/server_url.h"
#include "supervisor/tools/tool_text.h"
#include "supervisor/tools/tool.h"

#define DEFINITION_MAX 65536
#define DEFINITION_DEPTH 32
#define TEXT_MAX (2 * DEFINITION_MAX) /* with what is filled in */

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
	struct resources *resources;
	const struct tool_task_ops *task_ops; /* NULL: no tasks */
	struct tool_tasks *tasks;
	struct completions *completions;
	uint8_t page_key[SIPHASH_KEY_BYTES];
	EVP_MD *sha256; /* to look for it costs as much as to use it */
	LIST_HEAD(tool_calls, tool_call) calls;
	void (*on_idle)(void *arg);
	void *idle_arg;
	struct tool_bound bound[ARRAY_LEN(all)];
};

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

void
tools_set_tasks(struct tools *ts, const struct tool_task_ops *task_ops,
    struct tool_tasks *tasks)
{
	ts->task_ops = task_ops;
	ts->tasks = tasks;
}

struct tool_tasks *
tools_tasks(const struct tools *ts)
{
	return ts->tasks;
}

static void
tool_close(struct tool_call *t)
{
	call_release(t->call);
	if (t->making != NULL)
		t->tools->task_ops->drop(t);
	progress_free(t->waiting);
	images_free(t->images);
	json_decref(t->result);
	if (t->tool->clear != NULL)
		t->tool->clear(t);
	LIST_REMOVE(t, link);
	json_decref(t->arguments);
	free(t);
}

void
tool_end(
    struct tool_call *t, struct mcp_content *content, enum mcp_outcome outcome)
{
	const struct tool_call was = *t;

	if (t->making != NULL && t->tools->task_ops->hold(t, content, outcome))
		return;
	tool_close(t);
	if (was.on_said != NULL)
		was.on_said(content, outcome, was.said_arg);
	else
		mcp_call_result(was.mcp, content, outcome);
	check_idle(was.tools);
}

void
tool_end_as_task(
    struct tool_call *t, const struct mcp_task *task, const char *say)
{
	struct tools *ts = t->tools;
	struct mcp_call *mcp = t->mcp;

	tool_close(t);
	mcp_call_task(mcp, task, say);
	check_idle(ts);
}

void
tool_ask(struct tool_call *t, json_t *questions)
{
	struct tools *ts = t->tools;
	struct mcp_call *mcp = t->mcp;

	tool_close(t);
	mcp_call_ask(mcp, questions, NULL);
	check_idle(ts);
}

void
tool_waits(struct tool_call *t)
{
	if (call_wants_progress(t->call) && t->waiting == NULL)
		t->waiting = progress_new(core_base(t->core), NULL, t->call);
}

bool
tool_is_structured(const struct tool_call *t)
{
	return t->is_structured ||
	    conf_bool(core_conf(t->core), CONF_TOOL_STRUCTURED);
}

static char *
text_of(const struct tool_call *t, const json_t *result)
{
	AUTO(auto_free)
	char *url = server_url_of(core_conf(t->core), t->call);
	const char *names[IMAGES_MAX];
	struct tool_text_wish wish = {
	    .form = tool_form(t), .server_url = url, .images = names};

	for (; wish.nimages < images_count(t->images); wish.nimages++)
		names[wish.nimages] = images_get(t->images, wish.nimages)->name;
	return tool_text(t->tool, result, &wish);
}

/* A program that failed is no failed call: MCP's isError is for what keeps a
 * tool from doing its work. */
static void
finish(struct tool_call *t, json_t *result)
{
	AUTO(auto_free) char *text = text_of(t, result);
	struct mcp_content *content = mcp_content_new();

	mcp_content_text(content, text, strlen(text));
	for (size_t i = 0; i < images_count(t->images); i++) {
		const struct images_item *im = images_get(t->images, i);

		mcp_content_image(content, im->data, im->n, im->type);
	}
	if (tool_is_structured(t))
		mcp_content_structured(content, result);
	else
		json_decref(result);
	tool_end(t, content, MCP_TOOL_DONE);
}

void
tool_result(struct tool_call *t, json_t *result)
{
	finish(t, result);
}

static void
images_read_cb(void *arg)
{
	struct tool_call *t = arg;
	json_t *result = t->result;

	t->result = NULL;
	finish(t, result);
}

/* Never beside structured content: there pictures get lost. */
void
tool_result_of(struct tool_call *t, json_t *result, const struct store_run *row)
{
	if (tool_form(t) == TOOL_TEXT_TRANSCRIPT && !tool_is_structured(t))
		t->images = images_read(
		    t->core, t->call->who->tenant, row, images_read_cb, t);
	if (t->images == NULL) {
		finish(t, result);
		return;
	}
	call_release(t->call); /* a cancel finds nothing to end any more */
	t->result = result;
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
	if (why->code == ERR_QUOTA && why->refusal.quota != NULL)
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

static struct tool_call *
tool_begin(const struct tool_bound *b, struct mcp_call *mcp, json_t *arguments)
{
	struct tool_call *t = xcalloc(1, b->tool->size);

	t->tool = b->tool;
	t->tools = b->tools;
	t->core = b->tools->core;
	t->mcp = mcp;
	t->call = mcp_call_base(mcp);
	t->is_structured =
	    json_is_true(json_object_get(mcp_call_meta(mcp), TOOL_STRUCTURED));
	t->arguments = json_incref(arguments);
	LIST_INSERT_HEAD(&b->tools->calls, t, link);
	return t;
}

static void
tool_on_call(struct mcp_call *mcp, json_t *arguments, void *arg)
{
	struct tool_call *t = tool_begin(arg, mcp, arguments);

	log_call(t);
	if (t->tools->task_ops == NULL || !t->tools->task_ops->admit(t))
		t->tool->start(t);
}

static void
tool_on_resume(struct mcp_call *mcp, const void *token, size_t n, void *arg)
{
	AUTO(auto_json) json_t *none = json_object();
	struct tool_call *t = tool_begin(arg, mcp, none);

	t->tool->resume(t, token, n);
}

const struct tool_bound *
tools_find(const struct tools *ts, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(all[i]->name, name) == 0 && all[i]->resume != NULL)
			return &ts->bound[i];
	return NULL;
}

void
tool_say_again(const struct tool_again *again)
{
	AUTO(auto_json) json_t *none = json_object();
	struct tool_call *t = tool_begin(again->bound, again->mcp, none);

	t->is_for_task = true;
	t->on_said = again->on_said;
	t->said_arg = again->arg;
	t->tool->resume(t, again->token, again->n);
}

/* ---- definitions, as the operator's settings have them
 *
 * A file of schema/tools/ names settings in braces: "{DEFAULT_TTL_SECONDS}" in
 * a text stands for the value, and as a whole text, such as that of a default,
 * for the number or truth value itself.  So what tools/list says is what the
 * server does.
 */

static const struct setting {
	const char *name;
	enum conf_key key;
	bool is_bool;
} settings[] = {
    {"DEFAULT_AWAIT_COMPLETION", CONF_DEFAULT_AWAIT_COMPLETION, true},
    {"DEFAULT_AWAIT_TIMEOUT_MS", CONF_DEFAULT_AWAIT_TIMEOUT_MS, false},
    {"DEFAULT_COMMAND_TIMEOUT_MS", CONF_DEFAULT_COMMAND_TIMEOUT_MS, false},
    {"DEFAULT_TTL_SECONDS", CONF_DEFAULT_TTL_SECONDS, false},
    {"MAX_TTL_SECONDS", CONF_MAX_TTL_SECONDS, false},
};

/* The name in braces at the beginning of p: its length, or 0. */
static size_t
name_len(const char *p)
{
	size_t n = 0;

	if (*p != '{')
		return 0;
	while (isupper((unsigned char)p[1 + n]) || p[1 + n] == '_')
		n++;
	return p[1 + n] == '}' ? n : 0;
}

static const struct setting *
find_setting(const char *p, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		if (strlen(settings[i].name) == n &&
		    strncmp(settings[i].name, p, n) == 0)
			return &settings[i];
	return NULL;
}

static json_t *
value_of(const struct conf *conf, const struct setting *s)
{
	return s->is_bool ? json_boolean(conf_bool(conf, s->key)) :
			    json_integer(conf_int(conf, s->key));
}

/* What stands for this text; NULL: it names a setting that nobody knows. */
static json_t *
filled(const struct conf *conf, const char *text, struct err *e)
{
	const struct setting *s;
	json_t *out;
	struct buf b;
	size_t n;

	buf_init(&b, TEXT_MAX);
	for (const char *p = text; *p != '\0'; p += n) {
		AUTO(auto_json) json_t *value = NULL;
		AUTO(auto_free) char *words = NULL;

		n = name_len(p);
		if (n == 0) {
			n = 1;
			(void)!buf_append(&b, p, 1);
			continue;
		}
		s = find_setting(p + 1, n);
		if (s == NULL) {
			buf_clear(&b);
			(void)err_set(e, ERR_INVAL,
			    "no definition may name the setting %.*s", (int)n,
			    p + 1);
			return NULL;
		}
		value = value_of(conf, s);
		if (p == text && p[n + 2] == '\0') {
			buf_clear(&b);
			return json_incref(value);
		}
		words = json_dumps(value, JSON_ENCODE_ANY);
		(void)buf_printf(&b, "%s", words);
		n += 2;
	}
	out = js_string_bytes(buf_data(&b), buf_len(&b), NULL);
	buf_clear(&b);
	return out;
}

static bool
names_setting(const char *text)
{
	for (; *text != '\0'; text++)
		if (name_len(text) > 0)
			return true;
	return false;
}

/* Our own files are not nested deep.  Texts in lists name no settings. */
static int
fill(const struct conf *conf, json_t *node, struct err *e)
{
	const char *name;
	json_t *value;
	size_t i;

	json_array_foreach (node, i, value)
		if (fill(conf, value, e) != 0)
			return e->code;
	json_object_foreach (node, name, value) {
		const char *text = json_string_value(value);
		json_t *is;

		if (fill(conf, value, e) != 0)
			return e->code;
		if (text == NULL || !names_setting(text))
			continue;
		is = filled(conf, text, e);
		if (is == NULL)
			return e->code;
		json_object_set_new(node, name, is); /* the key exists */
	}
	return 0;
}

static const char *
description_extra(const struct conf *conf, const char *tool, const char *what)
{
	char key[80];

	(void)snprintf(key, sizeof(key), "TOOL_DESC_%s_%s", tool, what);
	for (char *p = key; *p != '\0'; p++)
		*p = (char)toupper((unsigned char)*p);
	return conf_extra(conf, key);
}

static void
set_description(const struct conf *conf, const char *tool, json_t *definition)
{
	const char *text = js_text(definition, "description");
	const char *override, *append;
	AUTO(auto_free) char *both = NULL;

	if (!conf_bool(conf, CONF_TOOL_DESC_OVERRIDES_ENABLED))
		return;
	override = description_extra(conf, tool, "OVERRIDE");
	append = description_extra(conf, tool, "APPEND");
	if (override == NULL && append == NULL)
		return;
	both = xasprintf("%s%s%s", override != NULL ? override : text,
	    append != NULL ? " " : "", append != NULL ? append : "");
	json_object_set_new(definition, "description",
	    js_string_bytes(both, strlen(both), NULL));
}

/* Which images may be asked for is the operator's choice. */
static void
set_images(const struct conf *conf, const char *tool, json_t *definition)
{
	json_t *image = json_object_get(
	    json_object_get(
		json_object_get(definition, "inputSchema"), "properties"),
	    "image");
	const char *more = conf_str(conf, CONF_SANDBOX_IMAGES_ALLOWED);
	AUTO(auto_free) char *text = NULL;

	if (strcmp(tool, "initialize_sandbox") != 0 || image == NULL)
		return;
	text = xasprintf("Container image: %s (the default)%s%s",
	    conf_str(conf, CONF_SANDBOX_IMAGE), more[0] != '\0' ? ", " : "",
	    more);
	json_object_set_new(
	    image, "description", js_string_bytes(text, strlen(text), NULL));
}

static const struct embed_file *
find_file(const struct embed_file *files, const char *name)
{
	char file[64];

	(void)snprintf(file, sizeof(file), "%s.json", name);
	for (; files->name != NULL; files++)
		if (strcmp(files->name, file) == 0)
			return files;
	return NULL;
}

/* Of the tool of that name, from its file; *out is the caller's. */
static int
definition_make(const struct conf *conf, const struct embed_file *files,
    const char *name, json_t **out, struct err *e)
{
	const struct embed_file *file = find_file(files, name);
	AUTO(auto_json) json_t *definition = NULL;

	if (file == NULL)
		return err_set(e, ERR_INVAL, "tool %s has no definition", name);
	if (js_parse(file->data, file->len, DEFINITION_MAX, DEFINITION_DEPTH,
		&definition, e) != 0 ||
	    fill(conf, definition, e) != 0)
		return err_wrap(e, "%s", file->name);
	if (strcmp(js_text(definition, "name"), name) != 0)
		return err_set(
		    e, ERR_INVAL, "%s: its name must be %s", file->name, name);
	set_description(conf, name, definition);
	set_images(conf, name, definition);
	/* Clients take an answer without structured content for an error where
	 * there is an output schema: both, or neither. */
	if (!conf_bool(conf, CONF_TOOL_STRUCTURED))
		json_object_del(definition, "outputSchema");
	*out = definition;
	definition = NULL;
	return 0;
}

static int
add_tool(struct tools *ts, struct tool_bound *b, struct err *e)
{
	AUTO(auto_json) json_t *definition = NULL;

	if (definition_make(core_conf(ts->core), ts->files, b->tool->name,
		&definition, e) != 0)
		return e->code;
	if (mcp_add_tool(ts->mcp, definition, tool_on_call, b, e) != 0)
		return e->code;
	return b->tool->resume == NULL ?
	    0 :
	    mcp_tool_on_resume(ts->mcp, b->tool->name, tool_on_resume, e);
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
	    add_all(ts, e) != 0 || prompt_texts_add(m, e) != 0) {
		tools_free(ts);
		return e->code;
	}
	ts->resources = resources_new(core, m);
	ts->completions = completions_new(core, ts->languages, m);
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
	resources_free(ts->resources);
	completions_free(ts->completions);
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
