#include "supervisor/front/scope.h"

#include "common/exit.h"
#include "common/log.h"
#include "supervisor/core/tenants.h"

static const struct tenant *
find_named(const struct tenants *t, const char *name)
{
	const struct tenant *n = tenants_find_name(t, name);

	return n == NULL || n->row.deleted_ms != 0 ? NULL : n;
}

static struct principal *
find_who(const struct front *f, struct http_exchange *x,
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

bool
scope_open(struct request *r, const struct route *route)
{
	const struct query_table *known = route->query;
	struct principal *who = http_principal(r->x);

	if (known != NULL && !query_read(r->x, known, &r->query))
		return false;
	if (known == NULL || known->n == 0 ||
	    known->params[0].kind != QUERY_SCOPE) {
		r->who = who == NULL ? NULL : principal_ref(who);
		return true;
	}
	r->who = find_who(r->front, r->x, &r->query.values[0]);
	if (r->who == NULL)
		query_clear(&r->query);
	return r->who != NULL;
}

void
scope_close(struct request *r)
{
	query_clear(&r->query);
	principal_unref(r->who);
}

struct tenant *
scope_tenant(const struct front *f, struct http_exchange *x)
{
	const char *name = http_param(x, "tenant");
	const struct tenants *all = core_tenants(f->core);
	struct tenant *n = name == NULL ?
	    tenants_find(all, http_principal(x)->tenant) :
	    tenants_find_name(all, name);

	if (n == NULL)
		http_error(x, 404, "not_found", "no such tenant");
	return n;
}

struct tenant *
scope_live_tenant(const struct front *f, struct http_exchange *x)
{
	struct tenant *n = scope_tenant(f, x);

	if (n == NULL || n->row.deleted_ms == 0)
		return n;
	http_error(x, 404, "not_found", "no such tenant");
	return NULL;
}

struct uuid
scope_run(const struct http_exchange *x)
{
	struct uuid run;

	if (uuid_parse(http_param(x, "run"), &run) != 0)
		fatal(EXIT_BUG, "a route without its run");
	return run;
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
    const char *tenant, const char *what, const char *subject)
{
	char client[NETADDR_TEXT_MAX];
	struct act act = scope_act(x, what, client);

	act.tenant = tenant;
	act.subject = subject;
	acts_note(core_acts(f->core), &act);
}
