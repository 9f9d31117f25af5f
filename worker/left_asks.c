#include "worker/left_asks.h"

#include <errno.h>
#include <sys/queue.h>

#include "common/leftlist.h"
#include "common/xmalloc.h"

struct left_asks_item {
	struct left_asks *in;
	uint64_t number;
	bool is_done; /* what asking twice does is what asking once does */
	struct peer_chan *chan;
	struct buf list;
	LIST_ENTRY(left_asks_item) link;
};

struct left_asks {
	struct ipc_chan **front;
	uint64_t sandbox;
	struct peer *peer; /* NULL: away */
	uint32_t count;    /* asks */
	uint32_t told;     /* SANDBOX_LEFT said so */
	LIST_HEAD(, left_asks_item) list;
};

struct left_asks *
left_asks_new(struct ipc_chan **front, uint64_t sandbox)
{
	struct left_asks *la = xcalloc(1, sizeof(*la));

	la->front = front;
	la->sandbox = sandbox;
	LIST_INIT(&la->list);
	return la;
}

static void
answer(const struct left_asks *la, uint64_t number, int code, const char *text)
{
	msg_send_left_answer(*la->front,
	    &(struct msg_left_answer){
		.id = la->sandbox, .ask = number, .code = code, .text = text});
}

static void
ask_free(struct left_asks_item *a)
{
	LIST_REMOVE(a, link);
	a->in->count--;
	buf_clear(&a->list);
	free(a);
}

void
left_asks_free(struct left_asks *la)
{
	struct left_asks_item *a;

	while ((a = LIST_FIRST(&la->list)) != NULL) {
		answer(la, a->number, ERR_LOST, "the sandbox is gone");
		peer_leave(a->chan);
		ask_free(a);
	}
	free(la);
}

/* ---- its channel */

static int
on_data(const uint8_t *p, size_t n, void *arg, struct err *e)
{
	struct left_asks_item *a = arg;

	/* No more than was granted, which is no more than fits. */
	return buf_append(&a->list, p, n) == 0 ?
	    0 :
	    err_set(e, ERR_PROTO, "a list of %zu bytes", n);
}

static void
on_close(int code, const char *text, void *arg)
{
	struct left_asks_item *a = arg;

	(void)text;
	if (code == ESRCH)
		answer(a->in, a->number, ERR_NOTFOUND, "no such process");
	else if (code != 0)
		answer(a->in, a->number, ERR_BACKEND,
		    "the sandbox gives no answer just now");
	else
		msg_send_left_answer(*a->in->front,
		    &(struct msg_left_answer){.id = a->in->sandbox,
			.ask = a->number,
			.text = "",
			.list = {buf_data(&a->list), buf_len(&a->list)}});
	ask_free(a);
}

static void
on_lost(void *arg)
{
	struct left_asks_item *a = arg;

	answer(a->in, a->number, a->is_done ? ERR_BACKEND : ERR_WRONG_STATE,
	    "the link to the sandbox was lost in the middle of it: list what "
	    "is left before you ask again");
	ask_free(a);
}

static const struct peer_chan_ops ask_ops = {
    .on_data = on_data, .on_close = on_close, .on_lost = on_lost};

/* ---- from the box and the front */

void
left_asks_attach(struct left_asks *la, struct peer *p)
{
	la->peer = p;
	left_asks_on_turn(la);
}

void
left_asks_detach(struct left_asks *la)
{
	la->peer = NULL;
}

void
left_asks_start(struct left_asks *la, const struct msg_left_ask *m)
{
	struct left_asks_item *a;

	if (la->peer == NULL || la->count >= LEFT_ASKS_MAX) {
		answer(la, m->ask, ERR_BACKEND,
		    "the sandbox gives no answer just now: try again");
		return;
	}
	a = xcalloc(1, sizeof(*a));
	a->in = la;
	a->number = m->ask;
	a->is_done = m->action == MSG_LEFT_ACTION_LIST || m->process == 0;
	buf_init(&a->list, LEFTLIST_BYTES_MAX);
	LIST_INSERT_HEAD(&la->list, a, link);
	la->count++;
	a->chan = peer_open_left(la->peer,
	    (struct frame_open_left){
		.action = m->action == MSG_LEFT_ACTION_KILL ?
		    FRAME_LEFT_ACTION_KILL :
		    FRAME_LEFT_ACTION_LIST,
		.run = m->run,
		.process = m->process},
	    &ask_ops, a);
}

void
left_asks_refuse(struct ipc_chan *front, const struct msg_left_ask *m)
{
	msg_send_left_answer(front,
	    &(struct msg_left_answer){.id = m->id,
		.ask = m->ask,
		.code = ERR_LOST,
		.text = "the sandbox is gone"});
}

void
left_asks_on_turn(struct left_asks *la)
{
	uint32_t count;

	if (la->peer == NULL || !peer_take_left(la->peer, &count) ||
	    (count == 0 && la->told == 0))
		return;
	la->told = count;
	msg_send_sandbox_left(*la->front,
	    &(struct msg_sandbox_left){.id = la->sandbox, .count = count});
}
