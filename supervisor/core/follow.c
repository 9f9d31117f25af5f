/*
 * follow.c - a reader of a run's log
 *
 *	open      the run is looked up; an offset in the middle is tried
 *	resting   until follow_next
 *	asked     the log is being read
 *	waiting   the log has no more now; the run's bus wakes it
 *	over      on_next said so
 */
#include "supervisor/core/follow.h"

#include "common/xmalloc.h"
#include "supervisor/core/core.h"
#include "supervisor/core/lookup.h"
#include "supervisor/core/run.h"

enum follow_state {
	FOLLOW_OPENING,
	FOLLOW_RESTING,
	FOLLOW_ASKED,
	FOLLOW_WAITING,
	FOLLOW_OVER
};

struct follow {
	const struct follow_ops *ops;
	void *arg;
	struct lookup *lookup;
	struct lookup_found found;
	struct bus_member member;
	struct log_request *request; /* under way, of a view that others use */
	enum follow_state state;
	struct log_at at;
	size_t max;
	bool is_live; /* its end was not on disk when it was looked at last */
};

/* Before each look, so that nothing that came in between is missed. */
static uint64_t
log_length(struct follow *f)
{
	const struct run *r = f->found.run;

	f->is_live = r != NULL && r->phase != RUN_OVER;
	return r != NULL ? r->length : UINT64_MAX;
}

static void ask(struct follow *f);

static void
on_bus(const struct bus_event *ev, void *arg)
{
	struct follow *f = arg;

	if (f->state == FOLLOW_WAITING &&
	    (ev->kind == BUS_RUN_GREW || ev->kind == BUS_RUN_ENDED))
		ask(f);
}

static void
records_cb(
    int rc, const struct log_records *records, const struct err *why, void *arg)
{
	struct follow *f = arg;

	f->request = NULL;
	if (rc != 0) {
		f->state = FOLLOW_OVER;
		f->ops->on_next(f, NULL, why, f->arg);
	} else if (records->n > 0) {
		f->at = (struct log_at){records->next, records->skip};
		f->state = FOLLOW_RESTING;
		f->ops->on_next(f, records, NULL, f->arg);
	} else if (f->is_live) {
		f->state = FOLLOW_WAITING;
		/* It may have grown, or ended, while it was read. */
		if (f->found.run->length > f->at.offset ||
		    f->found.run->phase == RUN_OVER)
			ask(f);
	} else {
		f->state = FOLLOW_OVER;
		f->ops->on_next(f, NULL, NULL, f->arg);
	}
}

static void
ask(struct follow *f)
{
	f->state = FOLLOW_ASKED;
	log_view_read(f->found.view, &f->at, log_length(f), f->max, records_cb,
	    f, &f->request);
}

void
follow_go_back(struct follow *f, const struct log_at *at)
{
	f->at = *at;
}

void
follow_next(struct follow *f, size_t max)
{
	f->max = max;
	ask(f);
}

/* ---- opening */

static void
opened(struct follow *f, int rc, const struct err *why)
{
	f->state = FOLLOW_RESTING;
	f->ops->on_open(f, rc, why, f->arg);
}

static void
no_record(struct follow *f)
{
	struct err e;
	int rc = err_set(&e, ERR_INVAL, "there is no record at %llu",
	    (unsigned long long)f->at.offset);

	opened(f, rc, &e);
}

static void
tried_cb(
    int rc, const struct log_records *records, const struct err *why, void *arg)
{
	struct follow *f = arg;

	(void)records;
	f->request = NULL;
	if (rc == ERR_PROTO)
		no_record(f);
	else
		opened(f, rc, why);
}

static void
found_cb(
    int rc, const struct lookup_found *found, const struct err *why, void *arg)
{
	struct follow *f = arg;
	const struct run *r;
	struct err e;

	if (rc == 0 && lookup_check_output(found, &e) != 0) {
		rc = e.code;
		why = &e;
	}
	if (rc != 0) {
		opened(f, rc, why);
		return;
	}
	f->found = *found;
	r = found->run;
	if (r != NULL)
		bus_join(&found->run->bus, &f->member, on_bus, f);
	if ((f->at.offset == 0 && f->at.skip == 0) ||
	    f->at.offset == FOLLOW_END)
		opened(f, 0, NULL);
	else if (f->at.offset >
	    (r != NULL ? r->length : found->row->spool_bytes))
		no_record(f);
	else
		log_view_read(found->view, &f->at, log_length(f), 1, tried_cb,
		    f, &f->request);
}

struct follow *
follow_open(struct core *c, const struct principal *who, const struct uuid *run,
    const struct log_at *at, const struct follow_ops *ops, void *arg)
{
	struct follow *f = xcalloc(1, sizeof(*f));

	f->ops = ops;
	f->arg = arg;
	f->at = *at;
	f->lookup = lookup_open(c, who, run, 0, found_cb, f);
	return f;
}

const struct store_run *
follow_row(const struct follow *f)
{
	return f->found.row;
}

void
follow_close(struct follow *f)
{
	if (f == NULL)
		return;
	log_request_cancel(f->request);
	if (f->found.run != NULL)
		bus_leave(&f->found.run->bus, &f->member);
	lookup_close(f->lookup);
	free(f);
}
