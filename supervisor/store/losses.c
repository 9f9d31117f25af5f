#include "supervisor/store/losses.h"

#include <sys/stat.h>
#include <stdatomic.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/done.h"
#include "supervisor/store/queue.h"
#include "supervisor/store/spool.h"
#include "supervisor/store/store_int.h"
#include "supervisor/store/writer.h"

#define ROWS_MAX 256 /* of a statement */

struct losses {
	struct store *store;
	struct db *db;
	struct done *done; /* for what was found */
	pthread_t thread;
	atomic_bool stopped;
};

/* A log (of run) or a blob. */
struct loss {
	struct op op;
	struct store *store;
	bool is_log;
	uint64_t run; /* its number */
	struct uuid uuid;
	uint64_t tenant;
	uint8_t sha256[32];
	uint64_t size; /* as its row says */
	bool has_file; /* of a run: its log is in one, and not lost */
	bool is_lost;
};

/* ---- a file */

/* Whether it has what its row says; on a doubt it does. */
static bool
is_short(int fd, uint64_t size, bool is_exact)
{
	struct stat st;
	bool found = fd == ERR_NOTFOUND;

	if (fd < 0)
		return found;
	if (fstat(fd, &st) == 0)
		found = (uint64_t)st.st_size < size ||
		    (is_exact && (uint64_t)st.st_size != size);
	(void)close(fd);
	return found;
}

static bool
loss_is_one(const struct loss *l)
{
	struct spool *spool = l->store->spool;
	struct err ignored;

	return l->is_log ?
	    is_short(
		spool_log_read(spool, &l->uuid, &ignored), l->size, false) :
	    is_short(spool_blob_read(spool, l->tenant, l->sha256, &ignored),
		l->size, true);
}

/* ---- on the writer's thread, and what the log says */

static int
loss_run(struct db *db, struct op *op, struct err *e)
{
	struct loss *l = (struct loss *)op;
	struct db_call c;
	int rc;

	l->is_lost = false;
	if (!loss_is_one(l))
		return 0;
	db_call_init(&c, db, l->is_log ? DB_LOG_LOSE : DB_BLOB_LOSE);
	db_put_uint(&c, l->is_log ? l->run : l->tenant);
	if (!l->is_log)
		db_put_blob(&c, l->sha256, sizeof(l->sha256));
	db_put_int(&c, clock_wall_ms());
	rc = db_call_run_one(&c, e);
	l->is_lost = rc == 0;
	/* It was evicted or forgotten meanwhile. */
	return rc == ERR_NOTFOUND ? 0 : rc;
}

static void
loss_deliver(struct op *op)
{
	static struct log_limit limit;
	const struct loss *l = (const struct loss *)op;
	char text[HEX_BYTES(32)];

	if (op->rc != 0) {
		log_warn_limited(
		    &limit, "a lost file is not recorded: %s", op->why.msg);
		return;
	}
	if (!l->is_lost)
		return;
	if (l->is_log)
		uuid_format(&l->uuid, text);
	else
		hex_encode(l->sha256, sizeof(l->sha256), text);
	log_warn_limited(&limit,
	    "%s %s is lost: its file has not the %llu bytes that it had",
	    l->is_log ? "the output of run" : "artifact", text,
	    (unsigned long long)l->size);
}

/* ---- from the thread, by the loop, to the writer */

static void
found_deliver(struct op *op)
{
	struct loss *l = xmemdup(op, sizeof(*l));

	l->op = (struct op){.run = loss_run,
	    .deliver = loss_deliver,
	    .bytes = sizeof(*l),
	    .again = true};
	writer_submit(l->store->writer, &l->op);
}

static void
look_at(struct losses *all, const struct loss *l)
{
	struct loss *found;

	if (!loss_is_one(l))
		return;
	found = xmemdup(l, sizeof(*l));
	found->op.deliver = found_deliver;
	done_push(all->done, &found->op);
}

/* ---- the thread */

