/*
 * A box's claim is removed: that which bears the box's UUID now.  One that
 * another box has taken meanwhile is that one's.  What a Pod still has goes
 * with that Pod.
 *
 * Of a sandbox that was lost (backend_files.left_by) it is the claim of its
 * name, unless the Pod of the box that has it runs.
 */
#include "worker/kubernetes/kubernetes_int.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "worker/kubernetes/pod_labels.h"
#include "worker/later.h"

#define TRIES 5 /* of a claim that changes meanwhile */

struct volume_forgetting {
	struct kubernetes *k;
	const struct pod_room *room;
	struct box_identity id;
	enum backend_forget which;
	char name[POD_NAME_MAX + 1]; /* of the claim; "": by the UUID */
	unsigned int tries;
	backend_done_cb cb;
	void *arg;
};

static void forget_look(struct volume_forgetting *f);

static void
forget_end(struct volume_forgetting *f, int rc, const struct err *why)
{
	f->cb(rc, rc == 0 ? NULL : why, f->arg);
	free(f);
}

static void
forgot_cb(const struct cluster_answer *a, void *arg)
{
	struct volume_forgetting *f = arg;
	struct err e;
	int rc = pod_check(a, "remove", &e);

	if (a->rc == ERR_CONFLICT && ++f->tries < TRIES)
		forget_look(f);
	else
		forget_end(f, rc == ERR_NOTFOUND ? 0 : rc, &e);
}

static bool
is_at_work(const struct volume_forgetting *f, const struct pod_volume *v)
{
	const struct pod_state *s = pod_table_find(&f->room->pods, v->pod);

	return s != NULL &&
	    (s->phase == POD_RUNNING || s->phase == POD_PENDING);
}

static bool
is_to_go(const struct volume_forgetting *f, const struct pod_volume *v)
{
	if (!v->is_ours || v->is_removing ||
	    strcmp(v->tenant, f->id.tenant) != 0)
		return false;
	if (f->name[0] != '\0')
		return !is_at_work(f, v);
	return uuid_is_equal(&v->box, &f->id.uuid) &&
	    (f->which == BACKEND_FORGET_ALL ||
		pod_volume_is_new(v, &f->id.uuid));
}

static void
forget_listed_cb(const struct cluster_answer *a, void *arg)
{
	struct volume_forgetting *f = arg;
	const json_t *items = json_object_get(a->body, "items"), *one;
	struct pod_volume v;
	struct err e;
	size_t i;
	int rc = pod_check(a, "remove", &e);

	if (rc != 0) {
		forget_end(f, rc, &e);
		return;
	}
	json_array_foreach (items, i, one)
		if (pod_volume_view(one, &f->room->ours, &v, NULL) == 0 &&
		    is_to_go(f, &v)) {
			(void)volume_delete(
			    f->k, f->room->ns, &v, forgot_cb, f);
			return;
		}
	forget_end(f, 0, NULL);
}

static void
forget_seen_cb(const struct cluster_answer *a, void *arg)
{
	struct volume_forgetting *f = arg;
	struct pod_volume v;
	struct err e;
	int rc = pod_check(a, "remove", &e);

	if (rc == 0)
		rc = pod_volume_view(a->body, &f->room->ours, &v, &e);
	if (rc == 0 && is_to_go(f, &v))
		(void)volume_delete(f->k, f->room->ns, &v, forgot_cb, f);
	else
		forget_end(f, rc == ERR_NOTFOUND ? 0 : rc, &e);
}

static void
forget_look(struct volume_forgetting *f)
{
	char text[UUID_TEXT_LEN + 1];
	AUTO(auto_free) char *more = NULL;

	if (f->name[0] != '\0') {
		(void)pod_ask(f->k->cluster, f->room->ns,
		    &(struct cluster_ask){.method = "GET",
			.timeout_ms = KUBERNETES_ASK_MS,
			.on_done = forget_seen_cb,
			.arg = f},
		    "persistentvolumeclaims/%s", f->name);
		return;
	}
	uuid_format(&f->id.uuid, text);
	more =
	    xasprintf(",%s/" POD_LABEL_BOX "=%s", f->k->settings.prefix, text);
	(void)volume_list(f->k, f->room->ns, more, "", forget_listed_cb, f);
}

/* Of a name that gives no namespace there is no claim. */
static void
no_room_cb(void *arg)
{
	forget_end(arg, 0, NULL);
}

void
volume_forget(struct backend *b, const struct box_identity *id,
    const struct backend_files *files, backend_done_cb cb, void *arg)
{
	struct volume_forgetting *f = xcalloc(1, sizeof(*f));
	struct err e;

	*f = (struct volume_forgetting){.k = (struct kubernetes *)b,
	    .id = *id,
	    .which = files->forget,
	    .cb = cb,
	    .arg = arg};
	if (files->left_by[0] != '\0')
		pod_volume_name(f->k->id, id->tenant, files->left_by, f->name);
	f->room = pod_rooms_of(&f->k->rooms, id->tenant, &e);
	if (f->room == NULL)
		later(f->k->base, no_room_cb, f);
	else
		forget_look(f);
}

/* ---- requests about claims */

struct cluster_call *
volume_delete(struct kubernetes *k, const char *ns, const struct pod_volume *v,
    void (*on_done)(const struct cluster_answer *a, void *arg), void *arg)
{
	AUTO(auto_json)
	json_t *o = json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "v1",
	    "kind", "DeleteOptions", "preconditions", "uid", v->uid,
	    "resourceVersion", v->version);
	AUTO(auto_free) char *body = js_dump(o);

	return pod_ask(k->cluster, ns,
	    &(struct cluster_ask){.method = "DELETE",
		.body = body,
		.timeout_ms = KUBERNETES_ASK_MS,
		.on_done = on_done,
		.arg = arg},
	    "persistentvolumeclaims/%s", v->name);
}

struct cluster_call *
volume_list(struct kubernetes *k, const char *ns, const char *more,
    const char *from,
    void (*on_done)(const struct cluster_answer *a, void *arg), void *arg)
{
	const char *prefix = k->settings.prefix;
	AUTO(auto_free)
	char *selector = xasprintf("%s/" POD_LABEL_ID "=%s,%s/" POD_LABEL_ROLE
				   "=" POD_ROLE_VOLUME "%s",
	    prefix, k->id, prefix, more);
	AUTO(auto_free) char *which = api_escape(selector);
	AUTO(auto_free) char *at = api_escape(from);

	return pod_ask(k->cluster, ns,
	    &(struct cluster_ask){.method = "GET",
		.timeout_ms = KUBERNETES_LIST_MS,
		.max_body = KUBERNETES_PAGE_MAX,
		.on_done = on_done,
		.arg = arg},
	    "persistentvolumeclaims?labelSelector=%s&limit=%d%s%s", which,
	    KUBERNETES_PAGE, from[0] != '\0' ? "&continue=" : "", at);
}
