#include "supervisor/front/handlers.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/core/tenants.h"
#include "supervisor/front/etag.h"
#include "supervisor/front/scope.h"
#include "supervisor/tools/home.h"
#include "supervisor/tools/view.h"

#define ISOLATION_DEPTH 8
#define ISOLATION_MAX 8192
#define LIMIT_DEFAULT 50
#define LIMIT_MAX 500

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
reply_sandbox(
    struct http_exchange *x, const struct sandbox *sb, enum audience whom)
{
	json_t *o = view_sandbox(sb);

	json_object_set_new(o, "isolation", view_isolation(sb, whom));
	etag_reply_json(x, o);
}

/* ---- it is deleted */

struct sandbox_delete {
	struct http_exchange *x;
	struct gone gone;
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
		    json_pack("{s:s, s:b}", "identifier",
			http_param(d->x, "identifier"), "deleted", 1));
	} else {
		home_explain_gone(why, &e);
		http_error_from(d->x, e.code, &e);
	}
	free(d);
}

static void
delete_sandbox(const struct front *f, struct http_exchange *x,
    const struct tenant *n, struct sandbox *sb)
{
	struct sandbox_delete *d = xcalloc(1, sizeof(*d));

	scope_tell(f, x, n->row.name, "sandbox.delete", sb->row.name);
	d->x = x;
	http_hold(x, client_gone_cb, d);
	gone_start(&d->gone, sb, deleted_cb, d);
}

void
sandbox_on_one(struct request *r)
{
	const struct tenant *n = scope_tenant(r->front, r->x);
	struct sandbox *sb = n == NULL ?
	    NULL :
	    sandbox_find_named(core_sandboxes(r->front->core), tenant_id_of(n),
		http_param(r->x, "identifier"));

	if (n == NULL)
		return;
	if (sb == NULL)
		http_error(r->x, 404, "not_found", "no such sandbox");
	else if (http_method(r->x) == HTTP_METHOD_DELETE)
		delete_sandbox(r->front, r->x, n, sb);
	else
		reply_sandbox(r->x, sb,
		    http_param(r->x, "tenant") == NULL ? FOR_TENANT :
							 FOR_ADMIN);
}

/* ---- a list */

struct sandbox_list_call {
	struct http_exchange *x; /* outlives its client */
	struct front *front;
	struct tenant_id tenant;
};

/* In memory, if it is there and this one. */
static const struct sandbox *
find_live(const struct sandbox_list_call *c, const struct store_sandbox *row)
{
	const struct sandbox *sb = sandbox_find_named(
	    core_sandboxes(c->front->core), c->tenant, row->identifier);

	return sb != NULL && uuid_is_equal(&sb->row.uuid, &row->uuid) ? sb :
									NULL;
}

static json_t *
view_row(const struct sandbox_list_call *c, const struct store_sandbox *row)
{
	const struct sandbox *sb = find_live(c, row);
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&row->uuid, id);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:s, s:I, s:i, s:I, "
			 "s:f, s:I, s:o, s:o, s:o}",
	    "sandbox_id", id, "identifier", row->identifier, "name", row->name,
	    "state",
	    sb != NULL ? view_sandbox_state(sb) : sandbox_word(row->state),
	    "image", row->image, "generation", (json_int_t)row->generation,
	    "origin", row->origin, "active_runs",
	    sb == NULL ? 0 : (json_int_t)sched_queue_count(&sb->queue),
	    "left_running", sb == NULL ? 0 : (int)sb->left, "memory_bytes",
	    (json_int_t)row->memory_bytes, "cpu_cores",
	    (double)row->nano_cpus / 1e9, "pids", (json_int_t)row->pids,
	    "created_at", view_time(row->created_ms), "expires_at",
	    view_time(sb != NULL ? sb->row.expires_ms : row->expires_ms),
	    "ended_at", view_time(row->ended_ms));
}

static void
listed_cb(int rc, const struct store_sandbox_list *list, const struct err *why,
    void *arg)
{
	struct sandbox_list_call *c = arg;
	char next[UUID_TEXT_LEN + 1] = "";
	json_t *rows;

	if (rc != 0) {
		http_error_from(c->x, rc, why);
	} else {
		rows = json_array();
		for (size_t i = 0; i < list->n; i++)
			json_array_append_new(
			    rows, view_row(c, &list->rows[i]));
		if (list->has_more)
			uuid_format(&list->next, next);
		http_reply_json(c->x, 200,
		    json_pack("{s:o, s:s?}", "sandboxes", rows, "next_cursor",
			next[0] == '\0' ? NULL : next));
	}
	free(c);
}

enum {
	LIST_TENANT,
	LIST_IDENTIFIER,
	LIST_STATE,
	LIST_SINCE,
	LIST_UNTIL,
	LIST_LIMIT,
	LIST_CURSOR
};
static const char *const states[] = {SANDBOX_IS_CREATING_WORD,
    SANDBOX_IS_READY_WORD, SANDBOX_IS_REMOVING_WORD, SANDBOX_IS_REMOVED_WORD,
    SANDBOX_IS_LOST_WORD, "live", "ended", NULL};
static const struct query_param params[] = {
    [LIST_TENANT] = SCOPE_PARAM,
    [LIST_IDENTIFIER] = {"identifier", QUERY_TEXT,
	.max = SANDBOX_IDENTIFIER_MAX},
    [LIST_STATE] = {"state", QUERY_WORD, .words = states},
    [LIST_SINCE] = {.name = "since", .kind = QUERY_TIME},
    [LIST_UNTIL] = {.name = "until", .kind = QUERY_TIME},
    [LIST_LIMIT] = {"limit", QUERY_NUMBER, .min = 1, .max = LIMIT_MAX},
    [LIST_CURSOR] = {.name = "cursor", .kind = QUERY_UUID},
};
const struct query_table sandbox_list_query = {params, ARRAY_LEN(params)};

/* "live" and "ended" are several. */
static uint32_t
states_of(const struct query_value *v)
{
	const uint32_t ended = 1u << SANDBOX_IS_REMOVED | 1u << SANDBOX_IS_LOST;
	enum sandbox_word state;

	if (!v->is_given)
		return 0;
	if (sandbox_word_parse(v->text, &state) == 0)
		return 1u << state;
	return strcmp(v->text, "ended") == 0 ? ended : ~ended;
}

void
sandbox_on_list(struct request *r)
{
	struct sandbox_list_call *c = xcalloc(1, sizeof(*c));
	const struct query_value *v = r->query.values;

	c->x = r->x;
	c->front = r->front;
	c->tenant = r->who->tenant;
	http_hold(c->x, NULL, NULL);
	store_sandbox_list(core_store(c->front->core), c->tenant,
	    &(struct store_sandbox_filter){
		.identifier = v[LIST_IDENTIFIER].text,
		.states = states_of(&v[LIST_STATE]),
		.since_ms = v[LIST_SINCE].time_ms,
		.until_ms = query_until(&v[LIST_UNTIL]),
		.after = v[LIST_CURSOR].is_given ? &v[LIST_CURSOR].uuid : NULL,
		.limit = (size_t)query_number(&v[LIST_LIMIT], LIMIT_DEFAULT)},
	    listed_cb, c);
}
