#include "supervisor/front/sandbox_list_route.h"

#include "common/xmalloc.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/front/query.h"
#include "supervisor/front/scope.h"
#include "supervisor/tools/view.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MAX 500

struct sandbox_list_call {
	struct http_exchange *x; /* outlives its client */
	struct front *front;
	struct principal *who;
};

/* In memory, if it is there and this one. */
static const struct sandbox *
find_live(const struct sandbox_list_call *c, const struct store_sandbox *row)
{
	const struct sandbox *sb = sandbox_find_named(
	    core_sandboxes(c->front->core), c->who->tenant, row->identifier);

	return sb != NULL && uuid_is_equal(&sb->row.uuid, &row->uuid) ? sb :
									NULL;
}

static json_t *
view_row(const struct sandbox_list_call *c, const struct store_sandbox *row)
{
	const struct sandbox *sb = find_live(c, row);
	char id[UUID_TEXT_LEN + 1];
	json_t *o;

	uuid_format(&row->uuid, id);
	o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:s}", "sandbox_id", id,
	    "identifier", row->identifier, "name", row->name, "state",
	    sb != NULL ? view_sandbox_state(sb) : sandbox_word(row->state),
	    "image", row->image, "generation", (json_int_t)row->generation,
	    "origin", row->origin);
	json_object_set_new(o, "active_runs",
	    json_integer(
		sb == NULL ? 0 : (json_int_t)sched_queue_count(&sb->queue)));
	json_object_set_new(
	    o, "left_running", json_integer(sb == NULL ? 0 : sb->left));
	json_object_set_new(
	    o, "memory_bytes", json_integer((json_int_t)row->memory_bytes));
	json_object_set_new(
	    o, "cpu_cores", json_real((double)row->nano_cpus / 1e9));
	json_object_set_new(o, "pids", json_integer(row->pids));
	json_object_set_new(o, "created_at", view_time(row->created_ms));
	json_object_set_new(o, "expires_at",
	    view_time(sb != NULL ? sb->row.expires_ms : row->expires_ms));
	json_object_set_new(o, "ended_at", view_time(row->ended_ms));
	return o;
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
		    json_pack("{s:o, s:o}", "sandboxes", rows, "next_cursor",
			next[0] == '\0' ? json_null() : json_string(next)));
	}
	principal_unref(c->who);
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
    [LIST_IDENTIFIER] = {.name = "identifier",
	.kind = QUERY_TEXT,
	.max = SANDBOX_IDENTIFIER_MAX},
    [LIST_STATE] = {.name = "state", .kind = QUERY_WORD, .words = states},
    [LIST_SINCE] = {.name = "since", .kind = QUERY_TIME},
    [LIST_UNTIL] = {.name = "until", .kind = QUERY_TIME},
    [LIST_LIMIT] = {.name = "limit",
	.kind = QUERY_NUMBER,
	.min = 1,
	.max = LIMIT_MAX},
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
sandbox_on_list(struct front *f, struct http_exchange *x)
{
	struct sandbox_list_call *c;
	const struct query_value *v;
	struct principal *who;
	struct query q = {0};

	if (!query_read(x, params, ARRAY_LEN(params), &q))
		return;
	v = q.values;
	who = scope_find(f, x, &v[LIST_TENANT]);
	if (who != NULL) {
		c = xcalloc(1, sizeof(*c));
		c->x = x;
		c->front = f;
		c->who = who;
		http_hold(x, NULL, NULL);
		store_sandbox_list(core_store(f->core), who->tenant,
		    &(struct store_sandbox_filter){
			.identifier = v[LIST_IDENTIFIER].text,
			.states = states_of(&v[LIST_STATE]),
			.since_ms = v[LIST_SINCE].time_ms,
			.until_ms = query_until(&v[LIST_UNTIL]),
			.after = v[LIST_CURSOR].is_given ?
			    &v[LIST_CURSOR].uuid :
			    NULL,
			.limit = v[LIST_LIMIT].is_given ?
			    (size_t)v[LIST_LIMIT].number :
			    LIMIT_DEFAULT},
		    listed_cb, c);
	}
	query_clear(&q);
}
