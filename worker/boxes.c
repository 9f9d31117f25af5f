/*
 * What comes from the front with a number, from the engine with a handle, or
 * about no box in particular, is brought to the box that it is about.  A box
 * that this worker does not know can still be removed: one that an earlier
 * worker made and the front has given up.
 */
#include "worker/boxes.h"

#include "common/msg/msg_gen.h"
#include "common/xmalloc.h"
#include "worker/removal.h"
#include "worker/root_rule.h"

struct boxes {
	struct box_all all;
	struct hashmap tasks; /* of all, by the front's number */
	unsigned int unknown; /* boxes that are being removed */
};

/* ---- from the front */

int
boxes_open(struct boxes *bs, const struct box_start *s, struct err *e)
{
	if (box_map_by_sandbox(&bs->all.map, s->sandbox) != NULL ||
	    box_map_by_uuid(&bs->all.map, &s->uuid) != NULL)
		return err_set(e, ERR_PROTO, "sandbox %llu is open already",
		    (unsigned long long)s->sandbox);
	box_open(&bs->all, s);
	return 0;
}

void
boxes_settled(struct boxes *bs, uint64_t sandbox)
{
	struct box *b = box_at(box_map_by_sandbox(&bs->all.map, sandbox));
	struct tasks *ts = b == NULL ? NULL : box_tasks(b);

	if (ts != NULL)
		tasks_settled(ts);
}

void
boxes_set_ttl(struct boxes *bs, uint64_t sandbox, uint32_t ttl_s)
{
	struct box *b = box_at(box_map_by_sandbox(&bs->all.map, sandbox));

	if (b != NULL)
		box_set_ttl(b, ttl_s);
}

/* Of a box that this worker does not know. */
struct unknown {
	struct boxes *in;
	uint64_t sandbox;
};

static void
unknown_removed_cb(int rc, const struct err *why, void *arg)
{
	struct unknown *u = arg;

	u->in->unknown--;
	msg_send_sandbox_removed(*u->in->all.host->front,
	    &(struct msg_sandbox_removed){
		.id = u->sandbox, .code = rc, .text = rc == 0 ? "" : why->msg});
	free(u);
}

static void
remove_unknown(struct boxes *bs, uint64_t sandbox, const struct uuid *uuid,
    const char *name)
{
	const struct box_host *host = bs->all.host;
	struct unknown *u = xcalloc(1, sizeof(*u));
	struct backend_handle h;

	*u = (struct unknown){bs, sandbox};
	bs->unknown++;
	backend_handle_named(&h, name);
	removal_start(host->backend, host->carrier, uuid, &h, REMOVAL_UNSEEN,
	    unknown_removed_cb, u);
}

void
boxes_remove(struct boxes *bs, uint64_t sandbox, const struct uuid *uuid,
    const char *name)
{
	struct box_place *p = box_map_by_uuid(&bs->all.map, uuid);

	if (p != NULL && p->sandbox == sandbox)
		box_remove(box_at(p));
	else
		remove_unknown(bs, sandbox, uuid, name);
}

struct tasks_item *
boxes_find_task(const struct boxes *bs, uint64_t number)
{
	return tasks_find(&bs->tasks, number);
}

void
boxes_ask_left(struct boxes *bs, const struct msg_left_ask *m)
{
	struct box *b = box_at(box_map_by_sandbox(&bs->all.map, m->id));
	struct tasks *ts = b == NULL ? NULL : box_tasks(b);

	if (ts != NULL)
		tasks_ask_left(ts, m);
	else
		left_asks_refuse(*bs->all.host->front, m);
}

static const char *
root_refusal(void *arg)
{
	const struct boxes *bs = arg;
	const struct box_host *h = bs->all.host;

	return root_rule_refusal(h->policy, h->backend);
}

int
boxes_start_task(
    struct boxes *bs, uint64_t sandbox, struct task_start *s, struct err *e)
{
	const struct tasks_item *known = boxes_find_task(bs, s->id);
	struct box *b = box_at(box_map_by_sandbox(&bs->all.map, sandbox));
	struct tasks *ts = b == NULL ? NULL : box_tasks(b);
	bool same;

	if (known != NULL) {
		same = uuid_is_equal(tasks_item_uuid(known), &s->uuid);
		task_start_clear(s);
		return same ?
		    0 :
		    err_set(e, ERR_PROTO, "run %llu is another already",
			(unsigned long long)s->id);
	}
	if (ts != NULL)
		return tasks_start(ts, s, e);
	tasks_refuse(
	    *bs->all.host->front, s, RUNLOG_LOST, "the sandbox is gone");
	return 0;
}

/* ---- what concerns all boxes */

void
boxes_on_change(
    struct boxes *bs, const struct backend_handle *h, enum backend_change what)
{
	struct box *b = box_at(box_map_by_handle(&bs->all.map, h));

	if (b != NULL)
		box_on_change(b, what);
}

static void
look_cb(struct box_place *p, void *arg)
{
	(void)arg;
	box_look(box_at(p));
}

void
boxes_look(struct boxes *bs)
{
	box_map_each(&bs->all.map, look_cb, NULL);
}

static void
pause_cb(struct box_place *p, void *arg)
{
	(void)arg;
	box_pause(box_at(p));
}

void
boxes_pause(struct boxes *bs)
{
	box_map_each(&bs->all.map, pause_cb, NULL);
}

static void
resume_cb(struct box_place *p, void *arg)
{
	(void)arg;
	box_resume(box_at(p));
}

void
boxes_resume(struct boxes *bs)
{
	box_map_each(&bs->all.map, resume_cb, NULL);
}

static void
changing_cb(struct box_place *p, void *arg)
{
	bool *changing = arg;

	*changing = *changing || box_is_changing(box_at(p));
}

bool
boxes_is_busy(struct boxes *bs)
{
	bool changing = false;

	box_map_each(&bs->all.map, changing_cb, &changing);
	return changing || bs->all.removals > 0 || bs->unknown > 0;
}

/* ---- life */

struct boxes *
boxes_new(const struct box_host *host)
{
	struct boxes *bs = xcalloc(1, sizeof(*bs));

	bs->all.host = host;
	bs->all.tasks_host = (struct tasks_host){.front = host->front,
	    .task = host->task,
	    .limits = host->limits,
	    .by_number = &bs->tasks,
	    .root_refusal = root_refusal,
	    .arg = bs};
	return bs;
}

static void
drop_cb(struct box_place *p, void *arg)
{
	(void)arg;
	box_drop(box_at(p));
}

void
boxes_free(struct boxes *bs)
{
	if (bs == NULL)
		return;
	box_map_each(&bs->all.map, drop_cb, NULL);
	box_map_clear(&bs->all.map);
	hashmap_clear(&bs->tasks);
	free(bs);
}
