/*
 * A box gets the claim of its sandbox:
 *
 *	MAKE	POST: it is new
 *	  |	409: there is one
 *	LOOK	GET	not ours: refused; the box's own already: got
 *	  |	  |
 *	  |	  | another box's
 *	  |	POD	GET: is the Pod of that box still there?
 *	  |	  |
 *	  |	TAKE	PATCH: it is this box's from now on, unless it has
 *	  |		changed meanwhile: LOOK
 *	WAIT	it is being removed, or a Pod still has it: MAKE again
 *
 * A sandbox that was lost leaves its claim to the next one of its name.  One
 * that is removed has its claim removed before its Pod (removal.h), so that
 * whoever waits for the Pod does not find the claim.
 */
#include "worker/kubernetes/kubernetes_int.h"

#include "common/clock.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/later.h"

#define WAIT_MS 500

struct volume_take {
	struct kubernetes *k;
	const struct pod_room *room;
	const struct backend_spec *spec;
	char name[POD_NAME_MAX + 1];
	struct pod_volume seen;
	struct cluster_call *call;
	/* What comes after the answer that is waited for. */
	void (*on_answer)(
	    struct volume_take *t, const struct cluster_answer *a);
	struct timer *again;
	uint64_t until_ms;
	bool is_unwanted;
	bool is_over;
	int rc;
	bool had_files;
	struct err why;
	volume_take_cb cb;
	void *arg;
};

static void take_make(struct volume_take *t);
static void take_look(struct volume_take *t);

/* ---- the end */

void
volume_take_free(struct volume_take *t)
{
	if (t == NULL)
		return;
	if (t->call != NULL)
		cluster_cancel(t->call);
	timer_free(t->again);
	free(t);
}

static void
take_end(void *arg)
{
	struct volume_take *t = arg;
	const struct volume_take told = *t;

	volume_take_free(t);
	told.cb(
	    told.rc, told.had_files, told.rc == 0 ? NULL : &told.why, told.arg);
}

static void
take_got(struct volume_take *t, bool had_files)
{
	t->had_files = had_files;
	take_end(t);
}

static void
take_refused(struct volume_take *t, const struct cluster_answer *a)
{
	int rc = a->rc == ERR_NOTFOUND || a->rc == ERR_CONFLICT ||
		a->rc == ERR_LOST ?
	    ERR_BACKEND :
	    a->rc;

	t->rc = err_set(&t->why, rc, "create: %s", a->why->msg);
	take_end(t);
}

/* ---- asking */

static void
take_answered_cb(const struct cluster_answer *a, void *arg)
{
	struct volume_take *t = arg;

	t->call = NULL;
	if (a->rc == ERR_WRONG_STATE || !t->is_unwanted) {
		t->on_answer(t, a);
		return;
	}
	t->rc = err_set(
	    &t->why, ERR_WRONG_STATE, "the sandbox is not wanted any more");
	take_end(t);
}

static struct cluster_ask
take_request(struct volume_take *t, const char *method, const char *body,
    void (*on_answer)(struct volume_take *, const struct cluster_answer *))
{
	t->on_answer = on_answer;
	return (struct cluster_ask){.method = method,
	    .body = body,
	    .timeout_ms = KUBERNETES_ASK_MS,
	    .on_done = take_answered_cb,
	    .arg = t};
}

/* ---- waiting */

static void
take_again_cb(void *arg)
{
	take_make(arg);
}

static void
take_wait(struct volume_take *t, const char *why)
{
	if (clock_mono_ms() < t->until_ms) {
		timer_set_ms(t->again, WAIT_MS);
		return;
	}
	t->rc = err_set(&t->why, ERR_BACKEND,
	    "the sandbox's PersistentVolumeClaim %s is not free after %d s: "
	    "%s",
	    t->name, KUBERNETES_NAME_MS / 1000, why);
	take_end(t);
}

/* ---- one that another box has */

static struct pod_volume_wish
take_wish(const struct volume_take *t)
{
	const struct kubernetes *k = t->k;

	return (struct pod_volume_wish){.settings = &k->settings,
	    .ns = t->room->ns,
	    .instance = k->instance,
	    .id = k->id,
	    .spec = t->spec,
	    .now_ms = clock_wall_ms()};
}

static void
take_patched(struct volume_take *t, const struct cluster_answer *a)
{
	struct err e;

	if (a->rc == ERR_CONFLICT || a->rc == ERR_NOTFOUND || a->rc == ERR_LOST)
		take_look(t);
	else if (a->rc != 0)
		take_refused(t, a);
	else if (pod_volume_view(a->body, &t->room->ours, &t->seen, &e) == 0 &&
	    t->seen.is_removing)
		take_wait(t, "it is being removed");
	else
		take_got(t, true);
}

