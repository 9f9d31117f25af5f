#include "supervisor/core/asks.h"

#include <errno.h>
#include <sys/queue.h>

#include "common/clock.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/core/fleet.h"
#include "supervisor/core/sandbox.h"

#define AGAIN_MS 200 /* while it cannot be asked */
#define LOOK_MS 1000 /* whether its sandbox is still there */

struct ask {
	struct asks *in;
	uint64_t number;
	struct ask_wish wish;
	uint64_t tenant; /* the sandbox's */
	ask_cb cb;
	void *arg;
	uint64_t deadline_ms;
	bool is_sent; /* and not answered */
	uint32_t worker;
	struct timer *timer;
	LIST_ENTRY(ask) link;
};

struct asks {
	struct event_base *base;
	struct fleet *fleet;
	struct sandboxes *sandboxes;
	uint64_t last; /* number given */
	LIST_HEAD(, ask) list;
};

struct asks *
asks_new(
    struct event_base *base, struct fleet *fleet, struct sandboxes *sandboxes)
{
	struct asks *as = xcalloc(1, sizeof(*as));

	as->base = base;
	as->fleet = fleet;
	as->sandboxes = sandboxes;
	LIST_INIT(&as->list);
	return as;
}

void
asks_free(struct asks *as)
{
	if (as == NULL)
		return;
	while (!LIST_EMPTY(&as->list))
		ask_close(LIST_FIRST(&as->list));
	free(as);
}

void
ask_close(struct ask *a)
{
	struct ipc_chan *chan;

	if (a == NULL)
		return;
	chan = a->is_sent ? fleet_chan(a->in->fleet, a->worker) : NULL;
	if (chan != NULL)
		msg_send_ask_cancel(chan,
		    &(struct msg_ask_cancel){.id = a->wish.sandbox,
			.tenant = a->tenant,
			.ask = a->number});
	LIST_REMOVE(a, link);
	timer_free(a->timer);
	free(a);
}

static void
ask_end(struct ask *a, int rc, const struct span *answer, const struct err *why)
{
	ask_cb cb = a->cb;
	void *arg = a->arg;

	ask_close(a);
	cb(rc, answer, why, arg);
}

static void
ask_fail(struct ask *a, int code, const char *text)
{
	struct err e;

	ask_end(a, err_set(&e, code, "%s", text), NULL, &e);
}

/* ---- asking */

static void
ask_send(struct ask *a, struct ipc_chan *chan, uint32_t worker)
{
	a->is_sent = true;
	a->worker = worker;
	msg_send_ask(chan,
	    &(struct msg_ask){.id = a->wish.sandbox,
		.tenant = a->tenant,
		.ask = a->number,
		.kind = (uint8_t)a->wish.kind,
		.arguments = a->wish.arguments});
}

static void
turn_cb(void *arg)
{
	struct ask *a = arg;
	const struct sandbox *sb =
	    sandboxes_find(a->in->sandboxes, a->wish.sandbox);
	struct ipc_chan *chan;

	if (sb == NULL || !sandbox_state_is_live(sb->state)) {
		ask_fail(a, ERR_LOST, "the sandbox is gone");
		return;
	}
	if (clock_mono_ms() >= a->deadline_ms) {
		ask_fail(a, ERR_BACKEND,
		    "the sandbox does not answer: try again in a moment");
		return;
	}
	chan = a->is_sent ? NULL : fleet_chan(a->in->fleet, sb->worker);
	if (chan != NULL)
		ask_send(a, chan, sb->worker);
	timer_set_ms(a->timer, a->is_sent ? LOOK_MS : AGAIN_MS);
}

static int
check_open(const struct asks *as, uint64_t tenant, struct err *e)
{
	const struct ask *a;
	uint32_t all = 0, own = 0;

	LIST_FOREACH (a, &as->list, link) {
		all++;
		own += a->tenant == tenant;
	}
	if (all < ASKS_OPEN_MAX && own < ASKS_TENANT_MAX)
		return 0;
	return err_set(e, ERR_LIMIT,
	    "too many questions to sandboxes wait for an answer: try again");
}

struct ask *
ask_open(struct asks *as, const struct ask_wish *wish, ask_cb cb, void *arg,
    struct err *e)
{
	const struct sandbox *sb = sandboxes_find(as->sandboxes, wish->sandbox);
	uint64_t tenant = sb == NULL ? 0 : sb->owner->tenant.n;
	struct ask *a;

	if (check_open(as, tenant, e) != 0)
		return NULL;
	a = xcalloc(1, sizeof(*a) + wish->arguments.n);
	a->in = as;
	a->number = ++as->last;
	a->wish = *wish;
	a->tenant = tenant;
	if (wish->arguments.n > 0)
		memcpy(a + 1, wish->arguments.p, wish->arguments.n);
	a->wish.arguments.p = (uint8_t *)(a + 1);
	a->cb = cb;
	a->arg = arg;
	a->deadline_ms = clock_mono_ms() + ASK_PATIENCE_MS;
	a->timer = timer_new(as->base, turn_cb, a);
	LIST_INSERT_HEAD(&as->list, a, link);
	timer_set_ms(a->timer, 0);
	return a;
}

/* ---- the answer */

static void
ask_again(struct ask *a)
{
	a->is_sent = false;
	timer_set_ms(a->timer, AGAIN_MS);
}

/* It was asked, and what came of it is not known. */
static void
ask_cut(struct ask *a)
{
	a->is_sent = false;
	if (a->wish.repeat == ASK_AGAIN)
		ask_again(a);
	else
		ask_fail(a, ERR_WRONG_STATE,
		    "the link to the sandbox was lost in the middle of it: "
		    "look what it did before you ask again");
}

static void
ask_answered(struct ask *a, const struct msg_answer *m)
{
	struct err e;

	if (m->error == 0)
		ask_end(a, 0, &m->bytes, NULL);
	else if (m->error == ESRCH || m->error == ENOENT)
		ask_fail(a, ERR_NOTFOUND, "the sandbox has no such thing");
	else
		ask_end(a,
		    err_set(&e, ERR_BACKEND, "the sandbox refuses: %s",
			strerror((int)m->error)),
		    NULL, &e);
}

void
asks_worker_went(struct asks *as, uint32_t worker)
{
	struct ask *a, *next;

	for (a = LIST_FIRST(&as->list); a != NULL; a = next) {
		next = LIST_NEXT(a, link);
		if (a->is_sent && a->worker == worker)
			ask_cut(a);
	}
}

static struct ask *
ask_find(const struct asks *as, const struct msg_answer *m)
{
	struct ask *a;

	LIST_FOREACH (a, &as->list, link)
		if (a->is_sent && a->number == m->ask &&
		    a->wish.sandbox == m->id)
			break;
	return a;
}

void
asks_on_answer(struct asks *as, const struct msg_answer *m)
{
	struct ask *a = ask_find(as, m);

	if (a == NULL)
		return; /* its cancel and this crossed */
	a->is_sent = false;
	switch (m->end) {
	case MSG_ASK_END_ANSWERED:
		ask_answered(a, m);
		break;
	case MSG_ASK_END_NOT_ASKED:
		ask_again(a);
		break;
	case MSG_ASK_END_CUT:
		ask_cut(a);
		break;
	case MSG_ASK_END_GONE:
		ask_fail(a, ERR_LOST, "the sandbox is gone");
		break;
	case MSG_ASK_END_TOO_OLD:
		ask_fail(a, ERR_WRONG_STATE,
		    "the sandbox was made by an earlier version of the server, "
		    "which cannot do this: restart the sandbox");
		break;
	}
}
