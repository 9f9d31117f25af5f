/*
 * secret_route.c - GET, PUT, DELETE and lists of secrets
 *
 * A value comes as the body, as it is: JSON could not say all bytes, and would
 * leave copies.  The answer waits for the change and for the audit's row of it
 * to be on disk.
 */
#include "supervisor/front/secret_route.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/core/acts.h"
#include "supervisor/core/secrets.h"
#include "supervisor/core/tenants.h"
#include "supervisor/front/etag.h"
#include "supervisor/front/scope.h"
#include "supervisor/tools/view.h"

/* Without when it was used: a run that uses it does not change it, and who
 * changes it by If-Match is not to lose against runs. */
static json_t *
view_secret(const struct secrets *ss, const struct secret *s)
{
	return json_pack("{s:s, s:I, s:s, s:o, s:o}", "name", s->row.name,
	    "bytes", (json_int_t)secret_bytes(s), "state",
	    secret_is_usable(ss, s) ? "good" : "unavailable", "created_at",
	    view_time(s->row.created_ms), "changed_at",
	    view_time(s->row.changed_ms));
}

static json_t *
view_secret_of_list(const struct secrets *ss, const struct secret *s)
{
	json_t *o = view_secret(ss, s);

	json_object_set_new(o, "last_used_at", view_time(s->row.used_ms));
	return o;
}

static void
list_secrets(
    const struct front *f, struct http_exchange *x, struct tenant_id tenant)
{
	const struct secrets *ss = core_secrets(f->core);
	const struct secret *s = NULL;
	json_t *list = json_array();

	while ((s = secrets_next(ss, tenant, s)) != NULL)
		json_array_append_new(list, view_secret_of_list(ss, s));
	etag_reply_json(x, json_pack("{s:o}", "secrets", list));
}

/* ---- a change */

struct secret_change {
	struct http_exchange *x; /* outlives its client */
	json_t *answer;
	int status;
	bool is_put; /* the answer is what a GET gives now */
	unsigned int pending;
	int rc; /* of the first that failed */
	struct err why;
};

static void
on_disk_cb(int rc, const struct err *why, void *arg)
{
	struct secret_change *c = arg;

	if (rc != 0 && c->rc == 0) {
		c->rc = rc;
		c->why = *why;
	}
	if (--c->pending > 0)
		return;
	if (c->rc == 0) {
		if (c->is_put)
			etag_add(c->x, c->answer);
		http_reply_json(c->x, c->status, c->answer);
	} else {
		json_decref(c->answer);
		http_error(c->x, 500, "not_on_disk",
		    "it holds, but not beyond a restart: set it again: %s",
		    c->why.msg);
	}
	free(c);
}

/* Its name alone: nothing that is made of the value. */
static void
tell_act(const struct front *f, struct secret_change *c, const char *what,
    const struct tenant *n)
{
	char client[NETADDR_TEXT_MAX];
	struct act act = scope_act(c->x, what, client);

	act.tenant = n->row.name;
	act.subject = http_param(c->x, "secret");
	acts_tell(core_acts(f->core), &act, on_disk_cb, c);
}

/* Of two parts: the change itself, and what is told of it. */
static struct secret_change *
change_begin(struct http_exchange *x, int status)
{
	struct secret_change *c = xcalloc(1, sizeof(*c));

	c->x = x;
	c->status = status;
	c->pending = 2;
	http_hold(x, NULL, NULL);
	return c;
}

static void
put_secret(
    const struct front *f, struct http_exchange *x, const struct tenant *n)
{
	struct secrets *ss = core_secrets(f->core);
	const char *name = http_param(x, "secret");
	bool is_new = secrets_find(ss, tenant_id_of(n), name) == NULL;
	struct secret_change *c = change_begin(x, is_new ? 201 : 200);
	struct span value;
	struct err e;

	value.p = http_body(x, &value.n);
	if (secrets_put(ss, tenant_id_of(n), name, &value, on_disk_cb, c, &e) !=
	    0) {
		free(c);
		http_error_from(x, e.code, &e);
		return;
	}
	c->is_put = true;
	c->answer = view_secret(ss, secrets_find(ss, tenant_id_of(n), name));
	tell_act(f, c, "secret.set", n);
}

static void
delete_secret(
    const struct front *f, struct http_exchange *x, const struct tenant *n)
{
	struct secrets *ss = core_secrets(f->core);
	struct secret *s =
	    secrets_find(ss, tenant_id_of(n), http_param(x, "secret"));
	struct secret_change *c;

	c = change_begin(x, 200);
	c->answer = json_pack("{s:s, s:b}", "name", s->row.name, "deleted", 1);
	tell_act(f, c, "secret.delete", n);
	secrets_drop(ss, s, on_disk_cb, c);
}

static void
answer_secret(
    const struct front *f, struct http_exchange *x, const struct tenant *n)
{
	const struct secrets *ss = core_secrets(f->core);
	const struct secret *s =
	    secrets_find(ss, tenant_id_of(n), http_param(x, "secret"));
	json_t *now = s == NULL ? NULL : view_secret(ss, s);

	if (http_method(x) == HTTP_METHOD_PUT) {
		if (etag_may_change(x, now))
			put_secret(f, x, n);
	} else if (now == NULL) {
		http_error(x, 404, "not_found", "no such secret");
	} else if (http_method(x) != HTTP_METHOD_DELETE) {
		etag_reply_json(x, now);
	} else if (etag_may_change(x, now)) {
		delete_secret(f, x, n);
	}
}

/* ---- whose */

static const struct tenant *
own_tenant(const struct front *f, struct http_exchange *x)
{
	const struct tenant *n =
	    tenants_find(core_tenants(f->core), http_principal(x)->tenant);

	if (n == NULL)
		http_error(x, 404, "not_found", "no such tenant");
	return n;
}

static const struct tenant *
named_tenant(const struct front *f, struct http_exchange *x)
{
	const struct tenant *n =
	    tenants_find_name(core_tenants(f->core), http_param(x, "tenant"));

	if (n != NULL && n->row.deleted_ms == 0)
		return n;
	http_error(x, 404, "not_found", "no such tenant");
	return NULL;
}

void
secret_on_own_list(struct front *f, struct http_exchange *x)
{
	list_secrets(f, x, http_principal(x)->tenant);
}

void
secret_on_own(struct front *f, struct http_exchange *x)
{
	const struct tenant *n = own_tenant(f, x);

	if (n != NULL)
		answer_secret(f, x, n);
}

void
secret_on_tenant_list(struct front *f, struct http_exchange *x)
{
	const struct tenant *n = named_tenant(f, x);

	if (n != NULL)
		list_secrets(f, x, tenant_id_of(n));
}

void
secret_on_tenant(struct front *f, struct http_exchange *x)
{
	const struct tenant *n = named_tenant(f, x);

	if (n != NULL)
		answer_secret(f, x, n);
}
