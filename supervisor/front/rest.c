#include "supervisor/front/front.h"

#include "common/exit.h"
#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/core/lookup.h"
#include "supervisor/core/run.h"
#include "supervisor/tools/view.h"

/* Small JSON answers beside MCP: the index and one run. */

static void
reply_json(struct http_exchange *x, int status, const json_t *o)
{
	char *text = js_dump(o);

	http_add_header(x, "Cache-Control", "no-store");
	http_reply_owned(x, status, "application/json", text, strlen(text));
}

void
front_on_index(struct front *f, struct http_exchange *x)
{
	AUTO(auto_json)
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name",
	    "mcp-sandboxd", "version", PACKAGE_VERSION, "mcp",
	    f->mcp_path[0] != '\0' ? f->mcp_path : "/", "health", "/healthz",
	    "ready", "/readyz", "metrics", "/metrics");

	reply_json(x, 200, o);
}

/* ---- one run: its status, and its cancel */

struct run_get {
	struct http_exchange *x; /* outlives its client */
	struct lookup *lookup;
	struct lookup_found found;
	bool cancel;
};

static void
run_get_free(struct run_get *g)
{
	lookup_close(g->lookup);
	free(g);
}

static void
run_digest_cb(
    int rc, const struct log_digest *d, const struct err *why, void *arg)
{
	struct run_get *g = arg;
	AUTO(auto_json) json_t *o = NULL;

	if (rc != 0) {
		http_error_from(g->x, rc, why);
	} else {
		o = view_run(g->found.row, d, run_waits_for(g->found.run));
		reply_json(g->x, 200, o);
	}
	run_get_free(g);
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
	g->found = *found;
	if (g->cancel && found->run != NULL)
		run_cancel(found->run, RUNLOG_CANCELED);
	log_view_digest(found->view,
	    found->run != NULL ? found->run->length : UINT64_MAX, run_digest_cb,
	    g, NULL);
}

static void
look_up(struct front *f, struct http_exchange *x, bool cancel)
{
	struct run_get *g = xcalloc(1, sizeof(*g));
	struct uuid run;

	if (uuid_parse(http_param(x, "run"), &run) != 0)
		fatal(EXIT_BUG, "a route without its run");
	g->x = x;
	g->cancel = cancel;
	http_hold(x, NULL, NULL);
	g->lookup = lookup_open(
	    f->core, check_principal(f->check), &run, run_found_cb, g);
}

void
front_on_run(struct front *f, struct http_exchange *x)
{
	look_up(f, x, false);
}

void
front_on_run_cancel(struct front *f, struct http_exchange *x)
{
	look_up(f, x, true);
}
