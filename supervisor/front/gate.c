#include "supervisor/front/gate.h"

#include <stdio.h>
#include <strings.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/core/acts.h"
#include "supervisor/core/tenants.h"
#include "supervisor/front/jwt.h"
#include "supervisor/front/oauth.h"
#include "supervisor/front/scope.h"

#define SCHEME "Bearer"
#define WELL_KNOWN "/.well-known/"

static void
tell_failure(
    const struct front *f, const struct http_exchange *x, const char *why)
{
	gate_tell(f, x, "auth.failure", why);
}

void
gate_tell(const struct front *f, const struct http_exchange *x,
    const char *what, const char *why)
{
	char client[NETADDR_TEXT_MAX];
	struct act act = scope_act(x, what, client);

	if (act.who != NULL && act.who->tenant_name[0] != '\0')
		act.tenant = act.who->tenant_name;
	act.detail = why;
	acts_refused(core_acts(f->core), &act);
}

/* Where a token is to be had, for what: the first role that would do.  RFC
 * 9728, section 5.1; MCP 2025-11-25, authorization. */
static void
add_challenge(const struct front *f, struct http_exchange *x,
    const struct route *r, const char *error)
{
	AUTO(auto_free) char *text = NULL;
	enum principal_role role = PRINCIPAL_USER;

	while (r != NULL && role + 1 < PRINCIPAL_ROLE_COUNT &&
	    (r->roles & ROUTE_ROLE(role)) == 0)
		role++;
	text = f->oauth == NULL ?
	    xasprintf(SCHEME " realm=\"mcp\"%s", error) :
	    xasprintf(SCHEME
		" realm=\"mcp\"%s, resource_metadata=\"%s\", scope=\"%s\"",
		error, oauth_metadata_url(f->oauth),
		claims_scope(f->conf, role));
	http_add_header(x, "WWW-Authenticate", text);
	http_add_header(x, "Cache-Control", "no-store");
}

/* RFC 6750, section 3: no error is named when nothing was sent. */
static void
challenge(const struct front *f, struct http_exchange *x, const struct route *r,
    const char *token)
{
	add_challenge(
	    f, x, r, token == NULL ? "" : ", error=\"invalid_token\"");
	if (token == NULL)
		http_error(x, 401, "unauthorized",
		    "this server wants a token: send Authorization: " SCHEME
		    " TOKEN (an administrator makes one with sandboxctl token "
		    "add)");
	else
		http_error(x, 401, "invalid_token",
		    "the token is none of this server's, has expired or was "
		    "revoked: ask an administrator for another");
}

/* The token of the header: NULL when there is no header, "" when it is of
 * another scheme. */
static const char *
token_of(const struct http_exchange *x)
{
	const char *text = http_header(x, HTTP_H_AUTHORIZATION);
	size_t n = strlen(SCHEME);

	if (text == NULL)
		return NULL;
	if (strncasecmp(text, SCHEME, n) != 0 || text[n] != ' ')
		return "";
	return text + n + strspn(text + n, " ");
}

/* Who administers is of no tenant, and what only users may do is a tenant's:
 * while there is one tenant alone, it is that one's. */
static bool
know_local(struct front *f, struct http_exchange *x, const struct route *r)
{
	struct principal *who = NULL;

	if (r == NULL || r->roles != ROUTE_ROLE(PRINCIPAL_USER) ||
	    f->oauth != NULL ||
	    tenants_resident(core_tenants(f->core), &who) != TENANTS_KNOWN)
		return false;
	http_set_principal(x, who);
	return true;
}

static bool
know_user(
    struct front *f, struct http_exchange *x, const struct route *r, uid_t user)
{
	if (user == 0 || user == geteuid()) {
		if (!know_local(f, x, r))
			http_set_principal(x, f->operator);
		return true;
	}
	tell_failure(f, x, "another user at the admin socket");
	http_error(x, 403, "forbidden",
	    "the admin socket is for root and the user the server runs as");
	return false;
}

