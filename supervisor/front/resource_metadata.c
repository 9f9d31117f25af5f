/*
 * resource_metadata.c - where a client gets a token for this server: RFC 9728
 *
 * At the well-known place, with the resource's path behind it or without.
 * Where there is no authorization server there is nothing: anything else would
 * send clients into a login.
 */
#include "supervisor/front/front.h"

#include "common/js.h"
#include "supervisor/front/oauth.h"

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
front_on_resource_metadata(struct front *f, struct http_exchange *x)
{
	json_t *o;
	char *text;

	if (f->oauth == NULL ||
	    !is_at(http_path(x), oauth_metadata_url(f->oauth))) {
		http_error(x, 404, "not_found", "there is nothing here");
		return;
	}
	o = json_pack("{s:s, s:[s], s:[s], s:[s], s:s}", "resource",
	    oauth_resource(f->oauth), "authorization_servers",
	    conf_str(f->conf, CONF_OAUTH_ISSUER), "scopes_supported",
	    claims_scope(f->conf, PRINCIPAL_USER), "bearer_methods_supported",
	    "header", "resource_name", "mcp-sandboxd");
	text = js_dump(o);
	json_decref(o);
	http_reply_owned(x, 200, "application/json", text, strlen(text));
}
