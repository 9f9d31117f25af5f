/*
 * What comes from the front with a number, from the engine with a handle, or
 * about no box in particular, is brought to its box or to all of them (box.c).
 *
 *	the front names a sandbox	its tenant must be the one it says
 *	SANDBOX_REMOVE			also for boxes of earlier workers: the
 *					container is looked for by its name
 *	the engine names a container	nothing for one that is not ours
 */
#include "worker/boxes.h"

#include <stdio.h>

#include "common/xmalloc.h"
#include "worker/removal.h"

struct boxes {
	struct box_common common;
	unsigned int unknown; /* removals under way, of boxes not here */
};

/* ---- what the front says
 *
 * A box is named by the front's number of its sandbox, and must be of the
 * tenant that the front says. */

int
boxes_open(struct boxes *bs, const struct box_start *s, struct err *e)
{
	const struct box_index *ix = &bs->common.index;

	if (box_index_by_sandbox(ix, s->sandbox) != NULL ||
	    box_index_by_uuid(ix, &s->uuid) != NULL)
		return err_set(e, ERR_PROTO, "sandbox %llu is open already",
		    (unsigned long long)s->sandbox);
	box_open(&bs->common, s);
	return 0;
}

/* *out NULL: there is none. */
static int
find_box(const struct boxes *bs, uint64_t sandbox, uint64_t tenant,
    struct box **out, struct err *e)
{
	*out = box_of(box_index_by_sandbox(&bs->common.index, sandbox));
	if (*out == NULL || box_is_used_by(*out, tenant))
		return 0;
	return err_set(e, ERR_PROTO, "sandbox %llu is not tenant %llu's",
	    (unsigned long long)sandbox, (unsigned long long)tenant);
}

/* The same of its tasks; *out NULL: also when it is being taken away. */
static int
find_tasks(const struct boxes *bs, uint64_t sandbox, uint64_t tenant,
    struct tasks **out, struct err *e)
{
	struct box *b;

	if (find_box(bs, sandbox, tenant, &b, e) != 0)
		return ERR_PROTO;
	*out = b != NULL ? box_tasks(b) : NULL;
	return 0;
}

int
boxes_settled(
    struct boxes *bs, const struct msg_sandbox_settled *m, struct err *e)
{
	struct tasks *ts;

	if (find_tasks(bs, m->id, m->tenant, &ts, e) != 0)
		return ERR_PROTO;
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

/* A box that is not here: an earlier worker made it, and the front has given it
 * up. */
struct unknown {
	struct boxes *in;
	uint64_t sandbox; /* whose it was */
};

static void
unknown_gone_cb(int rc, const char *text, void *arg)
{
	struct unknown *u = arg;

	u->in->unknown--;
	box_tell_removed(u->in->common.host, u->sandbox, rc, text);
	free(u);
}

static enum backend_forget
files_of(const struct msg_sandbox_remove *m)
{
	return m->keeps_files ? BACKEND_FORGET_NOTHING : BACKEND_FORGET_ALL;
}

static void
remove_unknown(struct boxes *bs, const struct msg_sandbox_remove *m,
    const struct box_identity *id)
{
	const struct box_host *host = bs->common.host;
	struct unknown *u;

	if (bs->unknown >= BOXES_UNKNOWN_MAX) {
		box_tell_removed(host, m->id, ERR_LIMIT,
		    "too many sandboxes are being removed");
		return;
	}
	u = xcalloc(1, sizeof(*u));
	u->in = bs;
	u->sandbox = m->id;
	bs->unknown++;
	removal_start(host->backend, host->ways,
	    &(struct removal_wish){.id = id,
		.name = m->name,
		.files = {.forget = files_of(m), .left_by = m->left_by}},
	    unknown_gone_cb, u);
}

int
boxes_remove(
    struct boxes *bs, const struct msg_sandbox_remove *m, struct err *e)
{
	struct box_place *p = box_index_by_uuid(&bs->common.index, &m->uuid);
	struct box_identity id = {.uuid = m->uuid};

