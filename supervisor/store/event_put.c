#include "supervisor/store/event_put.h"

#include "common/clock.h"
#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/event_log.h"
#include "supervisor/store/rows_sql_gen.h"

#define TEXT_MAX 500 /* bytes of a text in words */

/* ---- one */

/* Behind newest there are keep, and the newest itself is one of them. */
static int
trim(struct db *db, uint64_t tenant, uint64_t newest, struct err *e)
{
	uint64_t keep;
	struct db_call c;

	if (db_ask_with(db, DB_EVENT_KEEP, tenant, &keep, e) != 0)
		return e->code;
	if (keep == 0)
		keep = STORE_EVENTS_KEEP;
	if (newest <= keep)
		return 0;
	db_call_init(&c, db, DB_EVENT_TRIM);
	db_put_uint(&c, tenant);
	db_put_uint(&c, newest - keep + 1);
	db_put_uint(&c, EVENT_TRIM_STEP);
	return db_call_run(&c, e);
}

/* 1: the tenant's newest event has the number *out, 0 when it has none; 0: the
 * tenant was erased. */
static int
newest_of(struct db *db, uint64_t tenant, uint64_t *out, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_EVENT_NEXT);
	db_put_uint(&c, tenant);
	rc = db_call_step(&c, e);
	if (rc <= 0)
		return rc;
	*out = db_get_uint(&c);
	rc = db_get_int(&c) != 0;
	db_call_end(&c);
	return rc;
}

/* An erased tenant gets no row and no number. */
int
event_put(struct db *db, struct op *op, struct store_event *row, struct err *e)
{
	struct db_call c;
	uint64_t newest;
	int rc = newest_of(db, row->tenant, &newest, e);

	if (rc <= 0)
		return rc;
	row->seq = newest + 1;
	db_call_init(&c, db, DB_EVENT_INSERT);
	rows_put_event(&c, row);
	if (db_call_run(&c, e) != 0)
		return e->code;
	op->has_events = true;
	op->events_of = row->tenant;
	return row->seq % EVENT_TRIM_EVERY == 0 ?
	    trim(db, row->tenant, row->seq, e) :
	    0;
}

int
event_put_once(
    struct db *db, struct op *op, struct store_event *row, struct err *e)
{
	bool is_there = false;
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_EVENT_THERE);
	db_put_uint(&c, row->tenant);
	db_put_blob(&c, row->run.b, sizeof(row->run.b));
	db_put_text(&c, event_kind_word(row->kind));
	rc = db_call_step(&c, e);
	if (rc < 0)
		return rc;
	if (rc == 1) {
		is_there = db_get_int(&c) != 0;
		db_call_end(&c);
	}
	return is_there ? 0 : event_put(db, op, row, e);
}

/* ---- what it says; what is missing is left out */

static void
set_text(json_t *o, const char *key, const char *text)
{
	size_t n = text == NULL ? 0 : strlen(text);

	if (n > TEXT_MAX)
		n = utf8_complete_len(text, TEXT_MAX);
	if (n > 0)
		json_object_set_new(o, key, js_string_bytes(text, n, NULL));
}

static void
set_number(json_t *o, const char *key, uint64_t n)
{
	json_object_set_new(o, key, json_integer((json_int_t)n));
}

static void
set_time(json_t *o, const char *key, int64_t wall_ms)
{
	char text[CLOCK_TEXT_MAX];

	if (wall_ms == 0)
		return;
	clock_format(wall_ms, text);
	set_text(o, key, text);
}

/* ---- of runs */

static void
set_end(json_t *o, const struct store_run *r)
{
	set_text(o, "state", run_state_word(r->state));
	set_text(o, "end_reason", runlog_reason_word(r->end_reason));
	if (r->exit_code >= 0)
		set_number(o, "exit_code", (uint64_t)r->exit_code);
	set_text(o, "error", r->error);
	set_time(o, "created_at", r->created_ms);
	set_time(o, "started_at", r->started_ms);
	set_time(o, "ended_at", r->ended_ms);
	set_number(o, "commands", r->ncommands);
	set_number(o, "stdout_bytes", r->stdout_bytes);
	set_number(o, "stderr_bytes", r->stderr_bytes);
	set_number(o, "artifacts", r->artifacts_total);
}

static char *
run_data(enum event_kind kind, const struct store_run *r)
{
	AUTO(auto_json) json_t *o = json_object();

	set_text(o, "tool", r->tool);
	set_text(o, "sandbox", r->sandbox_name);
	if (kind == EVENT_RUN_ENDED)
		set_end(o, r);
	else if (kind == EVENT_RUN_STARTED)
		set_time(o, "created_at", r->created_ms);
	else
		set_number(o, "commands", r->ncommands);
	return js_dump(o);
}

void
event_of_run(
    enum event_kind kind, const struct store_run *r, struct store_event *out)
{
	*out = (struct store_event){.tenant = r->tenant,
	    .at_ms = kind == EVENT_RUN_ENDED ? r->ended_ms :
		kind == EVENT_RUN_STARTED    ? r->started_ms :
					       r->created_ms,
	    .kind = kind,
	    .identifier = xstrdup(r->identifier == NULL ? "" : r->identifier),
	    .run = r->uuid,
	    .data = run_data(kind, r)};
}

