#include "supervisor/front/sandbox_route.h"

#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/core/tenants.h"
#include "supervisor/front/etag.h"
#include "supervisor/front/scope.h"
#include "supervisor/tools/gone.h"
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

/* ---- it is deleted */

struct sandbox_delete {
	struct http_exchange *x;
	struct gone gone;
	char identifier[SANDBOX_IDENTIFIER_MAX + 1];
};

/* The client is: the sandbox goes on to go. */
static void
client_gone_cb(void *arg)
{
	struct sandbox_delete *d = arg;

	gone_clear(&d->gone);
	http_drop(d->x);
	free(d);
}

static void
deleted_cb(struct gone *g, const struct err *why)
{
	struct sandbox_delete *d = g->arg;
	struct err e;

	if (why == NULL) {
		http_reply_json(d->x, 200,
		    json_pack("{s:s, s:b}", "identifier", d->identifier,
			"deleted", 1));
	} else {
		gone_explain(why, &e);
		http_error_from(d->x, e.code, &e);
	}
	free(d);
}

static void
delete_sandbox(
    struct front *f, struct http_exchange *x, const struct principal *who)
{
	struct sandbox *sb = sandbox_find_named(
	    core_sandboxes(f->core), who->tenant, http_param(x, "identifier"));
	struct sandbox_delete *d;

	if (sb == NULL) {
		http_error(x, 404, "not_found", "no such sandbox");
		return;
	}
	scope_tell(f, x, who, "sandbox.delete", sb->row.name);
	d = xcalloc(1, sizeof(*d));
	d->x = x;
	utf8_copy(d->identifier, sizeof(d->identifier), sb->row.identifier);
	http_hold(x, client_gone_cb, d);
	gone_start(&d->gone, sb, deleted_cb, d);
}

void
sandbox_on_own(struct front *f, struct http_exchange *x)
{
	struct principal *who = http_principal(x);

	if (http_method(x) == HTTP_METHOD_DELETE)
		delete_sandbox(f, x, who);
	else
		reply_sandbox(f, x, who->tenant, FOR_TENANT);
}

static void
delete_of_tenant(
    struct front *f, struct http_exchange *x, const struct tenant *n)
{
	const struct principal *by = http_principal(x);
	struct principal *who =
	    principal_new(tenant_id_of(n), n->row.name, by->subject, by->role);

	delete_sandbox(f, x, who);
	principal_unref(who);
}

void
sandbox_on_tenant(struct front *f, struct http_exchange *x)
{
	const struct tenant *n =
	    tenants_find_name(core_tenants(f->core), http_param(x, "tenant"));

	if (n == NULL)
		http_error(x, 404, "not_found", "no such tenant");
	else if (http_method(x) == HTTP_METHOD_DELETE)
		delete_of_tenant(f, x, n);
	else
		reply_sandbox(f, x, tenant_id_of(n), FOR_ADMIN);
}
