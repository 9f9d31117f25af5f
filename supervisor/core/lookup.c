#include "supervisor/core/lookup.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/core/core.h"
#include "supervisor/core/run.h"

struct lookup {
	struct core *core;
	lookup_cb cb;
	void *arg;
	struct run *run; /* in memory: a reference */
	struct run_reader reader;
	struct store_run row; /* else, from the database */
	struct log_view *view;
	struct timer *later;
	struct store_getting *getting; /* NULL: the database has answered */
	/* To ask it again: */
	struct tenant_id tenant;
	struct uuid uuid;
	uint32_t artifacts_from;
	enum run_merge merge;
	bool is_asked_again;
};

void
lookup_close(struct lookup *l)
{
	if (l == NULL)
		return;
	if (l->getting != NULL)
		store_getting_cancel(l->getting);
	timer_free(l->later);
	if (l->run != NULL) {
		run_read_end(l->run, &l->reader);
		run_unref(l->run);
	}
	log_view_close(l->view);
	store_run_clear(&l->row);
	free(l);
}

static void
texts_cb(int rc, const struct err *why, void *arg)
{
	struct lookup *l = arg;
	const struct lookup_found f = {l->run, &l->run->row, run_view(l->run)};

	l->cb(rc, rc == 0 ? &f : NULL, why, l->arg);
}

static void
live_cb(void *arg)
{
	struct lookup *l = arg;

	if (run_read(l->run, &l->reader, texts_cb, l))
		texts_cb(0, NULL, l);
}

static bool
wants_file(const struct store_run *row)
{
	return row->log == NULL && row->evicted_ms == 0 && row->lost_ms == 0 &&
	    row->spool_bytes > STORE_INLINE_MAX;
}

/* The file of a log that is not in its row, whole: a descriptor,
 * ERR_NOTFOUND, or another error. */
static int
open_log(struct lookup *l, struct err *e)
{
	struct stat st;
	int fd;

	if (l->row.log != NULL || l->row.lost_ms != 0)
		return ERR_NOTFOUND;
	fd = store_log_read(core_store(l->core), &l->row.uuid, e);
	if (fd < 0 || !wants_file(&l->row))
		return fd;
	if (fstat(fd, &st) == 0 && (uint64_t)st.st_size >= l->row.spool_bytes)
		return fd;
	(void)close(fd);
	l->row.lost_ms = clock_wall_ms();
	return ERR_NOTFOUND;
}

/* Of a long log the file, of a short one the bytes; without its file what the
 * row has.  ERR_GONE: the row does not say that there is none. */
static int
open_view(struct lookup *l, struct err *e)
{
	const struct log_caps caps = run_wish_caps(&l->row, l->merge);
	struct logs *logs = core_logs(l->core);
	struct err why;
	int fd = open_log(l, e);

	if (fd < 0 && fd != ERR_NOTFOUND)
		return e->code;
	if (fd < 0 && wants_file(&l->row)) {
		if (!l->is_asked_again)
			return ERR_GONE;
		l->row.lost_ms = clock_wall_ms();
	}
	l->view = fd < 0 ? log_view_open_memory(logs, l->row.log,
			       l->row.log_len, l->row.ncommands, &caps) :
			   log_view_open(logs, fd, l->row.ncommands, &caps);
	/* What is kept of a long log has no place for both outputs in one. */
	if (l->row.digest != NULL && l->merge == RUN_APART &&
	    log_view_restore(l->view, l->row.digest, l->row.digest_len, &why) !=
		0)
		log_warn("run %llu: its log is walked: %s",
		    (unsigned long long)l->row.id, why.msg);
	return 0;
}

static void ask_row(struct lookup *l);

static void
row_cb(int rc, const struct store_run *row, const struct err *why, void *arg)
{
	struct lookup *l = arg;
	struct lookup_found f;
	struct err e;

	l->getting = NULL;
	if (rc != 0) {
		l->cb(rc, NULL, why, l->arg);
		return;
	}
	store_run_clear(&l->row);
	store_run_copy(&l->row, row);
	rc = open_view(l, &e);
	if (rc == ERR_GONE) { /* it may have been evicted since it was read */
		l->is_asked_again = true;
		ask_row(l);
		return;
	}
	if (rc != 0) {
		l->cb(e.code, NULL, &e, l->arg);
		return;
	}
	f = (struct lookup_found){NULL, &l->row, l->view};
	l->cb(0, &f, NULL, l->arg);
}

static void
ask_row(struct lookup *l)
{
	l->getting = store_run_get(core_store(l->core), l->tenant, &l->uuid,
	    l->artifacts_from, row_cb, l);
}

int
lookup_check_output(const struct lookup_found *f, struct err *e)
{
	if (f->row->spool_bytes <= STORE_INLINE_MAX)
		return 0;
	if (f->row->lost_ms != 0)
		return err_set(e, ERR_OUTPUT_LOST,
		    "the output of this run is lost: the server's disk lost "
		    "its power, or failed, before it had all of it; how it "
		    "ended is still known: run it again");
	if (f->row->evicted_ms == 0)
		return 0;
	return err_set(e, ERR_GONE,
	    "the output of this run was given up for newer runs' "
	    "(HISTORY_MAX_MB, DISK_RESERVE_MB): how it ended is still known");
}

static struct lookup *
open_as(struct core *c, const struct principal *who, const struct uuid *run,
    const struct lookup *how, lookup_cb cb, void *arg)
{
	struct lookup *l = xcalloc(1, sizeof(*l));
	struct run *r = runs_find_uuid(core_runs(c), who->tenant, run);

	l->core = c;
	l->cb = cb;
	l->arg = arg;
	l->artifacts_from = how->artifacts_from;
	l->merge = how->merge;
	if (r != NULL) {
		l->run = run_ref(r);
		l->later = timer_new(core_base(c), live_cb, l);
		timer_set_ms(l->later, 0);
	} else {
		l->tenant = who->tenant;
		l->uuid = *run;
		ask_row(l);
	}
	return l;
}

struct lookup *
lookup_open(struct core *c, const struct principal *who, const struct uuid *run,
    uint32_t artifacts_from, lookup_cb cb, void *arg)
{
	const struct lookup how = {
	    .artifacts_from = artifacts_from, .merge = RUN_APART};

	return open_as(c, who, run, &how, cb, arg);
}

struct lookup *
lookup_open_merged(struct core *c, const struct principal *who,
    const struct uuid *run, lookup_cb cb, void *arg)
{
	const struct lookup how = {.merge = RUN_MERGED};

	return open_as(c, who, run, &how, cb, arg);
}
