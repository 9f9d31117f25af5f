#include "supervisor/service/internal.h"

#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/service/args.h"

static void
run_name(struct run *r)
{
	struct err e;

	LIST_REMOVE(r, fresh_link);
	r->named = true;
	if (spool_log_name(r->service->spool, r->spool_fd, &r->row.uuid, &e) ==
	    0)
		return;
	log_warn("run %llu: %s", (unsigned long long)r->row.id, e.msg);
	free(r->row.error);
	r->row.error = xstrdup(e.msg);
	if (r->phase == RUN_WAITING || r->phase == RUN_SENT)
		run_cancel(r, RUNLOG_INTERNAL);
}

void
run_name_fresh(struct service *s, struct run *but)
{
	struct run *r, *next;

	for (r = LIST_FIRST(&s->fresh); r != NULL; r = next) {
		next = LIST_NEXT(r, fresh_link);
		if (r != but)
			run_name(r);
	}
}

/* The log of a new run, without a name while somebody waits for its end. */
int
run_open_log(
    struct service *s, const struct run_request *q, bool *named, struct err *e)
{
	int fd = ERR_WRONG_STATE;

	if (q->await)
		fd = spool_log_fresh(s->spool, e);
	*named = fd == ERR_WRONG_STATE;
	return *named ? spool_log_create(s->spool, &q->uuid, e) : fd;
}

void
run_keep_log(struct run *r)
{
	const struct timeval tv = {0, RUN_NAME_MS * 1000};
	struct service *s = r->service;

	if (r->named)
		return;
	if (LIST_EMPTY(&s->fresh))
		(void)evtimer_add(s->name_fresh, &tv);
	LIST_INSERT_HEAD(&s->fresh, r, fresh_link);
}

struct log_source
run_log_source(const struct run *r)
{
	struct log_source l = {r->spool_fd, NULL, r->length};

	return l;
}
