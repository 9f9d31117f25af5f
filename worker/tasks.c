/*
 * A task is in three places: in its box's list, in its box's map by the UUID
 * that the agent knows it by, and in the worker's map by the number that the
 * front knows it by.  tasks_start puts it into all three, item_drop takes it
 * out of them, and nothing else does.
 *
 * When an agent comes it says which runs it has.  Each of ours is told so
 * (task_attach); one that is over here already is discarded there.  What the
 * agent has and nobody here knows is discarded as well, once the front has
 * told of all its runs (tasks_settled): stopped if it lives, and forgotten.
 */
#include "worker/tasks.h"

#include <errno.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "common/agent_ask.h"
#include "common/msg/msg_gen.h"
#include "common/xmalloc.h"

/* ---- questions */

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

/* ---- tasks */

struct tasks_item {
	struct tasks *in;
	struct task *task;
	struct copy_job copy;
	struct hash_entry by_number;
	struct hash_entry by_uuid;
	TAILQ_ENTRY(tasks_item) link;
};
TAILQ_HEAD(tasks_list, tasks_item);

struct tasks {
	const struct tasks_host *host;
	void (*on_overdue)(void *arg);
	void *arg;
	struct tasks_list list; /* as they were started */
	struct hashmap by_uuid;
	struct copies *copies;
	struct box_asks *asks;
	uint64_t sandbox;   /* the front's number of the box */
	uint32_t left_told; /* in the last SANDBOX_LEFT */
	struct peer *peer;  /* NULL: away */
	const struct peer_hello *hello;
	bool settled;
	bool begun; /* some agent was there, or may have been */
};

/* ---- finding */

static bool
is_uuid(const struct hash_entry *en, const void *key)
{
	const struct tasks_item *it =
	    HASH_OF(en, const struct tasks_item, by_uuid);

	return uuid_is_equal(&it->task->s.uuid, key);
}

static struct task *
find_task(const struct tasks *ts, const struct uuid *uuid)
{
	struct tasks_item *it = HASH_OBJECT(
	    hashmap_get(&ts->by_uuid, hashmap_key_uuid(uuid), is_uuid, uuid),
	    struct tasks_item, by_uuid);

	return it == NULL ? NULL : it->task;
}

const struct task_start *
tasks_find_run(const struct tasks *ts, const struct uuid *run)
{
	const struct task *t = find_task(ts, run);

	return t == NULL ? NULL : &t->s;
}

struct tasks_item *
tasks_find(const struct hashmap *by_number, uint64_t number)
{
	return HASH_OBJECT(
	    hashmap_get_u64(by_number, number), struct tasks_item, by_number);
}

const struct task_start *
tasks_item_start(const struct tasks_item *it)
{
	return &it->task->s;
}

static const struct peer_run *
find_known(const struct peer_hello *h, const struct uuid *uuid)
{
	for (uint32_t i = 0; h != NULL && i < h->nruns; i++)
		if (uuid_is_equal(&h->runs[i].uuid, uuid))
			return &h->runs[i];
	return NULL;
}

/* ---- life */

struct tasks *
tasks_new(const struct tasks_host *host, uint64_t sandbox, enum tasks_past past,
    void (*on_overdue)(void *), void *arg)
{
	struct tasks *ts = xcalloc(1, sizeof(*ts));

	ts->host = host;
	ts->on_overdue = on_overdue;
	ts->arg = arg;
	ts->begun = past == TASKS_MAY_HAVE_BEGUN;
	TAILQ_INIT(&ts->list);
	ts->copies = copies_new(host->task->base, host->front, host->limits);
	ts->asks = box_asks_new(host->asks, sandbox);
	ts->sandbox = sandbox;
	return ts;
}

static void
item_drop(struct tasks_item *it)
{
	struct tasks *ts = it->in;

	if (ts->copies != NULL)
		copies_drop(ts->copies, &it->copy);
	TAILQ_REMOVE(&ts->list, it, link);
	hashmap_del(&ts->by_uuid, &it->by_uuid);
	hashmap_del(ts->host->by_number, &it->by_number);
	task_free(it->task);
	free(it);
}

void
tasks_free(struct tasks *ts)
{
	struct tasks_item *it;

	box_asks_free(ts->asks);
	copies_free(ts->copies);
	ts->copies = NULL;
	while ((it = TAILQ_FIRST(&ts->list)) != NULL)
		item_drop(it);
	hashmap_clear(&ts->by_uuid);
	free(ts);
}

void
tasks_end(struct tasks *ts, enum runlog_reason reason, const char *text)
{
	struct tasks_item *it;

	copies_stop(ts->copies, "the sandbox was gone before all was copied");
	TAILQ_FOREACH (it, &ts->list, link)
		task_end(it->task,
		    it->task->cancel != 0 ?
			(enum runlog_reason)it->task->cancel :
			reason,
		    text);
}

/* ---- the agent comes and goes */

static void
discard_unknown(struct tasks *ts)
{
	if (!ts->settled || ts->peer == NULL)
		return;
	for (uint32_t i = 0; i < ts->hello->nruns; i++)
		if (find_task(ts, &ts->hello->runs[i].uuid) == NULL)
			peer_discard(ts->peer, &ts->hello->runs[i].uuid,
			    ts->hello->runs[i].from);
}

