/*
 * completions.c - values for arguments of prompts and of resource templates:
 * languages, identifiers of sandboxes, runs, and paths of artifacts
 *
 * What is typed so far is a beginning, whatever its case.  Nothing of another
 * tenant is proposed.
 */
#include "supervisor/tools/offers.h"

#include <strings.h>
#include <sys/queue.h>

#include "common/buf.h"
#include "common/js.h"
#include "common/uuid.h"
#include "common/xmalloc.h"
#include "supervisor/core/core.h"
#include "supervisor/core/lookup.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/mcp/offer.h"
#include "supervisor/store/history.h"
#include "supervisor/tools/languages.h"

#define VALUES_MAX 100 /* MCP 2025-11-25, completion */
#define RUNS_LOOKED_AT 200

struct completions {
	struct core *core;
	const struct languages *languages;
	LIST_HEAD(, completing) open;
};

/* One that waits for the database. */
struct completing {
	struct completions *all;
	LIST_ENTRY(completing) link;
	struct mcp_call *call;
	char *value;
	struct history_asking *asking;
	struct lookup *lookup;
};

/* ---- values */

struct values {
	json_t *list;
	size_t total;
};

static void
propose(struct values *v, const char *candidate, const char *typed)
{
	if (strncasecmp(candidate, typed, strlen(typed)) != 0)
		return;
	if (v->total++ < VALUES_MAX)
		json_array_append_new(v->list, json_string(candidate));
}

static void
answer(struct mcp_call *call, const struct values *v)
{
	mcp_call_answer(call,
	    json_pack("{s:{s:o, s:I, s:b}}", "completion", "values", v->list,
		"total", (json_int_t)v->total, "hasMore",
		v->total > VALUES_MAX));
}

static void
answer_none(struct mcp_call *call)
{
	const struct values none = {.list = json_array()};

	answer(call, &none);
}

/* ---- at once */

static void
complete_language(struct completions *all, struct mcp_call *call,
    const struct mcp_completion *what)
{
	struct values v = {.list = json_array()};
	AUTO(auto_free) char *names = NULL;
	char *rest, *name;
	struct buf b;

	buf_init(&b, 0);
	languages_names(all->languages, &b);
	names = xstrndup((const char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	for (name = strtok_r(names, ", ", &rest); name != NULL;
	     name = strtok_r(NULL, ", ", &rest))
		propose(&v, name, what->value);
	answer(call, &v);
}

static void
complete_identifier(struct completions *all, struct mcp_call *call,
    const struct mcp_completion *what)
{
	struct tenant_id tenant = mcp_call_base(call)->who->tenant;
	struct values v = {.list = json_array()};
	const struct sandbox *sb = NULL;

	while ((sb = sandboxes_next(core_sandboxes(all->core), sb)) != NULL)
		if (sb->row.tenant == tenant.n && sb->name.is_held)
			propose(&v, sb->row.identifier, what->value);
	answer(call, &v);
}

/* ---- later */

static struct completing *
completing_new(
    struct completions *all, struct mcp_call *call, const char *value)
{
	struct completing *c = xcalloc(1, sizeof(*c));

	c->all = all;
	c->call = call;
	c->value = xstrdup(value);
	LIST_INSERT_HEAD(&all->open, c, link);
	return c;
}

static struct mcp_call *
completing_free(struct completing *c)
{
	struct mcp_call *call = c->call;

	LIST_REMOVE(c, link);
	if (c->asking != NULL)
		history_cancel(c->asking);
	lookup_close(c->lookup);
	free(c->value);
	free(c);
	return call;
}

/* Nothing is proposed where the history cannot be asked: it is a help. */
static void
runs_cb(
    int rc, const struct history_page *page, const struct err *why, void *arg)
{
	struct completing *c = arg;
	struct values v = {.list = json_array()};
	char id[UUID_TEXT_LEN + 1];

	(void)why;
	c->asking = NULL;
	for (size_t i = 0; rc == 0 && i < page->n; i++) {
		uuid_format(&page->lines[i].uuid, id);
		propose(&v, id, c->value);
	}
	answer(completing_free(c), &v);
}

static void
complete_run(struct completions *all, struct mcp_call *call,
    const struct mcp_completion *what)
{
	struct completing *c = completing_new(all, call, what->value);
	const struct history_query q = {.limit = RUNS_LOOKED_AT};

	c->asking = history_list(core_store(all->core),
	    mcp_call_base(call)->who->tenant, &q, runs_cb, c);
}

static void
artifacts_cb(
    int rc, const struct lookup_found *found, const struct err *why, void *arg)
{
	struct completing *c = arg;
	struct values v = {.list = json_array()};

	(void)why;
	for (size_t i = 0; rc == 0 && i < found->row->nartifacts; i++)
		propose(&v, found->row->artifacts[i].path, c->value);
	answer(completing_free(c), &v);
}

/* Of the run that the client has chosen before. */
static void
complete_path(struct completions *all, struct mcp_call *call,
    const struct mcp_completion *what)
{
	struct completing *c;
	struct uuid run;

	if (what->uri == NULL ||
	    uuid_parse(js_text(what->context, "run_id"), &run) != 0) {
		answer_none(call);
		return;
	}
	c = completing_new(all, call, what->value);
	c->lookup = lookup_open(
	    all->core, mcp_call_base(call)->who, &run, 0, artifacts_cb, c);
}

static const struct {
	const char *argument;
	void (*complete)(struct completions *all, struct mcp_call *call,
	    const struct mcp_completion *what);
} kinds[] = {
    {"language", complete_language},
    {"identifier", complete_identifier},
    {"run_id", complete_run},
    {"path", complete_path},
};

static void
on_complete(struct mcp_call *call, const struct mcp_completion *what, void *arg)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(kinds[i].argument, what->argument) == 0) {
			kinds[i].complete(arg, call, what);
			return;
		}
	answer_none(call);
}

struct completions *
completions_new(
    struct core *core, const struct languages *languages, struct mcp *m)
{
	struct completions *all = xcalloc(1, sizeof(*all));

	all->core = core;
	all->languages = languages;
	LIST_INIT(&all->open);
	mcp_set_completion(m, on_complete, all);
	return all;
}

void
completions_free(struct completions *all)
{
	struct completing *c;

	if (all == NULL)
		return;
	while ((c = LIST_FIRST(&all->open)) != NULL)
		mcp_call_error(completing_free(c), MCP_INTERNAL_ERROR,
		    "the server is shutting down", NULL);
	free(all);
}
