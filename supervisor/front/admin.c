/*
 * admin.c - tenants and tokens over HTTP, and the note of a backup
 *
 * What is changed is told when it is on disk.  A token's text is in the answer
 * to the request that made it, and nowhere else.
 */
#include "supervisor/front/handlers.h"

#include <stdio.h>

#include "common/ceiling.h"
#include "common/clock.h"
#include "common/js.h"
#include "common/runtimes.h"
#include "common/xmalloc.h"
#include "supervisor/core/tenants.h"
#include "supervisor/front/change.h"
#include "supervisor/front/etag.h"
#include "supervisor/front/scope.h"
#include "supervisor/tools/view.h"

#define BODY_MAX 16384
#define BACKUP_BODY_MAX 8192
#define BACKUP_DEPTH_MAX 4
#define EXPIRY_MAX_S (INT64_C(100) * 366 * 86400)

/* ---- what is told */

static json_t *
view_quotas(const struct tenant *n)
{
	json_t *o = json_object();

	for (size_t i = 0; i < QUOTA_COUNT; i++)
		json_object_set_new(o, quota_rule((enum quota_key)i)->key,
		    json_integer(n->quota[i]));
	return o;
}

static json_t *
view_set(const struct tenant *n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < QUOTA_COUNT; i++)
		if (n->quota_is_set[i])
			json_array_append_new(list,
			    json_string(quota_rule((enum quota_key)i)->key));
	return list;
}

static const char *
state_of(const struct tenant *n)
{
	if (n->row.deleted_ms != 0)
		return "deleting";
	return n->row.disabled_ms != 0 ? "disabled" : "enabled";
}

static json_t *
view_tenant(const struct tenant *n)
{
	return json_pack("{s:s, s:s, s:o, s:i, s:o, s:o, s:{s:s, s:b}}", "name",
	    n->row.name, "state", state_of(n), "created_at",
	    view_time(n->row.created_ms), "tokens", (int)n->ntokens, "quotas",
	    view_quotas(n), "quotas_set", view_set(n), "rules", "runtime",
	    n->row.runtime, "read_only_root", n->row.read_only_root);
}

static const char *
state_of_token(const struct token *k)
{
	if (k->row.revoked_ms != 0)
		return "revoked";
	if (k->row.expires_ms != 0 && k->row.expires_ms <= clock_wall_ms())
		return "expired";
	return k->tenant != NULL && !tenant_is_usable(k->tenant) ? "disabled" :
								   "good";
}

static json_t *
view_token(const struct token *k)
{
	return json_pack("{s:s, s:s?, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "id",
	    k->row.id, "tenant", k->tenant == NULL ? NULL : k->tenant->row.name,
	    "role", principal_role_word(k->row.role), "name", k->row.name,
	    "state", state_of_token(k), "created_at",
	    view_time(k->row.created_ms), "expires_at",
	    view_time(k->row.expires_ms), "last_used_at",
	    view_time(k->row.used_ms), "revoked_at",
	    view_time(k->row.revoked_ms));
}

/* ---- what is asked for */

/* Only these members, each of its type. */
struct admin_member {
	const char *name;
	json_type type; /* JSON_TRUE: either of the two */
};

static int
check_members(
    const json_t *o, const struct admin_member *known, size_t n, struct err *e)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)o, key, value) {
		const struct admin_member *m = NULL;

		for (size_t i = 0; i < n; i++)
			if (strcmp(known[i].name, key) == 0)
				m = &known[i];
		if (m == NULL)
			return err_set(
			    e, ERR_INVAL, "there is no member %.60s", key);
		if (json_typeof(value) != m->type &&
		    !(m->type == JSON_TRUE && json_is_false(value)))
			return err_set(
			    e, ERR_INVAL, "%s: this is not its type", m->name);
	}
	return 0;
}

static int
check_quotas(const json_t *quotas, struct err *e)
{
	enum quota_key key;
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)quotas, name, value) {
		if (quota_find(name, &key, e) != 0)
			return e->code;
		if (!json_is_null(value) && !json_is_integer(value))
			return quota_check(key, -1, e);
		if (json_is_integer(value) &&
		    quota_check(key, json_integer_value(value), e) != 0)
			return e->code;
	}
	return 0;
}

static const char *
rule_text(const json_t *value)
{
	if (json_is_string(value))
		return json_string_value(value);
	return json_is_true(value) ? "true" : "false";
}

