#include "supervisor/front/greeting.h"

#include "common/xmalloc.h"
#include "supervisor/front/front.h"
#include "supervisor/http/http.h"

#define POLICY "default-src 'none'; style-src 'unsafe-inline'"

bool
greeting_is_wanted(const struct http_exchange *x)
{
	const char *accept = http_header(x, HTTP_H_ACCEPT);

	return (http_method(x) == HTTP_METHOD_GET ||
		   http_method(x) == HTTP_METHOD_HEAD) &&
	    accept != NULL && strstr(accept, "text/html") != NULL;
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

void
greeting_reply(struct front *f, struct http_exchange *x)
{
	char *page = xasprintf(
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
}