/* Kept runs behind *at that ended late enough. */
static int
read_runs(struct losses *all, int64_t since_ms, uint64_t *at, struct loss *out,
    size_t *n, struct err *e)
{
	uint64_t from = *at;
	struct db_call c;
	int rc;

	*n = 0;
	db_call_init(&c, all->db, DB_LOSSES_RUNS);
	db_put_uint(&c, from);
	db_put_int(&c, ROWS_MAX);
	while ((rc = db_call_step(&c, e)) == 1) {
		struct loss *l = &out[*n];

		*l = (struct loss){.store = all->store, .is_log = true};
		l->run = *at = db_get_uint(&c);
		l->tenant = db_get_uint(&c);
		db_get_bytes(&c, l->uuid.b, sizeof(l->uuid.b));
		l->has_file = db_get_int(&c) != 0;
		l->size = db_get_uint(&c);
		if (db_get_int(&c) >= since_ms)
			(*n)++;
	}
	return rc;
}

/* Its artifacts, a statement's worth at a time. */
static int
look_at_artifacts(struct losses *all, const struct loss *run, struct err *e)
{
	AUTO(auto_free)
	struct loss *some = xcalloc(ROWS_MAX, sizeof(*some));
	uint64_t offset = 0;
	size_t n;

	do {
		struct db_call c;
		int rc;

		n = 0;
		db_call_init(&c, all->db, DB_LOSSES_ARTIFACTS);
		db_put_uint(&c, run->run);
		db_put_int(&c, ROWS_MAX);
		db_put_uint(&c, offset);
		while ((rc = db_call_step(&c, e)) == 1) {
			struct loss *l = &some[n++];

			*l = (struct loss){
			    .store = all->store, .tenant = run->tenant};
			db_get_bytes(&c, l->sha256, sizeof(l->sha256));
			l->size = db_get_uint(&c);
		}
		if (rc < 0)
			return rc;
		for (size_t i = 0; i < n; i++)
			look_at(all, &some[i]);
		offset += n;
	} while (n == ROWS_MAX && !atomic_load(&all->stopped));
	return 0;
}

static int
look_at_all(struct losses *all, struct err *e)
{
	AUTO(auto_free) struct loss *runs = xcalloc(ROWS_MAX, sizeof(*runs));
	int64_t newest_ms = 0;
	uint64_t at = 0, before;
	size_t n = 0;
	int rc = db_exec_int(all->db, DB_LOSSES_NEWEST, &newest_ms, e);

	while (rc == 0 && !atomic_load(&all->stopped)) {
		before = at;
		rc = read_runs(
		    all, newest_ms - LOSSES_YOUNG_MS, &at, runs, &n, e);
		for (size_t i = 0; i < n && rc == 0; i++) {
			if (runs[i].has_file)
				look_at(all, &runs[i]);
			rc = look_at_artifacts(all, &runs[i], e);
		}
		if (at == before)
			break;
	}
	return rc;
}

/* Behind all that was found: a failure, said by the loop's thread. */
static void
failed_deliver(struct op *op)
{
	log_warn("files of runs that ended last were not looked at: %s",
	    op->why.msg);
}

static void *
losses_main(void *arg)
{
	struct losses *all = arg;
	struct err why;
	struct op *op;

	if (look_at_all(all, &why) == 0)
		return NULL;
	op = xcalloc(1, sizeof(*op));
	op->deliver = failed_deliver;
	op->why = why;
	done_push(all->done, op);
	return NULL;
}

/* ---- on the loop's thread */

static void
losses_free(struct losses *all)
{
	db_close(all->db);
	done_free(all->done);
	free(all);
}

void
losses_start(struct event_base *base, struct store *s)
{
	struct losses *all = xcalloc(1, sizeof(*all));
	struct err e;
	int rc;

	all->store = s;
	atomic_init(&all->stopped, false);
	rc = done_new(base, &all->done, &e);
	if (rc == 0)
		rc = db_open(s->dir, DB_READER, &all->db, &e);
	if (rc == 0)
		rc = queue_thread(&all->thread, losses_main, all, &e);
	if (rc != 0) {
		log_warn("files of runs that ended last are not looked at: %s",
		    e.msg);
		losses_free(all);
		return;
	}
	s->losses = all;
}

void
losses_stop(struct losses *all)
{
	if (all == NULL)
		return;
	atomic_store(&all->stopped, true);
	(void)pthread_join(all->thread, NULL);
	losses_free(all);
}