int
event_put_run(struct db *db, struct op *op, enum event_kind kind,
    const struct store_run *r, struct err *e)
{
	struct store_event row;
	int rc;

	event_of_run(kind, r, &row);
	rc = event_put(db, op, &row, e);
	store_event_clear(&row);
	return rc;
}

/* ---- of sandboxes */

static void
set_limits(json_t *o, const struct store_sandbox *r)
{
	set_text(o, "image", r->image);
	set_text(o, "origin", r->origin);
	set_number(o, "memory_bytes", r->memory_bytes);
	json_object_set_new(
	    o, "cpus", json_real((double)r->nano_cpus / 1000000000));
	set_number(o, "pids", r->pids);
	set_number(o, "ttl_seconds", r->ttl_s);
}

static char *
sandbox_data(enum event_kind kind, const struct store_sandbox *r)
{
	AUTO(auto_json) json_t *o = json_object();

	set_text(o, "sandbox", r->name);
	set_number(o, "generation", r->generation);
	if (kind == EVENT_SANDBOX_CREATED)
		set_limits(o, r);
	else if (kind == EVENT_SANDBOX_READY)
		set_text(o, "container_id", r->container_id);
	else if (kind == EVENT_SANDBOX_REMOVING)
		set_text(o, "reason", r->reason);
	else if (kind != EVENT_SANDBOX_REMOVED)
		set_text(o, "error", r->why);
	return js_dump(o);
}

static int
put_sandbox(struct db *db, struct op *op, enum event_kind kind,
    const struct store_sandbox *r, struct err *e)
{
	struct store_event row = {.tenant = r->tenant,
	    .at_ms =
		kind == EVENT_SANDBOX_CREATED ? r->created_ms : clock_wall_ms(),
	    .kind = kind,
	    .identifier = r->identifier,
	    .data = sandbox_data(kind, r)};
	int rc = event_put(db, op, &row, e);

	free(row.data);
	return rc;
}

/* 0: it has no row yet; 1: *out is how it stands. */
static int
sandbox_word_of(
    struct db *db, uint64_t id, enum sandbox_word *out, struct err *e)
{
	struct db_call c;
	int rc, known;

	db_call_init(&c, db, DB_SANDBOX_STATE);
	db_put_uint(&c, id);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	known = sandbox_word_parse(db_get_word(&c), out);
	db_call_end(&c);
	return known == 0 ?
	    1 :
	    err_set(e, ERR_DB, "database: a sandbox of no known state");
}

static enum event_kind
kind_of(const struct store_sandbox *r)
{
	switch (r->state) {
	case SANDBOX_IS_CREATING:
		return EVENT_SANDBOX_CREATED;
	case SANDBOX_IS_READY:
		return EVENT_SANDBOX_READY;
	case SANDBOX_IS_REMOVING:
		return EVENT_SANDBOX_REMOVING;
	case SANDBOX_IS_LOST:
		return EVENT_SANDBOX_LOST;
	case SANDBOX_IS_REMOVED:
	default:
		return r->reason != NULL && strcmp(r->reason, "failed") == 0 ?
		    EVENT_SANDBOX_FAILED :
		    EVENT_SANDBOX_REMOVED;
	}
}

int
event_put_sandbox(
    struct db *db, struct op *op, const struct store_sandbox *r, struct err *e)
{
	enum sandbox_word before = SANDBOX_IS_CREATING;
	int rc = sandbox_word_of(db, r->id, &before, e);

	if (rc < 0)
		return rc;
	if (rc == 0 && put_sandbox(db, op, EVENT_SANDBOX_CREATED, r, e) != 0)
		return e->code;
	return before == r->state ? 0 : put_sandbox(db, op, kind_of(r), r, e);
}

/* ---- of what has no row */

static char *
news_data(const struct store_news *n)
{
	AUTO(auto_json) json_t *o = json_object();

	if (n->has_worker)
		set_number(o, "worker", n->worker);
	set_text(o, "error", n->error);
	set_text(o, "quota", n->quota);
	if (n->quota != NULL)
		set_number(o, "times", n->times);
	set_time(o, "failed_at", n->failed_ms);
	set_text(o, "webhook", n->webhook);
	if (n->lost > 0)
		set_number(o, "lost", n->lost);
	return js_dump(o);
}

/* The data is its own from now on. */
static struct store_event
event_now(uint64_t tenant, enum event_kind kind, char *data)
{
	return (struct store_event){.tenant = tenant,
	    .at_ms = clock_wall_ms(),
	    .kind = kind,
	    .identifier = xstrdup(""),
	    .data = data};
}

void
event_of_expired(
    uint64_t tenant, uint64_t runs, uint64_t files_of, struct store_event *out)
{
	AUTO(auto_json) json_t *o = json_object();

	set_number(o, "runs", runs);
	set_number(o, "files_of", files_of);
	*out = event_now(tenant, EVENT_HISTORY_EXPIRED, js_dump(o));
}

void
event_of_news(const struct store_news *news, struct store_event *out)
{
	*out = event_now(news->tenant, news->kind, news_data(news));
}