bool
gate_is_closed(const struct front *f)
{
	return f->oauth != NULL || conf_bool(f->conf, CONF_REQUIRE_TOKEN) ||
	    !tenants_is_open(core_tenants(f->core));
}

/* Whose tokens were wrong too often is told so, and nobody else is told of it.
 * Good ones pass all the same: others may be behind the same address. */
static bool
refuse_often(struct front *f, struct http_exchange *x)
{
	uint32_t wait_s =
	    limiter_login_wait(http_server_limiter(f->http), http_client(x));
	char text[16];

	if (wait_s == 0) {
		limiter_failed_login(
		    http_server_limiter(f->http), http_client(x));
		return false;
	}
	(void)snprintf(text, sizeof(text), "%u", wait_s);
	tell_failure(f, x, "too many failed logins");
	http_add_header(x, "Retry-After", text);
	http_error(x, 429, "too_many_failed_logins",
	    "too many tokens of this address were wrong: try again in %u s",
	    wait_s);
	return true;
}

static void
refuse_disabled(struct http_exchange *x)
{
	http_error(x, 403, "tenant_disabled",
	    "the tenant of this token is disabled: ask an administrator");
}

/* ---- tokens of an authorization server */

struct gate_wait {
	struct oauth_wait wait;
	struct front *f;
	struct http_exchange *x;
	gate_again again;
};

static void
gone_cb(void *arg)
{
	struct gate_wait *g = arg;

	oauth_wait_cancel(g->f->oauth, &g->wait);
	http_drop(g->x);
	free(g);
}

static void
go_on_cb(struct oauth_wait *w)
{
	struct gate_wait *g = CONTAINER_OF(w, struct gate_wait, wait);
	struct gate_wait of = *g;

	http_hold(of.x, NULL, NULL);
	free(g);
	of.again(of.f, of.x);
}

/* Its key may come: the request is looked at once more then. */
static bool
wait_for_keys(struct front *f, struct http_exchange *x, gate_again again)
{
	struct gate_wait *g = xcalloc(1, sizeof(*g));

	g->wait.go_on = go_on_cb;
	g->f = f;
	g->x = x;
	g->again = again;
	if (!oauth_wait(f->oauth, &g->wait)) {
		free(g);
		return false;
	}
	http_hold(x, gone_cb, g);
	return true;
}

static void
refuse_without_keys(struct front *f, struct http_exchange *x)
{
	tell_failure(f, x, "the issuer's keys are not there");
	http_add_header(x, "Retry-After", "5");
	http_error(x, 503, "keys_unavailable",
	    "the authorization server's keys cannot be had, so no token of it "
	    "can be checked: try again later");
}

/* Before a signature is computed, who was wrong too often has to wait, be it
 * with a good token: only those that were verified before pass. */
static const struct claims *
verify(struct front *f, struct http_exchange *x, const struct route *r,
    gate_again again)
{
	const char *token = token_of(x), *why;
	const struct claims *c = oauth_find(f->oauth, token);
	AUTO(auto_free) char *error = NULL;
	bool later;

	if (c != NULL)
		return c;
	if (limiter_login_wait(http_server_limiter(f->http), http_client(x)) !=
	    0) {
		(void)refuse_often(f, x);
		return NULL;
	}
	c = oauth_verify(f->oauth, token, &why, &later);
	if (c != NULL || (later && again != NULL && wait_for_keys(f, x, again)))
		return c;
	if (!oauth_has_keys(f->oauth)) {
		refuse_without_keys(f, x);
		return NULL;
	}
	limiter_failed_login(http_server_limiter(f->http), http_client(x));
	tell_failure(f, x, why);
	error = xasprintf(
	    ", error=\"invalid_token\", error_description=\"%s\"", why);
	add_challenge(f, x, r, error);
	http_error(x, 401, "invalid_token", "the token is refused: %s", why);
	return NULL;
}

