/*
 * Claims that nobody uses are noted, and removed when they have been noted for
 * long enough; one that is used again is not noted any more.  The note is on
 * the claim, so it is as old as it is whoever reads it.
 *
 *	LIST	all claims of our instance in a namespace, in pages
 *	EACH	one after another: what is to be done with it, as
 *		pod_volume_judge says; refused when it has changed since
 *	then those of the next namespace
 */
#include "worker/kubernetes/kubernetes_int.h"

#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/later.h"

struct volume_sweeping {
	struct kubernetes *k;
	struct backend_sweep how;
	struct pod_place *places;
	size_t nplaces, at;
	struct pod_volume *all;
	size_t n, next;
	unsigned int removed;
	backend_done_cb cb;
	void *arg;
};

static void sweep_each(struct volume_sweeping *s);
static void sweep_place(void *arg);

static const char *
sweep_ns(const struct volume_sweeping *s)
{
	return s->places[s->at].ns;
}

static void
sweep_over(struct volume_sweeping *s, int rc, const struct err *why)
{
	if (s->removed > 0)
		log_info("sweep: %u volumes that nobody came back for are "
			 "removed",
		    s->removed);
	s->cb(rc, rc == 0 ? NULL : why, s->arg);
	free(s->places);
	free(s->all);
	free(s);
}

/* ---- each */

static void
sweep_done_cb(const struct cluster_answer *a, void *arg)
{
	struct volume_sweeping *s = arg;
	struct err e;

	if (a->rc == ERR_WRONG_STATE) {
		sweep_over(s, pod_check(a, "sweep", &e), &e);
		return;
	}
	/* One that has changed, or is gone, is the next sweep's. */
	if (a->rc != 0 && a->rc != ERR_CONFLICT && a->rc != ERR_NOTFOUND)
		log_warn("sweep: PersistentVolumeClaim %s: %s",
		    s->all[s->next - 1].name, a->why->msg);
	sweep_each(s);
}

static void
sweep_removed_cb(const struct cluster_answer *a, void *arg)
{
	struct volume_sweeping *s = arg;

	if (a->rc == 0)
		s->removed++;
	sweep_done_cb(a, s);
}

static void
sweep_note(
    struct volume_sweeping *s, const struct pod_volume *v, int64_t since_ms)
{
	AUTO(auto_free)
	char *body =
	    pod_volume_body_unused(s->k->settings.prefix, since_ms, v->version);

	(void)pod_ask(s->k->cluster, sweep_ns(s),
	    &(struct cluster_ask){.method = "PATCH",
		.body = body,
		.content_type = "application/merge-patch+json",
		.timeout_ms = KUBERNETES_ASK_MS,
		.on_done = sweep_done_cb,
		.arg = s},
	    "persistentvolumeclaims/%s?fieldManager=mcp-sandboxd", v->name);
}

/* True: an answer is awaited. */
static bool
sweep_one(struct volume_sweeping *s, const struct pod_volume *v)
{
	const struct backend_sweep *how = &s->how;
	enum pod_volume_fate fate;

	if (how->is_used == NULL)
		fate = v->is_ours ? POD_VOLUME_GOES : POD_VOLUME_STAYS;
	else
		fate = pod_volume_judge(v, how->is_used(&v->box, how->arg),
		    how->asof_ms, s->k->settings.volume_keep_ms);
	switch (fate) {
	case POD_VOLUME_IS_NOTED:
		sweep_note(s, v, how->asof_ms);
		return true;
	case POD_VOLUME_IS_CLEARED:
		sweep_note(s, v, 0);
		return true;
	case POD_VOLUME_GOES:
		(void)volume_delete(s->k, sweep_ns(s), v, sweep_removed_cb, s);
		return true;
	default:
		return false;
	}
}

static void
sweep_each(struct volume_sweeping *s)
{
	while (s->next < s->n)
		if (sweep_one(s, &s->all[s->next++]))
			return;
	s->at++;
	sweep_place(s);
}

/* ---- the list */

static void
sweep_take(struct volume_sweeping *s, const json_t *items)
{
	const struct kubernetes *k = s->k;
	const struct pod_ours ours = {.prefix = k->settings.prefix,
	    .id = k->id,
	    .container = k->settings.container,
	    .tenant = s->places[s->at].tenant};
	size_t n = json_array_size(items);

	s->all = xreallocarray(s->all, s->n + n + 1, sizeof(*s->all));
	for (size_t i = 0; i < n && s->n < BACKEND_LIST_MAX; i++)
		if (pod_volume_view(json_array_get(items, i), &ours,
			&s->all[s->n], NULL) == 0)
			s->n++;
}

static void
sweep_page_cb(const struct cluster_answer *a, void *arg)
{
	struct volume_sweeping *s = arg;
	const char *rest =
	    js_text(json_object_get(a->body, "metadata"), "continue");
	struct err e;
	int rc = pod_check(a, "sweep", &e);

	if (rc != 0 && pod_list_passes_over(s->k, a)) {
		sweep_each(s);
		return;
	}
	if (rc != 0) {
		sweep_over(s, rc, &e);
		return;
	}
	sweep_take(s, json_object_get(a->body, "items"));
	if (rest[0] != '\0' && s->n < BACKEND_LIST_MAX)
		(void)volume_list(
		    s->k, sweep_ns(s), "", rest, sweep_page_cb, s);
	else
		sweep_each(s);
}

static void
sweep_place(void *arg)
{
	struct volume_sweeping *s = arg;

	s->n = 0;
	s->next = 0;
	if (s->at < s->nplaces)
		(void)volume_list(s->k, sweep_ns(s), "", "", sweep_page_cb, s);
	else
		sweep_over(s, 0, NULL);
}

void
volume_sweep(struct backend *b, const struct backend_sweep *how,
    backend_done_cb cb, void *arg)
{
	struct volume_sweeping *s = xcalloc(1, sizeof(*s));

	*s = (struct volume_sweeping){
	    .k = (struct kubernetes *)b, .how = *how, .cb = cb, .arg = arg};
	s->nplaces = pod_rooms_places(&s->k->rooms, &s->places);
	later(s->k->base, sweep_place, s);
}