static void
take_patch(struct volume_take *t)
{
	const struct pod_volume_wish wish = take_wish(t);
	AUTO(auto_free)
	char *body = pod_volume_body_taken(&wish, t->seen.version);
	struct cluster_ask ask = take_request(t, "PATCH", body, take_patched);

	ask.content_type = "application/merge-patch+json";
	t->call = pod_ask(t->k->cluster, t->room->ns, &ask,
	    "persistentvolumeclaims/%s?fieldManager=mcp-sandboxd", t->name);
}

static void
take_pod_seen(struct volume_take *t, const struct cluster_answer *a)
{
	struct err e;
	int rc = pod_check(a, "create", &e);

	if (rc == 0 && pod_volume_is_in(a->body, t->name))
		take_wait(t, "a Pod still has it");
	else if (rc == 0 || rc == ERR_NOTFOUND)
		take_patch(t);
	else
		take_refused(t, a);
}

static void
take_see_pod(struct volume_take *t)
{
	const struct cluster_ask ask =
	    take_request(t, "GET", NULL, take_pod_seen);

	t->call =
	    pod_ask(t->k->cluster, t->room->ns, &ask, "pods/%s", t->seen.pod);
}

/* ---- one that is there */

static void
take_judge(struct volume_take *t)
{
	const struct box_identity *id = &t->spec->identity;
	const struct pod_volume *v = &t->seen;

	if (v->is_removing) {
		take_wait(t, "it is being removed");
	} else if (!v->is_ours || strcmp(v->tenant, id->tenant) != 0) {
		t->rc = err_set(&t->why, ERR_BACKEND,
		    "a PersistentVolumeClaim %s is there already and is none "
		    "of this server's: it is left alone; where nobody wants "
		    "its files: kubectl delete pvc",
		    t->name);
		take_end(t);
	} else if (uuid_is_equal(&v->box, &id->uuid)) {
		/* Of a worker that died before it had made the Pod. */
		take_got(t, !pod_volume_is_new(v, &id->uuid));
	} else {
		take_see_pod(t);
	}
}

static void
take_looked(struct volume_take *t, const struct cluster_answer *a)
{
	struct err e;
	int rc = pod_check(a, "create", &e);

	if (rc == 0)
		rc = pod_volume_view(a->body, &t->room->ours, &t->seen, &e);
	if (rc == 0) {
		take_judge(t);
	} else if (rc == ERR_NOTFOUND) {
		take_wait(t, "it comes and goes");
	} else {
		t->rc = rc;
		t->why = e;
		take_end(t);
	}
}

static void
take_look(struct volume_take *t)
{
	const struct cluster_ask ask =
	    take_request(t, "GET", NULL, take_looked);

	t->call = pod_ask(t->k->cluster, t->room->ns, &ask,
	    "persistentvolumeclaims/%s", t->name);
}

/* ---- a new one */

static void
take_made(struct volume_take *t, const struct cluster_answer *a)
{
	if (a->rc == 0)
		take_got(t, false);
	else if (a->rc == ERR_CONFLICT || a->rc == ERR_LOST)
		take_look(t);
	else
		take_refused(t, a);
}

static void
take_make(struct volume_take *t)
{
	const struct pod_volume_wish wish = take_wish(t);
	AUTO(auto_free) char *body = pod_volume_body(&wish);
	const struct cluster_ask ask = take_request(t, "POST", body, take_made);

	t->call = pod_ask(t->k->cluster, t->room->ns, &ask,
	    "persistentvolumeclaims?fieldManager=mcp-sandboxd&"
	    "fieldValidation=Strict");
}

/* ---- public */

struct volume_take *
volume_take_start(struct kubernetes *k, const struct pod_room *room,
    const struct backend_spec *spec, volume_take_cb cb, void *arg)
{
	struct volume_take *t = xcalloc(1, sizeof(*t));

	t->k = k;
	t->room = room;
	t->spec = spec;
	t->cb = cb;
	t->arg = arg;
	t->until_ms = clock_mono_ms() + KUBERNETES_NAME_MS;
	t->again = timer_new(k->base, take_again_cb, t);
	pod_volume_name(
	    k->id, spec->identity.tenant, spec->claim.identifier, t->name);
	take_make(t);
	return t;
}

void
volume_take_abandon(struct volume_take *t)
{
	t->is_unwanted = true;
	if (t->call != NULL || t->is_over)
		return;
	t->is_over = true;
	timer_stop(t->again);
	t->rc = err_set(
	    &t->why, ERR_WRONG_STATE, "the sandbox is not wanted any more");
	later(t->k->base, take_end, t);
}
