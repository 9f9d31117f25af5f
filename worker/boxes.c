/*
 * What comes from the front with a number, from the engine with a handle, or
 * about no box in particular, is brought to the box that it is about.  A box
 * that this worker does not know can still be removed: one that an earlier
 * worker made and the front has given up.
 */
#include "worker/boxes.h"

#include <stdio.h>

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
	if (box_by_sandbox(&bs->all, s->sandbox) != NULL ||
	    box_by_uuid(&bs->all, &s->uuid) != NULL)
		return err_set(e, ERR_PROTO, "sandbox %llu is open already",
		    (unsigned long long)s->sandbox);
	box_open(&bs->all, s);
	return 0;
}

/* The box of that sandbox, if there is one; it must be that tenant's. */
static int
find_box(const struct boxes *bs, uint64_t sandbox, uint64_t tenant,
    struct box **out, struct err *e)
{
	*out = box_by_sandbox(&bs->all, sandbox);
	if (*out == NULL || box_is_of(*out, tenant))
		return 0;
	return err_set(e, ERR_PROTO, "sandbox %llu is not tenant %llu's",
	    (unsigned long long)sandbox, (unsigned long long)tenant);
}

int
boxes_settled(
    struct boxes *bs, const struct msg_sandbox_settled *m, struct err *e)
{
	struct tasks *ts;
	struct box *b;

	if (find_box(bs, m->id, m->tenant, &b, e) != 0)
		return ERR_PROTO;
	ts = b == NULL ? NULL : box_tasks(b);
	if (ts != NULL)
		tasks_settled(ts);
	return 0;
}

int
boxes_set_ttl(struct boxes *bs, const struct msg_sandbox_ttl *m, struct err *e)
{
	struct box *b;

	if (find_box(bs, m->id, m->tenant, &b, e) != 0)
		return ERR_PROTO;
	if (b != NULL)
		box_set_ttl(b, m->ttl_s);
	return 0;
}

int
boxes_set_shares(
    struct boxes *bs, const struct msg_sandbox_shares *m, struct err *e)
{
	struct box *b;

	if (find_box(bs, m->id, m->tenant, &b, e) != 0)
		return ERR_PROTO;
	if (b != NULL)
		box_set_shares(b, m);
	return 0;
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
remove_unknown(struct boxes *bs, const struct msg_sandbox_remove *m,
    const struct box_identity *id)
{
	const struct box_host *host = bs->all.host;
	struct backend_handle h;
	struct unknown *u;

	if (bs->unknown >= BOXES_UNKNOWN_MAX) {
		msg_send_sandbox_removed(*host->front,
		    &(struct msg_sandbox_removed){.id = m->id,
			.code = ERR_LIMIT,
			.text = "too many sandboxes are being removed"});
		return;
	}
	u = xcalloc(1, sizeof(*u));
	*u = (struct unknown){bs, m->id};
	bs->unknown++;
	backend_handle_named(&h, m->name);
	removal_start(host->backend, host->carrier, id, &h, REMOVAL_UNSEEN,
	    unknown_removed_cb, u);
}

int
boxes_remove(
    struct boxes *bs, const struct msg_sandbox_remove *m, struct err *e)
{
	struct box *b = box_by_uuid(&bs->all, &m->uuid);
	struct box_identity id = {.uuid = m->uuid};

	(void)snprintf(id.tenant, sizeof(id.tenant), "%s", m->tenant_name);
	if (b != NULL && strcmp(box_tenant_name(b), id.tenant) != 0)
		return err_set(e, ERR_PROTO, "sandbox %llu is not tenant %s's",
		    (unsigned long long)m->id, id.tenant);
	if (b != NULL && box_sandbox(b) == m->id)
		box_remove(b);
	else
		remove_unknown(bs, m, &id);
	return 0;
}

int
boxes_find_task(const struct boxes *bs, uint64_t number, uint64_t tenant,
    struct tasks_item **out, struct err *e)
{
	*out = tasks_find(&bs->tasks, number);
	if (*out == NULL || tasks_item_tenant(*out) == tenant)
		return 0;
	return err_set(e, ERR_PROTO, "run %llu is not tenant %llu's",
	    (unsigned long long)number, (unsigned long long)tenant);
}

int
boxes_find_asks(const struct boxes *bs, uint64_t sandbox, uint64_t tenant,
    struct box_asks **out, struct err *e)
{
	struct tasks *ts;
	struct box *b;

	if (find_box(bs, sandbox, tenant, &b, e) != 0)
		return ERR_PROTO;
	ts = b == NULL ? NULL : box_tasks(b);
	*out = ts == NULL ? NULL : tasks_asks(ts);
	return 0;
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
	struct tasks_item *known;
	struct tasks *ts;
	struct box *b;
	bool same;

	if (boxes_find_task(bs, s->id, s->tenant, &known, e) != 0 ||
	    find_box(bs, sandbox, s->tenant, &b, e) != 0) {
		task_start_clear(s);
		return ERR_PROTO;
	}
	if (known != NULL) {
		same = uuid_is_equal(tasks_item_uuid(known), &s->uuid);
		task_start_clear(s);
		return same ?
		    0 :
		    err_set(e, ERR_PROTO, "run %llu is another already",
			(unsigned long long)s->id);
	}
	ts = b == NULL ? NULL : box_tasks(b);
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
	struct box *b = box_by_handle(&bs->all, h);

	if (b != NULL)
		box_on_change(b, what);
}

void
boxes_look(struct boxes *bs)
{
	box_each(&bs->all, box_look);
}

void
boxes_pause(struct boxes *bs)
{
	box_each(&bs->all, box_pause);
}

void
boxes_resume(struct boxes *bs)
{
	box_each(&bs->all, box_resume);
}

bool
boxes_is_busy(const struct boxes *bs)
{
	return bs->all.removals > 0 || bs->unknown > 0 ||
	    box_any(&bs->all, box_is_changing);
}

/* ---- life */

struct boxes *
boxes_new(const struct box_host *host)
{
	struct boxes *bs = xcalloc(1, sizeof(*bs));

	bs->all.host = host;
	openings_init(&bs->all.openings, host);
	bs->all.asks_host.front = host->front;
	box_bounds_line_init(&bs->all.bounds);
	bs->all.tasks_host = (struct tasks_host){.front = host->front,
	    .asks = &bs->all.asks_host,
	    .task = host->task,
	    .limits = host->limits,
	    .by_number = &bs->tasks,
	    .root_refusal = root_refusal,
	    .arg = bs};
	return bs;
}

void
boxes_free(struct boxes *bs)
{
	if (bs == NULL)
		return;
	box_each(&bs->all, box_drop);
	box_all_clear(&bs->all);
	hashmap_clear(&bs->tasks);
	free(bs);
}