	(void)snprintf(id.tenant, sizeof(id.tenant), "%s", m->tenant_name);
	if (p != NULL &&
	    strcmp(box_identity(box_of(p))->tenant, id.tenant) != 0)
		return err_set(e, ERR_PROTO, "sandbox %llu is not tenant %s's",
		    (unsigned long long)m->id, id.tenant);
	if (p != NULL && p->sandbox == m->id)
		box_remove(box_of(p), files_of(m));
	else
		remove_unknown(bs, m, &id);
	return 0;
}

int
boxes_find_task(const struct boxes *bs, uint64_t number, uint64_t tenant,
    struct tasks_item **out, struct err *e)
{
	*out = tasks_find(&bs->common.tasks, number);
	if (*out == NULL || tasks_item_start(*out)->tenant == tenant)
		return 0;
	return err_set(e, ERR_PROTO, "run %llu is not tenant %llu's",
	    (unsigned long long)number, (unsigned long long)tenant);
}

int
boxes_find_asks(const struct boxes *bs, uint64_t sandbox, uint64_t tenant,
    struct box_asks **out, struct err *e)
{
	struct tasks *ts;

	if (find_tasks(bs, sandbox, tenant, &ts, e) != 0)
		return ERR_PROTO;
	*out = ts == NULL ? NULL : tasks_asks(ts);
	return 0;
}

int
boxes_start_task(
    struct boxes *bs, uint64_t sandbox, struct task_start *s, struct err *e)
{
	struct tasks_item *known;
	struct tasks *ts;
	bool same;

	if (boxes_find_task(bs, s->id, s->tenant, &known, e) != 0 ||
	    find_tasks(bs, sandbox, s->tenant, &ts, e) != 0) {
		task_start_clear(s);
		return ERR_PROTO;
	}
	if (known != NULL) {
		same = uuid_is_equal(&tasks_item_start(known)->uuid, &s->uuid);
		task_start_clear(s);
		return same ?
		    0 :
		    err_set(e, ERR_PROTO, "run %llu is another already",
			(unsigned long long)s->id);
	}
	if (ts != NULL)
		return tasks_start(ts, s, e);
	tasks_refuse(
	    *bs->common.host->front, s, RUNLOG_LOST, "the sandbox is gone");
	return 0;
}

/* ---- what concerns all boxes */

void
boxes_on_change(
    struct boxes *bs, const struct backend_handle *h, enum backend_change what)
{
	struct box *b = box_of(box_index_by_handle(&bs->common.index, h));

	/* In another tenant's place that name is another box. */
	if (b != NULL &&
	    (h->tenant[0] == '\0' ||
		strcmp(h->tenant, box_identity(b)->tenant) == 0))
		box_on_change(b, what);
}

static void
look_cb(struct box_place *p, void *arg)
{
	(void)arg;
	box_look(box_of(p));
}

void
boxes_look(struct boxes *bs)
{
	box_index_each(&bs->common.index, look_cb, NULL);
}

static void
pause_cb(struct box_place *p, void *arg)
{
	(void)arg;
	box_pause(box_of(p));
}

void
boxes_pause(struct boxes *bs)
{
	box_index_each(&bs->common.index, pause_cb, NULL);
}

static void
resume_cb(struct box_place *p, void *arg)
{
	(void)arg;
	box_resume(box_of(p));
}

void
boxes_resume(struct boxes *bs)
{
	box_index_each(&bs->common.index, resume_cb, NULL);
}

static void
busy_cb(struct box_place *p, void *arg)
{
	bool *busy = arg;

	*busy = *busy || box_is_changing(box_of(p));
}

bool
boxes_is_busy(struct boxes *bs)
{
	bool busy = bs->common.removals > 0 || bs->unknown > 0;

	box_index_each(&bs->common.index, busy_cb, &busy);
	return busy;
}

/* ---- life */

struct boxes *
boxes_new(const struct box_host *host)
{
	struct boxes *bs = xcalloc(1, sizeof(*bs));

	box_common_init(&bs->common, host);
	return bs;
}

void
boxes_free(struct boxes *bs)
{
	if (bs == NULL)
		return;
	box_common_clear(&bs->common);
	free(bs);
}
