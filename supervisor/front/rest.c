#include "supervisor/front/front.h"

#include "common/exit.h"
#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/core/acts.h"
#include "supervisor/core/lookup.h"
#include "supervisor/core/run.h"
#include "supervisor/front/greeting.h"
#include "supervisor/front/scope.h"
#include "supervisor/front/status.h"

/* Small JSON answers beside MCP: the index, and one run: its status, its
 * cancel, its end for good. */

void
front_on_index(struct front *f, struct http_exchange *x)
{
	if (greeting_is_wanted(x)) {
		greeting_reply(f, x);
		return;
	}
	http_reply_json(x, 200,
	    json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "name",
		"mcp-sandboxd", "version", PACKAGE_VERSION, "mcp",
		f->mcp_path[0] != '\0' ? f->mcp_path : "/", "health",
		"/healthz", "ready", "/readyz", "metrics", "/metrics",
		"openapi", "/api/v1/openapi.json"));
}

/* ---- one run: its status, and its cancel */

struct run_get {
	struct http_exchange *x; /* outlives its client */
	struct front *front;
	struct lookup *lookup;
	uint32_t artifacts_from;
	bool cancel;
};

static void
run_get_free(struct run_get *g)
{
	lookup_close(g->lookup);
	free(g);
}

/* A run that has ended is not canceled any more: its status says how it did. */
static void
run_found_cb(
    int rc, const struct lookup_found *found, const struct err *why, void *arg)
{
	struct run_get *g = arg;

	if (rc != 0) {
		http_error_from(g->x, rc, why);
		run_get_free(g);
		return;
	}
	if (g->cancel && found->run != NULL) {
		scope_tell(g->front, g->x, http_principal(g->x), "run.cancel",
		    http_param(g->x, "run"));
		run_cancel(found->run, RUNLOG_CANCELED);
	}
	statuses_answer(
	    g->front->statuses, g->x, g->lookup, found, g->artifacts_from);
	g->lookup = NULL;
	run_get_free(g);
}

/* Of a long list of artifacts: ?artifacts_from=, 0 when it is not asked for. */
static int
parse_artifacts_from(struct http_exchange *x, uint32_t *from)
{
	const char *text = http_query(x, "artifacts_from");

	*from = 0;
	if (text == NULL)
		return 0;
	if (text[0] == '\0' || strlen(text) > 6 ||
	    strspn(text, "0123456789") != strlen(text))
		return -1;
	*from = (uint32_t)strtoul(text, NULL, 10);
	return 0;
}

static void
look_up(struct front *f, struct http_exchange *x, bool cancel)
{
	struct run_get *g;
	uint32_t from;
	struct uuid run;

	if (parse_artifacts_from(x, &from) != 0) {
		http_error(x, 400, "bad_request",
		    "artifacts_from must be a number: the artifacts_next of "
		    "the answer before");
		return;
	}
	g = xcalloc(1, sizeof(*g));
	if (uuid_parse(http_param(x, "run"), &run) != 0)
		fatal(EXIT_BUG, "a route without its run");
	g->front = f;
	g->x = x;
	g->cancel = cancel;
	g->artifacts_from = from;
	http_hold(x, NULL, NULL);
	g->lookup = lookup_open(
	    f->core, http_principal(x), &run, from, run_found_cb, g);
}

void
front_on_run_cancel(struct front *f, struct http_exchange *x)
{
	look_up(f, x, true);
}

/* ---- one run is forgotten */

struct run_delete {
	struct http_exchange *x; /* outlives its client */
	char run[UUID_TEXT_LEN + 1];
};

static void
deleted_cb(int rc, const struct err *why, void *arg)
{
	struct run_delete *d = arg;

	if (rc != 0)
		http_error_from(d->x, rc, why);
	else
		http_reply_json(d->x, 200,
		    json_pack("{s:s, s:b}", "run_id", d->run, "deleted", 1));
	free(d);
}

static void
delete_run(struct front *f, struct http_exchange *x)
{
	struct run_delete *d = xcalloc(1, sizeof(*d));
	struct uuid run;
	struct err e;

	if (uuid_parse(http_param(x, "run"), &run) != 0)
		fatal(EXIT_BUG, "a route without its run");
	uuid_format(&run, d->run);
	d->x = x;
	http_hold(x, NULL, NULL);
	/* Before it is known whether there is one: an attempt is an act. */
	scope_tell(f, x, http_principal(x), "run.delete", d->run);
	if (core_delete_run(
		f->core, http_principal(x), &run, deleted_cb, d, &e) != 0)
		deleted_cb(e.code, &e, d);
}

void
front_on_run(struct front *f, struct http_exchange *x)
{
	if (http_method(x) == HTTP_METHOD_DELETE)
		delete_run(f, x);
	else
		look_up(f, x, false);
}
