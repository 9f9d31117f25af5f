/*
 * leftovers.c - asks the database about files, and removes those nobody wants
 *
 * All of it happens in ops without a transaction (op.h, after), on the
 * writer's thread.  A sweep is a chain of such ops: the first lists the
 * directories, each looks through some of them and is followed by the next.
 */
#include "supervisor/store/leftovers.h"

#include "supervisor/store/db.h"
#include "supervisor/store/spool.h"
#include "supervisor/store/store_int.h"
#include "supervisor/store/wanted.h"
#include "supervisor/store/writer.h"

#define SWEEP_FILES 200 /* at a time: others wait meanwhile */

/* One file.  On a doubt (the database cannot say) it stays. */

/* No row says that its log is in a file. */
static void
check_log(struct store *s, struct db *db, const struct uuid *run)
{
	struct err ignored;
	struct db_call c;

	db_call_init(&c, db, DB_LOG_WANTED);
	db_put_blob(&c, run->b, sizeof(run->b));
	if (db_call_has_row(&c, &ignored) == 0)
		wanted_remove_log(s->wanted, s->spool, run);
}

void
leftovers_check_blob(
    struct store *s, struct db *db, uint64_t tenant, const uint8_t sha256[32])
{
	struct err ignored;
	struct db_call c;

	db_call_init(&c, db, DB_BLOB_WANTED);
	db_put_uint(&c, tenant);
	db_put_blob(&c, sha256, 32);
	if (db_call_has_row(&c, &ignored) == 0)
		wanted_remove_blob(s->wanted, s->spool, tenant, sha256);
}

/* Some blobs. */

struct leftovers {
	struct op op;
	struct store *store;
	size_t n;
	struct {
		uint64_t tenant;
		uint8_t sha256[32];
	} blobs[];
};

static void
some_after(struct db *db, struct op *op)
{
	const struct leftovers *l = (struct leftovers *)op;

	for (size_t i = 0; i < l->n; i++)
		leftovers_check_blob(
		    l->store, db, l->blobs[i].tenant, l->blobs[i].sha256);
}

struct leftovers *
leftovers_new(struct store *s, size_t max)
{
	struct leftovers *l =
	    xcalloc(1, sizeof(*l) + max * sizeof(l->blobs[0]));

	l->op.after = some_after;
	l->store = s;
	return l;
}

void
leftovers_add_blob(
    struct leftovers *l, uint64_t tenant, const uint8_t sha256[32])
{
	l->blobs[l->n].tenant = tenant;
	memcpy(l->blobs[l->n].sha256, sha256, 32);
	l->n++;
}

void
leftovers_submit(struct leftovers *l)
{
	if (l->store->writer != NULL)
		writer_submit(l->store->writer, &l->op);
	else /* closing: the next opening finds them */
		free(l);
}

/* All that is there. */

struct sweep_op {
	struct op op;
	struct store *store;
	struct spool_place *places;
	size_t nplaces;
	size_t at;     /* the next one to look through */
	size_t nfiles; /* looked at in this turn */
	bool begun;
	struct db *db; /* in this turn */
};

static void
sweep_entry_cb(const struct spool_entry *entry, void *arg)
{
	struct sweep_op *w = arg;

	w->nfiles++;
	if (entry->tenant == 0)
		check_log(w->store, w->db, &entry->run);
	else
		leftovers_check_blob(
		    w->store, w->db, entry->tenant, entry->sha256);
}

static void
sweep_after(struct db *db, struct op *op)
{
	struct sweep_op *w = (struct sweep_op *)op;

	if (!w->begun) {
		w->begun = true;
		spool_sweep_tmp(w->store->spool);
		w->nplaces = spool_walk_places(w->store->spool, &w->places);
	}
	w->db = db;
	w->nfiles = 0;
	while (w->at < w->nplaces && w->nfiles < SWEEP_FILES)
		spool_walk(
		    w->store->spool, &w->places[w->at++], sweep_entry_cb, w);
}

static void
sweep_release(struct op *op)
{
	free(((struct sweep_op *)op)->places);
	free(op);
}

static void sweep_deliver(struct op *op);

static void
sweep_submit(struct sweep_op *w)
{
	w->op.after = sweep_after;
	w->op.deliver = sweep_deliver;
	w->op.release = sweep_release;
	writer_submit(w->store->writer, &w->op);
}

/* The next turn, behind what waits by now. */
static void
sweep_deliver(struct op *op)
{
	struct sweep_op *w = (struct sweep_op *)op, *next;

	if (w->at == w->nplaces)
		return;
	next = xmemdup(w, sizeof(*w));
	w->places = NULL;
	sweep_submit(next);
}

void
leftovers_sweep(struct store *s)
{
	struct sweep_op *w = xcalloc(1, sizeof(*w));

	w->store = s;
	sweep_submit(w);
}
