#include "supervisor/front/scope.h"

#include "supervisor/core/tenants.h"

static const struct tenant *
find_named(const struct tenants *t, const char *name)
{
	const struct tenant *n = tenants_find_name(t, name);

	return n == NULL || n->row.deleted_ms != 0 ? NULL : n;
}

struct principal *
scope_find(const struct front *f, struct http_exchange *x,
    const struct query_value *named)
{
	struct principal *who = http_principal(x);
	const struct tenant *n;

	if (!named->is_given && who->tenant.n != 0)
		return principal_ref(who);
	if (!named->is_given) {
		http_error(x, 400, "bad_request",
		    "tenant: this token is of no tenant, so say whose "
		    "(tenant=NAME)");
		return NULL;
	}
	n = find_named(core_tenants(f->core), named->text);
	if (n == NULL ||
	    (who->role != PRINCIPAL_ADMIN &&
		!tenant_id_is_equal(tenant_id_of(n), who->tenant))) {
		http_error(x, 404, "not_found", "no such tenant");
		return NULL;
	}
	if (tenant_id_is_equal(tenant_id_of(n), who->tenant))
		return principal_ref(who);
	return principal_new(
	    tenant_id_of(n), n->row.name, who->subject, who->role);
}

struct act
scope_act(const struct http_exchange *x, const char *what,
    char client[NETADDR_TEXT_MAX])
{
	return (struct act){.what = what,
	    .who = http_principal(x),
	    .origin = netaddr_format(http_client(x), client),
	    .request_id = http_id(x)};
}

void
scope_tell(const struct front *f, const struct http_exchange *x,
    const struct principal *who, const char *what, const char *run)
{
	char client[NETADDR_TEXT_MAX];
	struct act act = scope_act(x, what, client);

	act.tenant = who->tenant_name;
	act.subject = run;
	acts_note(core_acts(f->core), &act);
}
