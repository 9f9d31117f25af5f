/*
 * about.c - what this server is and how to reach it: its index, a page for who
 * opens it in a browser, probes, the API's description, and where a client gets
 * a token
 */
#include "supervisor/front/handlers.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/front/etag.h"
#include "supervisor/front/oauth.h"

#define POLICY "default-src 'none'; style-src 'unsafe-inline'"

/* ---- a page for browsers */

/* As browsers ask: GET, and for text/html by name. */
static bool
is_browser(const struct http_exchange *x)
{
	const char *accept = http_header(x, HTTP_H_ACCEPT);

	return request_reads(x) && accept != NULL &&
	    strstr(accept, "text/html") != NULL;
}

/* As the client named this server; what is no plain name is not repeated. */
static const char *
host_of(const struct http_exchange *x)
{
	static const char good[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	    ".-:[]";
	const char *host = http_seen_host(x);

	return host != NULL && host[0] != '\0' &&
		strspn(host, good) == strlen(host) ?
	    host :
	    "127.0.0.1:8080";
}

bool
front_greet(const struct front *f, struct http_exchange *x)
{
	char *page;

	if (!is_browser(x))
		return false;
	page = xasprintf(
	    "<!doctype html>\n"
	    "<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	    "<meta name=\"viewport\" content=\"width=device-width\">\n"
	    "<title>mcp-sandboxd</title>\n"
	    "<style>body{font:16px/1.5 sans-serif;max-width:42em;"
	    "margin:3em auto;padding:0 1em}pre{background:#eee;padding:1em;"
	    "overflow:auto}</style></head><body>\n"
	    "<h1>mcp-sandboxd " PACKAGE_VERSION "</h1>\n"
	    "<p>A computer of its own for every AI agent. This address is for "
	    "MCP clients, not for browsers: give them the URL</p>\n"
	    "<pre>%s://%s%s</pre>\n"
	    "<p>as a server of type Streamable HTTP. Where a client reads its "
	    "servers from a file:</p>\n"
	    "<pre>{\"mcpServers\": {\"sandbox\": {\"type\": \"http\", "
	    "\"url\": \"%s://%s%s\"}}}</pre>\n"
	    "<p>Is it well? <a href=\"/readyz\">/readyz</a>, "
	    "<a href=\"/metrics\">/metrics</a>.</p>\n"
	    "</body></html>\n",
	    http_seen_scheme(x), host_of(x), f->mcp_path, http_seen_scheme(x),
	    host_of(x), f->mcp_path);

	http_add_header(x, "Content-Security-Policy", POLICY);
	http_add_header(x, "Cache-Control", "no-store");
	http_add_header(x, "Vary", "Accept");
	http_reply_owned(
	    x, 200, "text/html; charset=utf-8", page, strlen(page));
	return true;
}

/* ---- the index */

void
front_on_index(struct request *r)
{
	const char *mcp = r->front->mcp_path;

	if (!front_greet(r->front, r->x))
		http_reply_json(r->x, 200,
		    json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "name",
			"mcp-sandboxd", "version", PACKAGE_VERSION, "mcp",
			mcp[0] != '\0' ? mcp : "/", "health", "/healthz",
			"ready", "/readyz", "metrics", "/metrics", "openapi",
			"/api/v1/openapi.json"));
}

/* ---- probes: alive is who answers; ready is who can serve calls now */

static void
reply_status(struct http_exchange *x, const char *status)
{
	http_reply_json(x, 200, json_pack("{s:s}", "status", status));
}

void
front_on_healthz(struct request *r)
{
	reply_status(r->x, "ok");
}

void
front_on_readyz(struct request *r)
{
	struct err e;

	if (core_check(r->front->core, &e) != 0)
		http_error(r->x, 503, "not_ready", "%s", e.msg);
	else if (r->front->draining)
		http_error(r->x, 503, "not_ready", "shutting down");
	else
		reply_status(r->x, "ready");
}

/* ---- the API's description (schema/openapi.json, as it was at the build) */

void
front_on_openapi(struct request *r)
{
	static char tag[ETAG_BYTES]; /* the document is one for all time */
	const struct embed_file *doc = &embed_openapi[0];

	if (tag[0] == '\0')
		etag_of_bytes(doc->data, doc->len, tag);
	etag_reply(r->x, tag, doc->data, doc->len);
}

/* ---- where a client gets a token: RFC 9728.  At the well-known place, with
 * the resource's path behind it or without.  Where there is no authorization
 * server there is nothing: anything else would send clients into a login. */

/* The router has seen that path begins with OAUTH_WELL_KNOWN. */
static bool
is_at(const char *path, const char *url)
{
	size_t n = strcspn(path, "?"), len = strlen(url);

	return n == strlen(OAUTH_WELL_KNOWN) ||
	    (len > n && memcmp(url + len - n, path, n) == 0);
}

/* The scope of users alone: a client asks for all that it finds here. */
void
front_on_resource_metadata(struct request *r)
{
	const struct front *f = r->front;
	json_t *o;
	char *text;

	if (f->oauth == NULL ||
	    !is_at(http_path(r->x), oauth_metadata_url(f->oauth))) {
		http_error(r->x, 404, "not_found", "there is nothing here");
		return;
	}
	o = json_pack("{s:s, s:[s], s:[s], s:[s], s:s}", "resource",
	    oauth_resource(f->oauth), "authorization_servers",
	    conf_str(f->conf, CONF_OAUTH_ISSUER), "scopes_supported",
	    claims_scope(f->conf, PRINCIPAL_USER), "bearer_methods_supported",
	    "header", "resource_name", "mcp-sandboxd");
	text = js_dump(o);
	json_decref(o);
	http_reply_owned(r->x, 200, "application/json", text, strlen(text));
}
