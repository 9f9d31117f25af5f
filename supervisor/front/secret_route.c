/*
 * secret_route.c - GET, PUT, DELETE and lists of secrets
 *
 * A value comes as the body, as it is: JSON could not say all bytes, and would
 * leave copies.  The answer waits for the change and for the audit's row of it
 * to be on disk.
 */
#include "supervisor/front/handlers.h"

#include "common/js.h"
#include "supervisor/core/secrets.h"
#include "supervisor/core/tenants.h"
#include "supervisor/front/change.h"
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

void
secret_on_list(struct request *r)
{
	const struct tenant *n = scope_live_tenant(r->front, r->x);
	const struct secrets *ss = core_secrets(r->front->core);
	const struct secret *s = NULL;
	json_t *list;

	if (n == NULL)
		return;
	list = json_array();
	while ((s = secrets_next(ss, tenant_id_of(n), s)) != NULL)
		json_array_append_new(list, view_secret_of_list(ss, s));
	etag_reply_json(r->x, json_pack("{s:o}", "secrets", list));
}

/* ---- a change */

/* The audit has its name alone: nothing that is made of the value. */
static void
put_secret(
    const struct front *f, struct http_exchange *x, const struct tenant *n)
{
	struct secrets *ss = core_secrets(f->core);
	const char *name = http_param(x, "secret");
	bool is_new = secrets_find(ss, tenant_id_of(n), name) == NULL;
	struct change *c = change_new(f, x);
	struct span value;
	struct err e;

	c->is_repeatable = true;
	value.p = http_body(x, &value.n);
	if (secrets_put(ss, tenant_id_of(n), name, &value, change_on_disk, c,
		&e) != 0) {
		change_refuse(c, &e);
		return;
	}
	(void)change_part(c); /* secrets_put's */
	change_tell(c, "secret.set", n->row.name, name, NULL);
	change_answer(c, is_new ? 201 : 200,
	    view_secret(ss, secrets_find(ss, tenant_id_of(n), name)),
	    CHANGE_SHOWS_IT);
}

static void
delete_secret(const struct front *f, struct http_exchange *x,
    const struct tenant *n, struct secret *s)
{
	struct change *c = change_new(f, x);
	json_t *answer =
	    json_pack("{s:s, s:b}", "name", s->row.name, "deleted", 1);

	c->is_repeatable = true;
	change_tell(
	    c, "secret.delete", n->row.name, http_param(x, "secret"), NULL);
	secrets_drop(core_secrets(f->core), s, change_on_disk, change_part(c));
	change_answer(c, 200, answer, CHANGE_SHOWS_ELSE);
}

void
secret_on_one(struct request *r)
{
	struct http_exchange *x = r->x;
	const struct tenant *n = scope_live_tenant(r->front, x);
	struct secrets *ss = core_secrets(r->front->core);
	struct secret *s;
	json_t *now;

	if (n == NULL)
		return;
	s = secrets_find(ss, tenant_id_of(n), http_param(x, "secret"));
	now = s == NULL ? NULL : view_secret(ss, s);
	if (http_method(x) == HTTP_METHOD_PUT) {
		if (etag_may_change(x, now))
			put_secret(r->front, x, n);
	} else if (now == NULL) {
		http_error(x, 404, "not_found", "no such secret");
	} else if (request_reads(x)) {
		etag_reply_json(x, now);
	} else if (etag_may_change(x, now)) {
		delete_secret(r->front, x, n, s);
	}
}
