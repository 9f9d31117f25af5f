#include "supervisor/core/left_behind.h"

#include <sys/queue.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/core/fleet.h"
#include "supervisor/core/run_row.h"
#include "supervisor/core/sandbox.h"

#define AGAIN_MS 200    /* after a word that it cannot be reached */
#define SILENCE_MS 1000 /* the worker may have died with the question */

struct left_ask {
	struct left_behind *in;
	uint64_t number;
	struct left_wish wish;
	left_cb cb;
	void *arg;
	uint64_t deadline_ms;
	bool was_sent;
	struct timer *timer;
	LIST_ENTRY(left_ask) link;
};

struct left_behind {
	struct event_base *base;
	struct fleet *fleet;
	struct sandboxes *sandboxes;
	uint64_t last; /* number given */
	uint32_t count;
	LIST_HEAD(, left_ask) list;
};

struct left_behind *
left_behind_new(
    struct event_base *base, struct fleet *fleet, struct sandboxes *sandboxes)
{
	struct left_behind *lb = xcalloc(1, sizeof(*lb));

	lb->base = base;
	lb->fleet = fleet;
	lb->sandboxes = sandboxes;
	LIST_INIT(&lb->list);
	return lb;
}

void
left_behind_free(struct left_behind *lb)
{
	if (lb == NULL)
		return;
	while (!LIST_EMPTY(&lb->list))
		left_ask_close(LIST_FIRST(&lb->list));
	free(lb);
}

void
left_ask_close(struct left_ask *a)
{
	if (a == NULL)
		return;
	LIST_REMOVE(a, link);
	a->in->count--;
	timer_free(a->timer);
	free(a);
}

/* ---- its end */

static void
ask_fail(struct left_ask *a, int code, const char *text)
{
	left_cb cb = a->cb;
	void *arg = a->arg;
	struct err e;

	(void)err_set(&e, code, "%s", text);
	left_ask_close(a);
	cb(code, NULL, &e, arg);
}

static void
ask_done(struct left_ask *a, const struct leftlist *l)
{
	left_cb cb = a->cb;
	void *arg = a->arg;

	left_ask_close(a);
	cb(0, l, NULL, arg);
}

/* Its sandbox is gone, and all that was in it. */
static void
ask_moot(struct left_ask *a)
{
	static const struct leftlist nothing;

	if (a->wish.process != 0)
		ask_fail(a, ERR_NOTFOUND, "no such process");
	else
		ask_done(a, &nothing);
}

/* ---- asking */

static void
ask_send(
    struct left_ask *a, struct ipc_chan *chan, const struct principal *owner)
{
	/* Killing one twice would say that there is none. */
	if (a->was_sent && a->wish.process != 0) {
		timer_set_ms(a->timer, SILENCE_MS);
		return;
	}
	a->was_sent = true;
	msg_send_left_ask(chan,
	    &(struct msg_left_ask){.id = a->wish.sandbox,
		.tenant = owner->tenant.n,
		.ask = a->number,
		.action = a->wish.action,
		.run = a->wish.run,
		.process = a->wish.process});
	timer_set_ms(a->timer, SILENCE_MS);
}

static void
ask_cb(void *arg)
{
	struct left_ask *a = arg;
	struct left_behind *lb = a->in;
	const struct sandbox *sb =
	    sandboxes_find(lb->sandboxes, a->wish.sandbox);
	struct ipc_chan *chan;

	if (sb == NULL || !sandbox_state_is_live(sb->state)) {
		ask_moot(a);
		return;
	}
	if (clock_mono_ms() >= a->deadline_ms) {
		ask_fail(a, ERR_BACKEND,
		    "the sandbox does not answer: try again in a moment");
		return;
	}
	chan = fleet_chan(lb->fleet, sb->worker);
	if (chan != NULL)
		ask_send(a, chan, sb->owner);
	else
		timer_set_ms(a->timer, AGAIN_MS);
}

struct left_ask *
left_ask_open(struct left_behind *lb, const struct left_wish *wish, left_cb cb,
    void *arg, struct err *e)
{
	struct left_ask *a;

	if (lb->count >= LEFT_ASKS_OPEN_MAX) {
		(void)err_set(e, ERR_LIMIT,
		    "too many questions about processes wait for an answer: "
		    "try again");
		return NULL;
	}
	a = xcalloc(1, sizeof(*a));
	a->in = lb;
	a->number = ++lb->last;
	a->wish = *wish;
	a->cb = cb;
	a->arg = arg;
	a->deadline_ms = clock_mono_ms() + LEFT_ASK_MS;
	a->timer = timer_new(lb->base, ask_cb, a);
	LIST_INSERT_HEAD(&lb->list, a, link);
	lb->count++;
	timer_set_ms(a->timer, 0);
	return a;
}

/* ---- the answer */

static struct left_ask *
ask_find(const struct left_behind *lb, const struct msg_left_answer *m)
{
	struct left_ask *a;

	LIST_FOREACH (a, &lb->list, link)
		if (a->number == m->ask && a->wish.sandbox == m->id)
			break;
	return a;
}

static void
take_list(
    struct left_behind *lb, struct left_ask *a, const struct msg_left_answer *m)
{
	static struct leftlist l;
	struct sandbox *sb = sandboxes_find(lb->sandboxes, m->id);
	struct err e;

	/* The sandbox's word, not the worker's: it harms nobody else. */
	if (leftlist_decode(m->list.p, m->list.n, &l, &e) != 0) {
		log_warn("sandbox %llu: what is left behind: %s",
		    (unsigned long long)m->id, e.msg);
		ask_fail(a, ERR_BACKEND, "the sandbox's answer makes no sense");
		return;
	}
	if (sb != NULL)
		sandbox_on_left(sb, l.total);
	ask_done(a, &l);
}

int
left_behind_on_answer(
    struct left_behind *lb, const struct msg_left_answer *m, struct err *e)
{
	struct left_ask *a = ask_find(lb, m);

	(void)e;
	if (a == NULL)
		return 0; /* closed, or asked twice */
	switch (m->code) {
	case 0:
		take_list(lb, a, m);
		break;
	case ERR_LOST:
		ask_moot(a);
		break;
	case ERR_BACKEND:
		a->was_sent = false;
		timer_set_ms(a->timer, AGAIN_MS);
		break;
	default:
		ask_fail(a, m->code, m->text);
		break;
	}
	return 0;
}

void
left_behind_on_record(struct sandbox *sb, const struct span *record)
{
	struct runlog_header h;
	struct runlog_left left;
	struct err e;

	if (sb != NULL && run_row_parse(record, &h, &e) == 0 &&
	    h.type == RUNLOG_LEFT &&
	    runlog_parse_left(
		record->p + RUNLOG_HEADER_BYTES, h.length, &left, &e) == 0 &&
	    !left.killed)
		sandbox_on_left(sb, sb->left + left.count);
}
