#include "supervisor/store/history_shed.h"

#include "supervisor/store/db.h"
#include "supervisor/store/history_take.h"

#define ROUND_MAX 16 /* then another tenant may have most */

struct round {
	uint64_t tenant;
	int64_t places[ROUND_MAX];
	size_t n;
};

static int
read_oldest(struct db *db, struct round *r, int64_t first, struct err *e)
{
	struct db_call c;
	int rc;

	r->n = 0;
	db_call_init(&c, db, DB_INDEX_CORPUS_OLDEST);
	db_put_uint(&c, r->tenant);
	db_put_int(&c, first);
	db_put_int(&c, ROUND_MAX);
	while ((rc = db_call_step(&c, e)) == 1)
		r->places[r->n++] = db_get_int(&c);
	return rc;
}

/* Its count says more than there is: it is counted anew. */
static int
mend_count(struct history_take *t, uint64_t tenant, struct err *e)
{
	struct db_call c;

	db_call_init(&c, t->to, DB_INDEX_CORPUS_NONE);
	db_put_uint(&c, tenant);
	if (db_call_run(&c, e) != 0)
		return e->code;
	return history_corpus_load(&t->corpus, t->to, e);
}

/* least: so many bytes are to be left. */
static int
shed_round(struct history_take *t, uint64_t least, struct err *e)
{
	struct round r;
	int64_t first = 0;
	size_t i = 0;
	int rc = history_corpus_most(&t->corpus, t->to, &r.tenant, &first, e);

	if (rc == 0)
		return history_corpus_load(&t->corpus, t->to, e);
	if (rc < 0 || read_oldest(t->to, &r, first, e) != 0)
		return e->code;
	if (r.n == 0)
		return mend_count(t, r.tenant, e);
	for (; i < r.n && t->corpus.bytes > least; i++)
		if (history_take_text(t, r.places[i], e) != 0)
			return e->code;
	return history_corpus_left(
	    &t->corpus, t->to, r.tenant, r.places[i - 1] + 1, e);
}

int
history_shed(
    struct history_take *t, uint64_t max, uint64_t at_most, struct err *e)
{
	uint64_t least = max;
	int rc = 0;

	if (t->corpus.bytes > at_most && t->corpus.bytes - at_most > max)
		least = t->corpus.bytes - at_most;
	while (rc == 0 && t->corpus.bytes > least)
		rc = shed_round(t, least, e);
	return rc;
}
