#include "supervisor/front/sandbox_route.h"

#include "common/js.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/core/tenants.h"
#include "supervisor/front/etag.h"
#include "supervisor/tools/view.h"

#define ISOLATION_DEPTH 8
#define ISOLATION_MAX 8192

enum audience {
	FOR_TENANT,
	FOR_ADMIN
};

/* Null until its worker said that it is up. */
static json_t *
view_isolation(const struct sandbox *sb, enum audience whom)
{
	json_t *o = NULL;

	if (sb->isolation == NULL ||
	    js_parse(sb->isolation, strlen(sb->isolation), ISOLATION_MAX,
		ISOLATION_DEPTH, &o, NULL) != 0)
		return json_null();
	if (whom == FOR_TENANT)
		json_object_del(o, "advisories");
	return o;
}

static void
reply_sandbox(const struct front *f, struct http_exchange *x,
    struct tenant_id tenant, enum audience whom)
{
	const struct sandbox *sb = sandbox_find_named(
	    core_sandboxes(f->core), tenant, http_param(x, "identifier"));
	json_t *o;

	if (sb == NULL) {
		http_error(x, 404, "not_found", "no such sandbox");
		return;
	}
	o = view_sandbox(sb);
	json_object_set_new(o, "isolation", view_isolation(sb, whom));
	etag_reply_json(x, o);
}

void
sandbox_on_own(struct front *f, struct http_exchange *x)
{
	reply_sandbox(f, x, http_principal(x)->tenant, FOR_TENANT);
}

void
sandbox_on_tenant(struct front *f, struct http_exchange *x)
{
	const struct tenant *n =
	    tenants_find_name(core_tenants(f->core), http_param(x, "tenant"));

	if (n != NULL)
		reply_sandbox(f, x, tenant_id_of(n), FOR_ADMIN);
	else
		http_error(x, 404, "not_found", "no such tenant");
}
