#include "supervisor/front/gate.h"

#include <stdio.h>
#include <strings.h>

#include "common/clock.h"
#include "supervisor/core/acts.h"
#include "supervisor/core/tenants.h"

#define SCHEME "Bearer"
#define WELL_KNOWN "/.well-known/"

static void
tell_failure(
    const struct front *f, const struct http_exchange *x, const char *why)
{
	char client[NETADDR_TEXT_MAX];

	acts_refused(core_acts(f->core),
	    &(struct act){.what = "auth.failure",
		.origin = netaddr_format(http_client(x), client),
		.request_id = http_id(x),
		.detail = why});
}

/* RFC 6750, section 3: no error is named when nothing was sent. */
static void
challenge(struct http_exchange *x, const char *token)
{
	http_add_header(x, "WWW-Authenticate",
	    token == NULL ? SCHEME " realm=\"mcp\"" :
			    SCHEME " realm=\"mcp\", error=\"invalid_token\"");
	http_add_header(x, "Cache-Control", "no-store");
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

static bool
know_user(struct front *f, struct http_exchange *x, uid_t user)
{
	if (user == 0 || user == geteuid()) {
		http_set_principal(x, f->operator);
		return true;
	}
	tell_failure(f, x, "another user at the admin socket");
	http_error(x, 403, "forbidden",
	    "the admin socket is for root and the user the server runs as");
	return false;
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

static bool
know_token(struct front *f, struct http_exchange *x)
{
	struct tenants *t = core_tenants(f->core);
	const char *token = token_of(x);
	struct principal *who = NULL;
	enum tenants_answer answer;

	if (tenants_is_open(t))
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
		http_error(x, 403, "tenant_disabled",
		    "the tenant of this token is disabled: ask an "
		    "administrator");
	else
		challenge(x, token);
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

bool
gate_pass(struct front *f, struct http_exchange *x, const struct route *r)
{
	const struct principal *who;
	uid_t user;

	if (r != NULL && r->roles == ROUTE_NOBODY)
		return true;
	/* Clients look for an authorization server there; a 401 would send
	 * them into a login that there is none for. */
	if (r == NULL &&
	    strncmp(http_path(x), WELL_KNOWN, strlen(WELL_KNOWN)) == 0)
		return true;
	if (http_peer_user(x, &user) ? !know_user(f, x, user) :
				       !know_token(f, x))
		return false;
	who = http_principal(x);
	if (may_use(f, r, who))
		return true;
	http_error(x, 403, "forbidden", "this is not for the role %s: %s",
	    principal_role_word(who->role),
	    (r->roles & ROUTE_ROLE(PRINCIPAL_USER)) != 0 ?
		"take a token of role user" :
		"take a token of role admin, or the admin socket");
	return false;
}

bool
gate_is_closed(const struct front *f)
{
	return !tenants_is_open(core_tenants(f->core));
}
