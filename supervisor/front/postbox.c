#include "supervisor/front/postbox.h"

#include "common/exit.h"
#include "common/log.h"
#include "common/msg/chan.h"
#include "common/msg/msg_gen.h"
#include "common/timer.h"
#include "common/xmalloc.h"

struct letter { /* a place; number 0: it is free */
	uint64_t number;
	postbox_cb done; /* NULL: nobody wants to know */
	void *arg;
};

struct postbox {
	struct event_base *base;
	struct ipc_chan *chan; /* NULL: the courier is away */
	struct timer *room;
	void (*on_room)(void *arg);
	void *arg;
	uint64_t last; /* number */
	size_t count;
	struct letter letters[POSTBOX_MAX];
};

static struct letter *
find(struct postbox *b, uint64_t number)
{
	for (size_t i = 0; i < POSTBOX_MAX; i++)
		if (b->letters[i].number == number)
			return &b->letters[i];
	return NULL;
}

static void
answer(struct postbox *b, struct letter *l, const struct postbox_answer *a)
{
	postbox_cb done = l->done;
	void *arg = l->arg;

	*l = (struct letter){0};
	b->count--;
	timer_set_ms(b->room, 0);
	if (done != NULL)
		done(a, arg);
}

/* ---- the courier */

static int
on_posted(void *arg, const struct msg_posted *m, struct err *e)
{
	const struct postbox_answer a = {.status = m->status,
	    .retry_after_s = m->retry_after_s,
	    .why = m->why};
	struct postbox *b = arg;
	struct letter *l = m->id == 0 ? NULL : find(b, m->id);

	if (l == NULL)
		return err_set(e, ERR_PROTO, "an answer to no request: %llu",
		    (unsigned long long)m->id);
	answer(b, l, &a);
	return 0;
}

static const struct msg_courier_to_front handlers = {.on_posted = on_posted};

static int
message_cb(struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	(void)c;
	return msg_dispatch_courier_to_front(&handlers, m, arg, e);
}

static void
cut_all(struct postbox *b)
{
	const struct postbox_answer a = {
	    .why = "what sends it ended while it was under way"};

	for (size_t i = 0; i < POSTBOX_MAX; i++)
		if (b->letters[i].number != 0)
			answer(b, &b->letters[i], &a);
}

static void
close_cb(struct ipc_chan *c, const struct err *why, void *arg)
{
	struct postbox *b = arg;

	if (why->code != 0)
		log_warn("courier: channel closed: %s", why->msg);
	ipc_chan_free(c);
	b->chan = NULL;
	cut_all(b);
}

static const struct ipc_ops chan_ops = {message_cb, close_cb, NULL};

void
postbox_attach(struct postbox *b, int fd)
{
	ipc_chan_free(b->chan);
	b->chan = NULL;
	cut_all(b);
	b->chan = ipc_chan_new(b->base, fd, "courier", &chan_ops, b);
	timer_set_ms(b->room, 0);
}

/* ---- sending */

size_t
postbox_room(const struct postbox *b)
{
	return b->chan == NULL ? 0 : POSTBOX_MAX - b->count;
}

static uint64_t
put(struct postbox *b, postbox_cb done, void *arg)
{
	struct letter *l = find(b, 0);

	if (l == NULL)
		fatal(EXIT_BUG, "no room in the postbox");
	*l = (struct letter){.number = ++b->last, .done = done, .arg = arg};
	b->count++;
	return b->last;
}

uint64_t
postbox_put_hook(struct postbox *b, const struct msg_post_hook *hook,
    postbox_cb done, void *arg)
{
	struct msg_post_hook m = *hook;

	m.id = put(b, done, arg);
	msg_send_post_hook(b->chan, &m);
	return m.id;
}

uint64_t
postbox_put_spans(
    struct postbox *b, const struct span *body, postbox_cb done, void *arg)
{
	uint64_t number = put(b, done, arg);

	msg_send_post_spans(
	    b->chan, &(struct msg_post_spans){.id = number, .body = *body});
	return number;
}

void
postbox_forget(struct postbox *b, uint64_t number)
{
	struct letter *l = number == 0 ? NULL : find(b, number);

	if (l != NULL)
		l->done = NULL;
}

/* ---- life */

static void
room_cb(void *arg)
{
	struct postbox *b = arg;

	if (postbox_room(b) > 0)
		b->on_room(b->arg);
}

struct postbox *
postbox_new(struct event_base *base, void (*on_room)(void *arg), void *arg)
{
	struct postbox *b = xcalloc(1, sizeof(*b));

	b->base = base;
	b->on_room = on_room;
	b->arg = arg;
	b->room = timer_new(base, room_cb, b);
	return b;
}

void
postbox_free(struct postbox *b)
{
	if (b == NULL)
		return;
	ipc_chan_free(b->chan);
	timer_free(b->room);
	free(b);
}
