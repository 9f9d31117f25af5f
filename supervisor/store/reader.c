#include "supervisor/store/reader.h"

#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/done.h"
#include "supervisor/store/queue.h"

struct reader {
	struct queue queue;
	pthread_t thread;
	struct db *db;
	struct done *done;
};

static void
reader_run(struct db *db, struct op *op)
{
	struct err ignored;

	op->rc = db_exec(db, DB_BEGIN_READ, &op->why);
	if (op->rc != 0)
		return;
	op->rc = op->run(db, op, &op->why);
	/* Nothing was written, so it does not matter how this ends. */
	if (db_exec(db, DB_COMMIT, &ignored) != 0)
		db_rollback(db);
}

static void *
reader_main(void *arg)
{
	struct reader *r = arg;
	struct op *op;

	for (;;) {
		if (queue_is_stopped(&r->queue))
			return NULL;
		op = queue_take(&r->queue, 1, QUEUE_WAIT_FOREVER);
		if (op == NULL)
			continue;
		reader_run(r->db, op);
		done_push(r->done, op);
	}
}

int
reader_start(
    struct db *db, struct done *done, struct reader **out, struct err *e)
{
	struct reader *r = xcalloc(1, sizeof(*r));
	int rc;

	queue_init(&r->queue);
	r->db = db;
	r->done = done;
	rc = queue_thread(&r->thread, reader_main, r, e);
	if (rc != 0) {
		queue_clear(&r->queue);
		db_close(r->db);
		free(r);
		return rc;
	}
	*out = r;
	return 0;
}

void
reader_stop(struct reader *r)
{
	queue_stop(&r->queue);
	(void)pthread_join(r->thread, NULL);
	db_close(r->db);
	queue_clear(&r->queue);
	free(r);
}

void
reader_submit(struct reader *r, struct op *op)
{
	queue_push(&r->queue, op);
}