/* null: as it is for all others.  A runtime that the engine has not would be
 * said here and refused at each sandbox. */
static int
check_rules(const struct front *f, const json_t *rules, struct ceiling *out,
    struct err *e)
{
	const struct fleet_engine *en = fleet_engine(core_fleet(f->core));
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)rules, name, value) {
		if (json_is_null(value) && strcmp(name, "runtime") == 0)
			continue;
		if (!json_is_string(value) && !json_is_null(value) &&
		    (!json_is_boolean(value) || strcmp(name, "runtime") == 0))
			return err_set(e, ERR_INVAL,
			    "rule %.40s: this is not its type", name);
		if (ceiling_rule(out, name, rule_text(value), e) != 0)
			return e->code;
	}
	return en == NULL ? 0 : runtimes_check(en->runtimes, out->runtime, e);
}

/* They were checked; what is not named stays as it is. */
static void
set_rules(struct change *c, struct tenant *n, const json_t *rules,
    const struct ceiling *said)
{
	bool has_runtime = json_object_get(rules, "runtime") != NULL;
	bool read_only = said->root == CEILING_ROOT_UNSET ?
	    n->row.read_only_root :
	    said->root == CEILING_ROOT_READ_ONLY;
	const char *name;
	json_t *value;

	if (json_object_size(rules) == 0)
		return;
	json_object_foreach ((json_t *)(uintptr_t)rules, name, value)
		change_tell(c, "tenant.rule", n->row.name, name,
		    json_is_null(value) ? "default" : rule_text(value));
	tenant_rule(n, has_runtime ? said->runtime : n->row.runtime, read_only,
	    change_on_disk, change_part(c));
}

static void
tell_quota(struct change *c, const struct tenant *n, const char *name,
    const json_t *value)
{
	char text[24] = "default";

	if (!json_is_null(value))
		(void)snprintf(text, sizeof(text), "%lld",
		    (long long)json_integer_value(value));
	change_tell(c, "tenant.quota", n->row.name, name, text);
}

/* They were checked.  null: the default again. */
static void
set_quotas(struct change *c, struct tenant *n, const json_t *quotas)
{
	enum quota_key key;
	const char *name;
	json_t *value;
	struct err e;

	json_object_foreach ((json_t *)(uintptr_t)quotas, name, value) {
		if (quota_find(name, &key, &e) != 0)
			continue;
		if (json_is_null(value))
			tenant_ungrant(n, key, change_on_disk, change_part(c));
		else
			tenant_grant(n, key, json_integer_value(value),
			    change_on_disk, change_part(c));
		tell_quota(c, n, name, value);
	}
}

/* ---- tenants */

static void
list_tenants(const struct front *f, struct http_exchange *x)
{
	const struct tenants *t = core_tenants(f->core);
	const struct tenant *n = NULL;
	json_t *list = json_array();

	while ((n = tenants_next(t, n)) != NULL)
		json_array_append_new(list, view_tenant(n));
	etag_reply_json(x, json_pack("{s:o}", "tenants", list));
}

static void
add_tenant(const struct front *f, struct http_exchange *x, const json_t *body)
{
	static const struct admin_member known[] = {{"name", JSON_STRING},
	    {"quotas", JSON_OBJECT}, {"rules", JSON_OBJECT}};
	const json_t *rules = json_object_get(body, "rules");
	struct ceiling said = {.runtime = ""};
	const json_t *quotas = json_object_get(body, "quotas");
	struct change *c = change_new(f, x);
	struct tenant *n;
	struct err e;

	if (check_members(body, known, ARRAY_LEN(known), &e) != 0 ||
	    check_quotas(quotas, &e) != 0 ||
	    check_rules(f, rules, &said, &e) != 0 ||
	    tenant_add(core_tenants(f->core), js_text(body, "name"),
		change_on_disk, c, &n, &e) != 0) {
		change_refuse(c, &e);
		return;
	}
	(void)change_part(c); /* tenant_add's */
	change_tell(c, "tenant.add", n->row.name, NULL, NULL);
	set_quotas(c, n, quotas);
	set_rules(c, n, rules, &said);
	(void)snprintf(c->location, sizeof(c->location), "/api/v1/tenants/%s",
	    n->row.name);
	change_answer(c, 201, view_tenant(n), CHANGE_SHOWS_IT);
}

