#include "supervisor/tools/progress.h"

#include "common/buf.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/core/bus.h"
#include "supervisor/core/run.h"
#include "supervisor/tools/progress_text.h"

struct progress {
	struct run *run;
	struct call *call;
	struct bus_member member;
	struct timer *timer;
	struct log_request *request;
	uint64_t (*told)[2]; /* bytes of each command's stdout and stderr */
	bool is_due;         /* it grew while the last digest was made */
};

static void
digest_cb(int rc, const struct log_digest *d, const struct err *why, void *arg)
{
	struct progress *p = arg;
	struct call_progress told;
	struct buf text;

	(void)why;
	p->request = NULL;
	if (rc != 0)
		return;
	buf_init(&text, 0); /* progress_text.h has one */
	told.done = progress_text_add(&text, d, p->told);
	if (buf_len(&text) > 0) {
		AUTO(auto_free)
		char *copy =
		    xstrndup((const char *)buf_data(&text), buf_len(&text));

		told.text = copy;
		call_progress(p->call, &told);
	}
	buf_clear(&text);
	if (p->is_due)
		timer_set_ms(p->timer, PROGRESS_EVERY_MS);
}

static void
look(struct progress *p)
{
	p->is_due = false;
	log_view_digest(
	    run_view(p->run), p->run->length, digest_cb, p, &p->request);
}

static void
timer_cb(void *arg)
{
	look(arg);
}

static void
on_bus(const struct bus_event *ev, void *arg)
{
	struct progress *p = arg;

	if (ev->kind != BUS_RUN_GREW)
		return;
	p->is_due = true;
	if (p->request == NULL && !timer_is_set(p->timer))
		timer_set_ms(p->timer, PROGRESS_EVERY_MS);
}

struct progress *
progress_new(struct event_base *base, struct run *run, struct call *call)
{
	struct progress *p = xcalloc(1, sizeof(*p));

	p->run = run;
	p->call = call;
	p->told = xcalloc(run->row.ncommands, sizeof(*p->told));
	p->timer = timer_new(base, timer_cb, p);
	bus_join(&run->bus, &p->member, on_bus, p);
	return p;
}

void
progress_free(struct progress *p)
{
	if (p == NULL)
		return;
	bus_leave(&p->run->bus, &p->member);
	log_request_cancel(p->request);
	timer_free(p->timer);
	free(p->told);
	free(p);
}
