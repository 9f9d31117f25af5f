/*
 * A Pod is removed: asked for with its uid, so that one of the same name that
 * was made later stays, and with a second of grace: without, its object goes
 * while its container still runs.  Then it is waited for, by what the cluster
 * tells; where it tells nothing, the Pod is looked for.
 */
#include "worker/kubernetes/kubernetes_int.h"

#include "common/clock.h"
#include "common/js.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/later.h"

#define LOOK_MS 2000

struct pod_removal {
	struct kubernetes *k;
	struct pod_room *room; /* NULL: it has none, and fails */
	char name[POD_NAME_MAX + 1];
	char uid[POD_UID_MAX + 1]; /* "": not known yet */
	struct pod_wait wait;
	struct timer *look;
	struct cluster_call *call;
	uint64_t until_ms;
	struct err why; /* without a room */
	backend_done_cb cb;
	void *arg;
	TAILQ_ENTRY(pod_removal) link;
};

/* ---- the end */

static void
removal_end(struct pod_removal *r, int rc, const struct err *why)
{
	TAILQ_REMOVE(&r->k->removals, r, link);
	if (r->call != NULL)
		cluster_cancel(r->call);
	pod_wait_end(&r->wait);
	timer_free(r->look);
	r->cb(rc, rc == 0 ? NULL : why, r->arg);
	free(r);
}

/* ---- waiting for it */

static bool
is_another(const struct pod_removal *r, const char *uid)
{
	return r->uid[0] != '\0' && strcmp(r->uid, uid) != 0;
}

static void
news_cb(void *arg)
{
	struct pod_removal *r = arg;
	const struct pod_state *p = pod_table_find(&r->room->pods, r->name);
	/* What is not known is not there only while changes come. */
	bool is_gone =
	    p == NULL ? pod_room_is_settled(r->room) : is_another(r, p->uid);

	if (r->call == NULL && is_gone)
		removal_end(r, 0, NULL);
}

static void
removal_wait(struct pod_removal *r)
{
	struct err e;

	if (clock_mono_ms() < r->until_ms) {
		timer_set_ms(r->look, LOOK_MS);
		return;
	}
	(void)err_set(&e, ERR_BACKEND,
	    "remove: Pod %s is not gone after %d s: its node may be away "
	    "(kubectl get pod -o wide, and kubectl delete pod --force when the "
	    "node is off for good)",
	    r->name, KUBERNETES_REMOVE_MS / 1000);
	removal_end(r, ERR_BACKEND, &e);
}

static void
looked_cb(const struct cluster_answer *a, void *arg)
{
	struct pod_removal *r = arg;
	struct pod_state s;
	struct err e;
	int rc = pod_check(a, "remove", &e);

	r->call = NULL;
	if (rc == ERR_NOTFOUND ||
	    (rc == 0 &&
		pod_view_state(a->body, r->k->settings.container, &s, &e) ==
		    0 &&
		is_another(r, s.uid)))
		removal_end(r, 0, NULL);
	else if (rc == ERR_WRONG_STATE)
		removal_end(r, rc, &e);
	else
		removal_wait(r);
}

static void
look_cb(void *arg)
{
	struct pod_removal *r = arg;

	r->call = pod_ask(r->k->cluster, r->room->ns,
	    &(struct cluster_ask){.method = "GET",
		.timeout_ms = KUBERNETES_ASK_MS,
		.on_done = looked_cb,
		.arg = r},
	    "pods/%s", r->name);
}

/* ---- asking for it */

/* A Pod that nothing ran of is gone with the answer, which may show it all the
 * same. */
static void
removed_cb(const struct cluster_answer *a, void *arg)
{
	struct pod_removal *r = arg;
	struct pod_state s;
	struct err e;
	int rc = pod_check(a, "remove", &e);

	r->call = NULL;
	/* A conflict: the Pod of that uid is gone already. */
	if (rc == ERR_NOTFOUND || a->rc == ERR_CONFLICT) {
		removal_end(r, 0, NULL);
	} else if (rc != 0) {
		removal_end(r, rc, &e);
	} else {
		if (r->uid[0] == '\0' &&
		    pod_view_state(a->body, r->k->settings.container, &s, &e) ==
			0)
			memcpy(r->uid, s.uid, sizeof(r->uid));
		removal_wait(r);
		pod_wait_begin(&r->wait, &r->room->pods, r->name, news_cb, r);
		pod_wait_look(&r->wait);
	}
}

static void
no_room_cb(void *arg)
{
	struct pod_removal *r = arg;

	removal_end(r, r->why.code, &r->why);
}

static char *
delete_options(const char *uid)
{
	AUTO(auto_json)
	json_t *o = json_pack("{s:s, s:s, s:i}", "apiVersion", "v1", "kind",
	    "DeleteOptions", "gracePeriodSeconds", 1);

	if (uid[0] != '\0')
		(void)json_object_set_new(
		    o, "preconditions", json_pack("{s:s}", "uid", uid));
	return js_dump(o);
}

void
pod_remove(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg)
{
	struct kubernetes *k = (struct kubernetes *)b;
	struct pod_removal *r = xcalloc(1, sizeof(*r));
	AUTO(auto_free) char *body = NULL;

	r->k = k;
	r->cb = cb;
	r->arg = arg;
	r->until_ms = clock_mono_ms() + KUBERNETES_REMOVE_MS;
	pod_name(backend_handle_text(h), r->name);
	if (!pod_view_uid_of(h->life, r->uid))
		r->uid[0] = '\0';
	r->look = timer_new(k->base, look_cb, r);
	TAILQ_INSERT_TAIL(&k->removals, r, link);
	r->room = pod_rooms_of(&k->rooms, h->tenant, &r->why);
	if (r->room == NULL) {
		later(k->base, no_room_cb, r);
		return;
	}
	body = delete_options(r->uid);
	r->call = pod_ask(k->cluster, r->room->ns,
	    &(struct cluster_ask){.method = "DELETE",
		.body = body,
		.timeout_ms = KUBERNETES_ASK_MS,
		.on_done = removed_cb,
		.arg = r},
	    "pods/%s", r->name);
}

/* Those that wait for no answer; the others were told by cluster_free. */
void
pod_removals_clear(struct kubernetes *k)
{
	struct pod_removal *r;
	struct err e;

	(void)err_set(&e, ERR_WRONG_STATE, "the worker is ending");
	while ((r = TAILQ_FIRST(&k->removals)) != NULL)
		removal_end(r, ERR_WRONG_STATE, &e);
}