void
admin_on_tenants(struct request *r)
{
	AUTO(auto_json) json_t *body = NULL;

	if (request_reads(r->x)) {
		list_tenants(r->front, r->x);
		return;
	}
	body = http_body_object(r->x, BODY_MAX);
	if (body != NULL)
		add_tenant(r->front, r->x, body);
}

static void
change_tenant(const struct front *f, struct http_exchange *x, struct tenant *n,
    const json_t *body)
{
	static const struct admin_member known[] = {{"disabled", JSON_TRUE},
	    {"quotas", JSON_OBJECT}, {"rules", JSON_OBJECT}};
	const json_t *rules = json_object_get(body, "rules");
	struct ceiling said = {.runtime = ""};
	const json_t *quotas = json_object_get(body, "quotas");
	const json_t *disabled = json_object_get(body, "disabled");
	struct change *c = change_new(f, x);
	struct err e;

	if (check_members(body, known, ARRAY_LEN(known), &e) != 0 ||
	    check_quotas(quotas, &e) != 0 ||
	    check_rules(f, rules, &said, &e) != 0) {
		change_refuse(c, &e);
		return;
	}
	if (disabled != NULL) {
		bool off = json_is_true(disabled);

		change_tell(c, off ? "tenant.disable" : "tenant.enable",
		    n->row.name, NULL, NULL);
		tenant_use(n, off ? TENANT_DISABLED : TENANT_ENABLED,
		    change_on_disk, change_part(c));
	}
	set_quotas(c, n, quotas);
	set_rules(c, n, rules, &said);
	change_answer(c, 200, view_tenant(n), CHANGE_SHOWS_IT);
}

static void
delete_tenant(const struct front *f, struct http_exchange *x, struct tenant *n)
{
	struct change *c = change_new(f, x);
	struct err e;

	if (tenant_delete(n, change_on_disk, c, &e) != 0) {
		change_refuse(c, &e);
		return;
	}
	(void)change_part(c);
	change_tell(c, "tenant.delete", n->row.name, NULL, NULL);
	change_answer(c, 202, view_tenant(n), CHANGE_SHOWS_IT);
}

void
admin_on_tenant(struct request *r)
{
	const struct front *f = r->front;
	struct http_exchange *x = r->x;
	struct tenant *n = scope_tenant(f, x);
	AUTO(auto_json) json_t *body = NULL;

	if (n == NULL)
		return;
	if (request_reads(x)) {
		etag_reply_json(x, view_tenant(n));
		return;
	}
	if (!etag_may_change(x, view_tenant(n)))
		return;
	if (http_method(x) == HTTP_METHOD_DELETE) {
		delete_tenant(f, x, n);
	} else {
		body = http_body_object(x, BODY_MAX);
		if (body != NULL)
			change_tenant(f, x, n, body);
	}
}

/* ---- tokens */

static void
list_tokens(const struct front *f, struct http_exchange *x, bool all,
    const struct tenant *of)
{
	const struct tenants *t = core_tenants(f->core);
	const struct token *k = NULL;
	json_t *list = json_array();

	while ((k = tenants_next_token(t, k)) != NULL)
		if (all || k->tenant == of)
			json_array_append_new(list, view_token(k));
	etag_reply_json(x, json_pack("{s:o}", "tokens", list));
}

static int
parse_wish(const json_t *body, struct token_wish *w, struct err *e)
{
	static const struct admin_member known[] = {{"role", JSON_STRING},
	    {"name", JSON_STRING}, {"expires_in_s", JSON_INTEGER}};
	const json_t *expires = json_object_get(body, "expires_in_s");
	const char *role = js_text(body, "role");

	*w = (struct token_wish){PRINCIPAL_USER, js_text(body, "name"), 0};
	if (check_members(body, known, ARRAY_LEN(known), e) != 0)
		return e->code;
	if (role[0] != '\0' && principal_role_parse(role, &w->role) != 0)
		return err_set(
		    e, ERR_INVAL, "role: want user, admin or metrics");
	if (expires == NULL)
		return 0;
	if (json_integer_value(expires) < 1 ||
	    json_integer_value(expires) > EXPIRY_MAX_S)
		return err_set(e, ERR_INVAL,
		    "expires_in_s: want a number from 1 to %lld",
		    (long long)EXPIRY_MAX_S);
	w->expires_ms = clock_wall_ms() + json_integer_value(expires) * 1000;
	return 0;
}

