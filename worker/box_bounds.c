#include "worker/box_bounds.h"

#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"

struct box_bounds {
	struct backend *backend;
	struct box_bounds_line *line;
	char *name;
	struct backend_handle handle;
	uint64_t own_nano_cpus;
	struct backend_bounds want;
	bool is_asked;   /* an answer is to come */
	bool is_due;     /* want is newer than what was asked */
	bool is_left;    /* freed when the answer has come */
	bool is_failing; /* and the log has it */
	bool is_waiting;
	TAILQ_ENTRY(box_bounds) link; /* while it waits */
	struct timer *again;
	uint32_t retry_ms; /* the next one */
};

static void bounds_ask(struct box_bounds *b);
static void line_move(struct box_bounds_line *l);

static void
again_cb(void *arg)
{
	bounds_ask(arg);
}

void
box_bounds_line_init(struct box_bounds_line *l)
{
	l->asked = 0;
	TAILQ_INIT(&l->waiting);
}

struct box_bounds *
box_bounds_new(struct event_base *base, struct backend *backend,
    struct box_bounds_line *line, const char *name)
{
	struct box_bounds *b = xcalloc(1, sizeof(*b));

	b->backend = backend;
	b->line = line;
	b->name = xstrdup(name);
	b->again = timer_new(base, again_cb, b);
	b->retry_ms = BOX_BOUNDS_RETRY_MS;
	return b;
}

void
box_bounds_free(struct box_bounds *b)
{
	if (b == NULL)
		return;
	if (b->is_waiting)
		TAILQ_REMOVE(&b->line->waiting, b, link);
	b->is_waiting = false;
	timer_free(b->again);
	b->again = NULL;
	b->is_left = true;
	if (b->is_asked)
		return;
	free(b->name);
	free(b);
}

void
box_bounds_own(struct box_bounds *b, uint64_t nano_cpus)
{
	b->own_nano_cpus = nano_cpus;
}

static void
tell_failure(struct box_bounds *b, const char *why)
{
	static struct log_limit limit;

	if (b->is_failing)
		log_debug("box %s: its share of the host is still not set: %s",
		    b->name, why);
	else
		log_warn_limited(&limit,
		    "box %s: its share of the host is not set, and tried "
		    "again: %s",
		    b->name, why);
	b->is_failing = true;
}

static void
retry(struct box_bounds *b)
{
	timer_set_ms(b->again, b->retry_ms);
	b->retry_ms = b->retry_ms * 2 < BOX_BOUNDS_RETRY_MAX_MS ?
	    b->retry_ms * 2 :
	    BOX_BOUNDS_RETRY_MAX_MS;
}

static void
asked_cb(int rc, const struct err *why, void *arg)
{
	struct box_bounds *b = arg;
	struct box_bounds_line *line = b->line;

	b->is_asked = false;
	line->asked--;
	if (b->is_left) {
		box_bounds_free(b);
	} else if (rc != 0) {
		if (rc != ERR_WRONG_STATE)
			tell_failure(b, why->msg);
		retry(b);
	} else {
		b->is_failing = false;
		if (b->is_due)
			bounds_ask(b);
	}
	line_move(line);
}

static void
bounds_send(struct box_bounds *b)
{
	struct backend_bounds bounds = b->want;

	if (b->own_nano_cpus != 0 &&
	    (bounds.nano_cpus == 0 || bounds.nano_cpus > b->own_nano_cpus))
		bounds.nano_cpus = b->own_nano_cpus;
	b->is_asked = true;
	b->is_due = false;
	b->line->asked++;
	b->backend->ops->set_bounds(
	    b->backend, &b->handle, &bounds, asked_cb, b);
}

static void
line_move(struct box_bounds_line *l)
{
	struct box_bounds *b;

	while (l->asked < BOX_BOUNDS_ASKED_MAX &&
	    (b = TAILQ_FIRST(&l->waiting)) != NULL) {
		TAILQ_REMOVE(&l->waiting, b, link);
		b->is_waiting = false;
		bounds_send(b);
	}
}

static void
bounds_ask(struct box_bounds *b)
{
	if (!b->is_waiting)
		TAILQ_INSERT_TAIL(&b->line->waiting, b, link);
	b->is_waiting = true;
	line_move(b->line);
}

void
box_bounds_set(struct box_bounds *b, const struct backend_handle *h,
    const struct backend_bounds *want)
{
	b->handle = *h;
	b->want = *want;
	b->is_due = true;
	timer_stop(b->again);
	b->retry_ms = BOX_BOUNDS_RETRY_MS;
	if (!b->is_asked && backend_can(b->backend, BACKEND_CAN_BOUND))
		bounds_ask(b);
}
