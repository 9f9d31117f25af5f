#include "worker/box_asks.h"

#include <errno.h>
#include <sys/queue.h>

#include "common/agent_ask.h"
#include "common/xmalloc.h"

struct box_asks_item {
	struct box_asks *in;
	uint64_t number;
	struct peer_chan *chan;
	struct buf answer;
	LIST_ENTRY(box_asks_item) link;
};

struct box_asks {
	struct box_asks_host *host;
	uint64_t sandbox;
	struct peer *peer; /* NULL: away */
	uint32_t version;  /* of the link, that it speaks */
	uint32_t count;
	LIST_HEAD(, box_asks_item) list;
};

/* The version of the link from which on agents know a kind. */
static const uint8_t kind_since[ASK_KINDS] = {
    [ASK_LEFT_LIST] = FRAME_VERSION_OLDEST,
    [ASK_LEFT_KILL] = FRAME_VERSION_OLDEST};

struct box_asks *
box_asks_new(struct box_asks_host *host, uint64_t sandbox)
{
	struct box_asks *as = xcalloc(1, sizeof(*as));

	as->host = host;
	as->sandbox = sandbox;
	LIST_INIT(&as->list);
	return as;
}

static void
answer(const struct box_asks *as, uint64_t number, enum msg_ask_end end)
{
	msg_send_answer(*as->host->front,
	    &(struct msg_answer){.id = as->sandbox, .ask = number, .end = end});
}

static void
item_free(struct box_asks_item *a)
{
	LIST_REMOVE(a, link);
	a->in->count--;
	a->in->host->open--;
	buf_clear(&a->answer);
	free(a);
}

void
box_asks_free(struct box_asks *as)
{
	struct box_asks_item *a;

	while ((a = LIST_FIRST(&as->list)) != NULL) {
		answer(as, a->number, MSG_ASK_END_GONE);
		peer_leave(a->chan);
		item_free(a);
	}
	free(as);
}

/* ---- its channel */

static int
on_data(const uint8_t *p, size_t n, void *arg, struct err *e)
{
	struct box_asks_item *a = arg;

	/* peer.c has checked the credit, which is as much as fits. */
	return buf_append(&a->answer, p, n) == 0 ?
	    0 :
	    err_set(e, ERR_PROTO, "an answer of %zu bytes more", n);
}

static void
on_close(int code, const char *text, void *arg)
{
	struct box_asks_item *a = arg;
	struct msg_answer m = {.id = a->in->sandbox,
	    .ask = a->number,
	    .end = code == ENOSYS ? MSG_ASK_END_TOO_OLD : MSG_ASK_END_ANSWERED,
	    .error = (uint32_t)code};

	(void)text;
	if (code == 0)
		m.bytes =
		    (struct span){buf_data(&a->answer), buf_len(&a->answer)};
	msg_send_answer(*a->in->host->front, &m);
	item_free(a);
}

static void
on_lost(void *arg)
{
	struct box_asks_item *a = arg;

	answer(a->in, a->number, MSG_ASK_END_CUT);
	item_free(a);
}

static const struct peer_chan_ops ask_ops = {
    .on_data = on_data, .on_close = on_close, .on_lost = on_lost};

/* ---- from the box and the front */

void
box_asks_attach(struct box_asks *as, struct peer *p, uint32_t version)
{
	as->peer = p;
	as->version = version;
}

void
box_asks_detach(struct box_asks *as)
{
	as->peer = NULL;
}

static void
ask_agent(struct box_asks *as, const struct msg_ask *m)
{
	struct box_asks_item *a = xcalloc(1, sizeof(*a));

	a->in = as;
	a->number = m->ask;
	buf_init(&a->answer, ASK_ANSWER_MAX);
	LIST_INSERT_HEAD(&as->list, a, link);
	as->count++;
	as->host->open++;
	a->chan = peer_open_ask(as->peer,
	    (struct frame_open_ask){.kind = m->kind, .arguments = m->arguments},
	    &ask_ops, a);
}

int
box_asks_start(struct box_asks *as, const struct msg_ask *m, struct err *e)
{
	if (m->kind >= ASK_KINDS)
		return err_set(e, ERR_PROTO, "a question of kind %u", m->kind);
	if (as->peer == NULL || as->count >= BOX_ASKS_MAX ||
	    as->host->open >= BOX_ASKS_WORKER_MAX)
		answer(as, m->ask, MSG_ASK_END_NOT_ASKED);
	else if (as->version < kind_since[m->kind])
		answer(as, m->ask, MSG_ASK_END_TOO_OLD);
	else
		ask_agent(as, m);
	return 0;
}

void
box_asks_cancel(struct box_asks *as, uint64_t number)
{
	struct box_asks_item *a;

	LIST_FOREACH (a, &as->list, link)
		if (a->number == number)
			break;
	if (a == NULL)
		return;
	peer_close(a->chan);
	item_free(a);
}