static void
attach(struct tasks *ts, struct task *t)
{
	const struct peer_run *known = find_known(ts->hello, &t->s.uuid);
	const char *refusal = NULL;

	if (t->s.is_root && t->cancel == 0 && !t->known && known == NULL &&
	    t->length == 0)
		refusal = ts->host->root_refusal(ts->host->arg);
	if (refusal != NULL) {
		task_end(t, RUNLOG_START_FAILED, refusal);
		return;
	}
	task_attach(t, ts->peer, known);
	if (known != NULL && t->state == TASK_OVER)
		peer_discard(ts->peer, &known->uuid, known->from);
}

/* How many processes live there that commands left behind, when the agent has
 * said it anew; none is told once. */
static void
tell_left(struct tasks *ts)
{
	uint32_t count;

	if (ts->peer == NULL || !peer_take_left(ts->peer, &count) ||
	    (count == 0 && ts->left_told == 0))
		return;
	ts->left_told = count;
	msg_send_sandbox_left(*ts->host->front,
	    &(struct msg_sandbox_left){.id = ts->sandbox, .count = count});
}

void
tasks_attach(struct tasks *ts, struct peer *p, const struct peer_hello *h)
{
	struct tasks_item *it;

	ts->begun = true;
	ts->peer = p;
	ts->hello = h;
	TAILQ_FOREACH (it, &ts->list, link)
		attach(ts, it->task);
	copies_attach(ts->copies, p);
	box_asks_attach(ts->asks, p, h->version);
	tell_left(ts);
	discard_unknown(ts);
}

void
tasks_detach(struct tasks *ts)
{
	struct tasks_item *it;

	ts->peer = NULL;
	ts->hello = NULL;
	TAILQ_FOREACH (it, &ts->list, link)
		task_detach(it->task);
	copies_detach(ts->copies);
	box_asks_detach(ts->asks);
}

void
tasks_settled(struct tasks *ts)
{
	ts->settled = true;
	discard_unknown(ts);
}

/* ---- from the front */

void
tasks_refuse(struct ipc_chan *front, struct task_start *s,
    enum runlog_reason reason, const char *text)
{
	struct msg_run_ended end = {
	    .id = s->id, .reason = (uint8_t)reason, .text = text};
	struct stat st;

	if (fstat(s->spool, &st) == 0)
		end.length = (uint64_t)st.st_size;
	msg_send_run_ended(front, &end);
	task_start_clear(s);
}

static void
copied_cb(struct copy_job *job, const char *error)
{
	struct tasks_item *it = CONTAINER_OF(job, struct tasks_item, copy);

	task_finish(it->task, error);
}

static void
complete_cb(struct task *t, void *arg)
{
	struct tasks_item *it = arg;

	if (task_has_artifacts(t))
		copies_add(it->in->copies, &it->copy);
	else
		task_finish(t, "");
}

static void
overdue_cb(struct task *t, void *arg)
{
	const struct tasks_item *it = arg;

	(void)t;
	it->in->on_overdue(it->in->arg);
}

static const struct task_ops task_ops = {complete_cb, overdue_cb};

int
tasks_start(struct tasks *ts, struct task_start *s, struct err *e)
{
	struct tasks_item *it;

	if (ts->by_uuid.count >= TASKS_MAX) {
		tasks_refuse(*ts->host->front, s, RUNLOG_START_FAILED,
		    "too many runs in this sandbox");
		return 0;
	}
	it = xcalloc(1, sizeof(*it));
	if (task_new(ts->host->task, s, &task_ops, it, &it->task, e) != 0) {
		free(it);
		return ERR_PROTO;
	}
	it->in = ts;
	it->copy.task = it->task->s.id;
	it->copy.done = copied_cb;
	TAILQ_INSERT_TAIL(&ts->list, it, link);
	hashmap_put(
	    &ts->by_uuid, &it->by_uuid, hashmap_key_uuid(&it->task->s.uuid));
	hashmap_put(ts->host->by_number, &it->by_number,
	    hashmap_key_u64(it->task->s.id));
	task_begin(it->task);
	if (ts->peer != NULL)
		attach(ts, it->task);
	return 0;
}

void
tasks_item_cancel(struct tasks_item *it, enum runlog_reason reason)
{
	if (it->in->begun)
		task_cancel(it->task, reason);
	else
		task_end(it->task, reason, "");
}

void
tasks_item_forget(struct tasks_item *it)
{
	if (it->task->state != TASK_OVER) /* the front gave it up by itself */
		task_end(it->task, RUNLOG_CANCELED, "");
	task_forget(it->task);
	item_drop(it);
}

void
tasks_item_fd(struct tasks_item *it, uint32_t file, int fd, const char *refusal)
{
	copies_on_fd(it->in->copies, &it->copy, file, fd, refusal);
}

struct box_asks *
tasks_asks(struct tasks *ts)
{
	return ts->asks;
}

/* ---- the link's turns */

void
tasks_on_turn(struct tasks *ts)
{
	struct ipc_chan *front = *ts->host->front;
	struct tasks_item *it;

	/* A short run is told in one packet. */
	if (front != NULL)
		ipc_chan_cork(front);
	TAILQ_FOREACH (it, &ts->list, link)
		task_flush(it->task);
	tell_left(ts);
	if (front != NULL)
		ipc_chan_uncork(front);
}

void
tasks_on_drain(struct tasks *ts)
{
	struct tasks_item *it;

	TAILQ_FOREACH (it, &ts->list, link)
		task_send(it->task);
}