static void
refuse_scope(
    const struct front *f, struct http_exchange *x, const struct route *r)
{
	gate_tell(f, x, "auth.forbidden", "lacks the scope");
	add_challenge(f, x, r,
	    ", error=\"insufficient_scope\", "
	    "error_description=\"it lacks the scope for this\"");
	http_error(x, 403, "insufficient_scope",
	    "the token lacks the scope for this: see WWW-Authenticate");
}

static bool
know_jwt(struct front *f, struct http_exchange *x, const struct route *r,
    gate_again again)
{
	char client[NETADDR_TEXT_MAX];
	const struct act origin = scope_act(x, NULL, client);
	const struct claims *c = verify(f, x, r, again);
	struct principal *who = NULL;

	if (c == NULL)
		return false;
	switch (oauth_know(f->oauth, c,
	    r == NULL ? ~0u : r->roles & ~ROUTE_WHILE_OPEN, &origin, &who)) {
	case OAUTH_KNOWN:
		http_set_principal(x, who);
		return true;
	case OAUTH_NO_SCOPE:
		refuse_scope(f, x, r);
		return false;
	case OAUTH_NO_TENANT:
		tell_failure(f, x, "no such tenant");
		http_error(x, 403, "tenant_unknown",
		    "the token names no tenant of this server: its claim "
		    "\"%s\" is to be the name of one",
		    conf_str(f->conf, CONF_OAUTH_TENANT_CLAIM));
		return false;
	case OAUTH_DISABLED:
		tell_failure(f, x, "its tenant is disabled");
		refuse_disabled(x);
		return false;
	}
	return false;
}

/* ---- tokens of this server */

static bool
know_token(struct front *f, struct http_exchange *x, const struct route *r)
{
	struct tenants *t = core_tenants(f->core);
	const char *token = token_of(x);
	struct principal *who = NULL;
	enum tenants_answer answer;

	if (!gate_is_closed(f))
		answer = tenants_local(t, &who);
	else
		answer = tenants_know(
		    t, token == NULL ? "" : token, clock_wall_ms(), &who);
	if (answer == TENANTS_KNOWN) {
		http_set_principal(x, who);
		return true;
	}
	if (token != NULL && answer == TENANTS_UNKNOWN && refuse_often(f, x))
		return false;
	tell_failure(f, x,
	    answer == TENANTS_DISABLED ? "its tenant is disabled" :
		token == NULL          ? "no token" :
					 "no such token");
	if (answer == TENANTS_DISABLED)
		refuse_disabled(x);
	else
		challenge(f, x, r, token);
	return false;
}

static bool
may_use(
    const struct front *f, const struct route *r, const struct principal *who)
{
	if (r == NULL || (r->roles & ROUTE_ROLE(who->role)) != 0)
		return true;
	return (r->roles & ROUTE_WHILE_OPEN) != 0 && !gate_is_closed(f);
}

static bool
know(struct front *f, struct http_exchange *x, const struct route *r,
    gate_again again)
{
	const char *token;
	uid_t user;

	if (http_peer_user(x, &user))
		return know_user(f, x, r, user);
	token = token_of(x);
	if (f->oauth != NULL && token != NULL && jwt_has_form(token))
		return know_jwt(f, x, r, again);
	return know_token(f, x, r);
}

bool
gate_pass(struct front *f, struct http_exchange *x, const struct route *r,
    gate_again again)
{
	const struct principal *who;

	if (r != NULL && r->roles == ROUTE_NOBODY)
		return true;
	/* Clients look for an authorization server there; a 401 would send
	 * them into a login that there is none for. */
	if (r == NULL &&
	    strncmp(http_path(x), WELL_KNOWN, strlen(WELL_KNOWN)) == 0)
		return true;
	if (!know(f, x, r, again))
		return false;
	who = http_principal(x);
	if (may_use(f, r, who))
		return true;
	gate_tell(f, x, "auth.forbidden", "not for its role");
	http_error(x, 403, "forbidden", "this is not for the role %s: %s",
	    principal_role_word(who->role),
	    (r->roles & ROUTE_ROLE(PRINCIPAL_USER)) != 0 ?
		"take a token of role user" :
		"take a token of role admin, or the admin socket");
	return false;
}
