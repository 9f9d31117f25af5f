#include "supervisor/store/history_corpus.h"

#include "supervisor/store/db.h"
#include "supervisor/store/history_sql.h"

int
history_corpus_load(struct history_corpus *c, struct db *db, struct err *e)
{
	struct db_call call;
	int rc;

	*c = (struct history_corpus){0};
	db_call_init(&call, db, DB_INDEX_CORPUS);
	rc = db_call_step(&call, e);
	if (rc != 1)
		return rc;
	c->bytes = db_get_uint(&call);
	c->is_shed = db_get_int(&call) != 0;
	db_call_end(&call);
	return 0;
}

int
history_corpus_flush(struct history_corpus *c, struct db *db, struct err *e)
{
	struct db_call call;

	if (c->change == 0)
		return 0;
	db_call_init(&call, db, DB_INDEX_CORPUS_ADD);
	db_put_uint(&call, c->tenant);
	db_put_int(&call, c->change);
	c->change = 0;
	return db_call_run(&call, e);
}

int
history_corpus_add(struct history_corpus *c, struct db *db, uint64_t tenant,
    int64_t change, struct err *e)
{
	if (c->tenant != tenant && history_corpus_flush(c, db, e) != 0)
		return e->code;
	c->tenant = tenant;
	c->change += change;
	if (change > 0)
		c->put += (uint64_t)change;
	if (change < 0 && c->bytes < (uint64_t)-change)
		c->bytes = 0;
	else
		c->bytes += (uint64_t)change;
	return 0;
}

int
history_corpus_takes(const struct history_corpus *c, struct db *db,
    uint64_t tenant, int64_t place, struct err *e)
{
	uint64_t first;

	if (!c->is_shed)
		return 1;
	if (db_ask_with(db, DB_INDEX_CORPUS_FIRST, tenant, &first, e) != 0)
		return e->code;
	return place >= (int64_t)first;
}

int
history_corpus_most(struct history_corpus *c, struct db *db, uint64_t *tenant,
    int64_t *first, struct err *e)
{
	struct db_call call;
	int rc;

	if (history_corpus_flush(c, db, e) != 0)
		return e->code;
	db_call_init(&call, db, DB_INDEX_CORPUS_MOST);
	rc = db_call_step(&call, e);
	if (rc != 1)
		return rc;
	*tenant = db_get_uint(&call);
	*first = db_get_int(&call);
	db_call_end(&call);
	return 1;
}

int
history_corpus_left(struct history_corpus *c, struct db *db, uint64_t tenant,
    int64_t first, struct err *e)
{
	struct db_call call;

	if (history_corpus_flush(c, db, e) != 0)
		return e->code;
	c->is_shed = true;
	db_call_init(&call, db, DB_INDEX_CORPUS_LEFT);
	db_put_uint(&call, tenant);
	db_put_int(&call, first);
	return db_call_run(&call, e);
}

int
history_corpus_reach(struct db *db, uint64_t tenant, int64_t from, int64_t to,
    int64_t *since_ms, struct err *e)
{
	const int64_t low = ((int64_t)1 << HISTORY_PLACE_BITS) - 1;
	struct db_call call;
	int64_t first;
	int rc;

	*since_ms = 0;
	db_call_init(&call, db, DB_HISTORY_CORPUS_FIRST);
	db_put_uint(&call, tenant);
	db_put_int(&call, from);
	db_put_int(&call, to);
	rc = db_call_step(&call, e);
	if (rc != 1)
		return rc;
	first = db_get_int(&call);
	db_call_end(&call);
	/* Of a millisecond that is cut in two nothing is promised. */
	*since_ms = (first + low) >> HISTORY_PLACE_BITS;
	return 0;
}
