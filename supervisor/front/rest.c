#include "supervisor/front/front.h"

#include "common/js.h"
#include "common/log.h"

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

/* The exchange outlives its client, so it alone is what is kept. */
static void
run_view_cb(int rc, json_t *result, const struct err *why, void *arg)
{
	struct http_exchange *x = arg;

	if (rc != 0)
		http_error_from(x, rc, why);
	else
		reply_json(x, 200, result);
}

void
front_on_run(struct front *f, struct http_exchange *x)
{
	struct uuid run;

	if (uuid_parse(http_param(x, "run"), &run) != 0)
		fatal(70, "a route without its run");
	http_hold(x, NULL, NULL);
	service_run_view(
	    f->service, check_principal(f->check), &run, run_view_cb, x);
}
