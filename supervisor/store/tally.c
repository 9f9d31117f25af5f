#include "supervisor/store/tally.h"

#include "supervisor/store/db.h"
#include "supervisor/store/rows_sql_gen.h"
#include "supervisor/store/usage.h"

/* NULL: *e says why. */
static struct tally_sum *
sum_of(struct db *db, uint64_t tenant, uint32_t day, struct err *e)
{
	struct tally *t = db_tally(db);
	struct tally_sum *sum;

	for (size_t i = 0; i < t->n; i++)
		if (t->sums[i].day.tenant == tenant &&
		    t->sums[i].day.day == day)
			return &t->sums[i];
	if (t->n == TALLY_MAX && tally_flush(db, e) != 0)
		return NULL;
	sum = &t->sums[t->n++];
	*sum = (struct tally_sum){.day = {.tenant = tenant, .day = day}};
	return sum;
}

static void
count_run(struct tally_sum *sum, const struct store_run *r)
{
	struct store_counts *n = &sum->counts;

	n->runs_completed += r->state == RUN_STATE_COMPLETED;
	n->runs_failed += r->state == RUN_STATE_FAILED;
	n->runs_canceled += r->state == RUN_STATE_CANCELED;
	for (uint32_t i = 0; i < r->ncommands; i++) {
		const struct store_command *k = &r->commands[i];

		n->commands_completed += k->status == COMMAND_COMPLETED;
		n->commands_failed += k->status == COMMAND_FAILED;
		n->commands_timed_out += k->status == COMMAND_TIMED_OUT;
		sum->day.output_bytes += k->stdout_bytes + k->stderr_bytes;
	}
}

/* A clock that was set could make it any number of days. */
static uint32_t
first_day(const struct store_run *r, uint32_t last)
{
	uint32_t day = r->started_ms == 0 ? last : store_day_of(r->started_ms);

	return day > last || last - day > STORE_DAYS_MAX ? last : day;
}

/* NULL: *e says why. */
static struct tally_sum *
add_time(struct db *db, const struct store_run *r, uint32_t day, struct err *e)
{
	struct tally_sum *sum = sum_of(db, r->tenant, day, e);

	if (sum != NULL && r->started_ms != 0)
		sum->day.run_ms +=
		    store_day_share(r->started_ms, r->ended_ms, day);
	return sum;
}

int
tally_add(struct db *db, const struct store_run *r, uint64_t artifact_bytes,
    struct err *e)
{
	uint32_t last = store_day_of(r->ended_ms);
	struct tally_sum *sum;

	for (uint32_t day = first_day(r, last); day < last; day++)
		if (add_time(db, r, day, e) == NULL)
			return e->code;
	sum = add_time(db, r, last, e);
	if (sum == NULL)
		return e->code;
	count_run(sum, r);
	sum->day.runs++;
	sum->day.artifact_bytes += artifact_bytes;
	sum->row_bytes += r->row_bytes;
	return 0;
}

/* ERR_NOTFOUND: the tenant's row is about another day. */
static int
put_end(struct db *db, const struct tally_sum *sum, struct err *e)
{
	const struct store_counts *n = &sum->counts;
	const struct store_day *day = &sum->day;
	struct db_call c;

	db_call_init(&c, db, DB_TALLY);
	db_put_uint(&c, day->tenant);
	db_put_uint(&c, day->day);
	db_put_uint(&c, sum->row_bytes);
	db_put_uint(&c, day->runs);
	db_put_uint(&c, day->run_ms);
	db_put_uint(&c, day->output_bytes);
	db_put_uint(&c, day->artifact_bytes);
	db_put_uint(&c, n->runs_completed);
	db_put_uint(&c, n->runs_failed);
	db_put_uint(&c, n->runs_canceled);
	db_put_uint(&c, n->commands_completed);
	db_put_uint(&c, n->commands_failed);
	db_put_uint(&c, n->commands_timed_out);
	return db_call_run_one(&c, e);
}

/* What the tenant's row has of another day goes where days are. */
static int
begin_day(struct db *db, uint64_t tenant, uint32_t day, struct err *e)
{
	struct db_call c;

	if (db_exec_with(db, DB_USAGE_OF_ENDS, tenant, e) != 0)
		return e->code;
	db_call_init(&c, db, DB_TENANT_DAY);
	db_put_uint(&c, tenant);
	db_put_uint(&c, day);
	return db_call_run(&c, e);
}

static int
put_sum(struct db *db, const struct tally_sum *sum, struct err *e)
{
	struct db_call c;
	int rc;

	if (sum->day.runs == 0) { /* nothing ended on it */
		db_call_init(&c, db, DB_USAGE_ADD);
		rows_put_day(&c, &sum->day);
		return db_call_run(&c, e);
	}
	rc = put_end(db, sum, e);
	if (rc != ERR_NOTFOUND)
		return rc;
	rc = begin_day(db, sum->day.tenant, sum->day.day, e);
	return rc != 0 ? rc : put_end(db, sum, e);
}

int
tally_flush(struct db *db, struct err *e)
{
	struct tally *t = db_tally(db);

	for (size_t i = 0; i < t->n; i++)
		if (put_sum(db, &t->sums[i], e) != 0)
			return e->code;
	t->n = 0;
	return 0;
}

void
tally_drop(struct db *db)
{
	db_tally(db)->n = 0;
}