static void
add_token(const struct front *f, struct http_exchange *x, struct tenant *n,
    const json_t *body)
{
	struct change *c = change_new(f, x);
	struct token_made made;
	struct token_wish w;
	struct err e;
	json_t *o;

	if (parse_wish(body, &w, &e) != 0 ||
	    tenants_add_token(core_tenants(f->core), n, &w, change_on_disk, c,
		&made, &e) != 0) {
		change_refuse(c, &e);
		return;
	}
	(void)change_part(c);
	change_tell(c, "token.add", n == NULL ? NULL : n->row.name,
	    made.token->row.id, principal_role_word(w.role));
	o = view_token(made.token);
	json_object_set_new(o, "token", json_string(made.text));
	explicit_bzero(made.text, sizeof(made.text));
	(void)snprintf(c->location, sizeof(c->location), "/api/v1/tokens/%s",
	    made.token->row.id);
	change_answer(c, 201, o, CHANGE_SHOWS_ELSE);
}

void
admin_on_tenant_tokens(struct request *r)
{
	const struct front *f = r->front;
	struct http_exchange *x = r->x;
	bool of_none = strcmp(http_param(x, "tenant"), "-") == 0;
	struct tenant *n = of_none ? NULL : scope_tenant(f, x);
	AUTO(auto_json) json_t *body = NULL;

	if (n == NULL && !of_none)
		return;
	if (request_reads(x)) {
		list_tokens(f, x, false, n);
		return;
	}
	body = http_body_object(x, BODY_MAX);
	if (body != NULL)
		add_token(f, x, n, body);
}

void
admin_on_tokens(struct request *r)
{
	list_tokens(r->front, r->x, true, NULL);
}

void
admin_on_token(struct request *r)
{
	const struct front *f = r->front;
	struct http_exchange *x = r->x;
	struct tenants *t = core_tenants(f->core);
	struct token *k = tenants_find_token(t, http_param(x, "token"));
	struct change *c;

	if (k == NULL) {
		http_error(x, 404, "not_found", "no such token");
		return;
	}
	if (request_reads(x)) {
		etag_reply_json(x, view_token(k));
		return;
	}
	if (!etag_may_change(x, view_token(k)))
		return;
	c = change_new(f, x);
	change_tell(c, "token.revoke",
	    k->tenant == NULL ? NULL : k->tenant->row.name, k->row.id, NULL);
	token_revoke(t, k, change_on_disk, change_part(c));
	change_answer(c, 200, view_token(k), CHANGE_SHOWS_IT);
}

/* ---- a backup that somebody makes */

struct backup_note {
	struct http_exchange *x; /* outlives its client */
	const char *artifacts;   /* of the configuration */
	json_int_t reserve;      /* likewise, in bytes */
};

static void
noted_cb(int rc, const struct err *why, void *arg)
{
	struct backup_note *n = arg;
	json_t *o;

	if (rc != 0) {
		http_error_from(n->x, rc, why);
		free(n);
		return;
	}
	o = json_pack("{s:o, s:I}", "artifacts_dir",
	    js_string_bytes(n->artifacts, strlen(n->artifacts), NULL),
	    "reserve_bytes", n->reserve);
	http_reply_json(n->x, 200, o);
	free(n);
}

void
admin_on_backup(struct request *r)
{
	const struct front *f = r->front;
	struct http_exchange *x = r->x;
	char client[NETADDR_TEXT_MAX];
	struct backup_note *note;
	struct act act;
	json_t *o = NULL;
	struct err e;
	size_t n;
	const void *body = http_body(x, &n);

	if (js_parse(body, n, BACKUP_BODY_MAX, BACKUP_DEPTH_MAX, &o, &e) != 0 ||
	    json_object_size(o) != 1 ||
	    !json_is_string(json_object_get(o, "file"))) {
		json_decref(o);
		http_error(x, 400, "bad_request",
		    "the body: want {\"file\": NAME}, where the backup goes");
		return;
	}
	note = xcalloc(1, sizeof(*note));
	note->x = x;
	note->artifacts = conf_str(f->conf, CONF_ARTIFACTS_DIR);
	note->reserve = (json_int_t)conf_int(f->conf, CONF_DISK_RESERVE_MB)
	    << 20;
	http_hold(x, NULL, NULL);
	act = scope_act(x, "backup", client);
	act.detail = js_text(o, "file");
	acts_tell(core_acts(f->core), &act, noted_cb, note);
	json_decref(o);
}
