/*
 * Pods that are there: inspected, listed.  Both ask the cluster and not what is
 * known here (pod_table.h), which may be a moment behind.
 */
#include "worker/kubernetes/kubernetes_int.h"

#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/later.h"
#include "worker/kubernetes/pod_isolation.h"
#include "worker/kubernetes/pod_labels.h"

/* ---- inspect */

struct pod_inspection {
	const struct pod_room *room;
	struct err why; /* without one */
	backend_container_cb cb;
	void *arg;
};

static void
inspected_cb(const struct cluster_answer *a, void *arg)
{
	struct pod_inspection *r = arg;
	const struct pod_ours *ours = &r->room->ours;
	struct backend_container c = {.is_ours = false};
	struct backend_report report;
	struct err e;
	int rc = pod_check(a, "inspect", &e);

	if (rc == 0)
		rc = pod_view_container(a->body, ours, &c, &report, &e);
	if (rc == 0 && c.is_ours)
		pod_isolation_write(a->body, ours->container,
		    r->room->network_word, report.isolation);
	r->cb(rc, rc == 0 ? &c : NULL, rc == 0 ? NULL : &e, r->arg);
	free(r);
}

/* Of a name that gives no namespace there is no Pod. */
static void
no_room_cb(void *arg)
{
	struct pod_inspection *r = arg;
	int rc = r->why.code == ERR_POLICY ? ERR_NOTFOUND : ERR_BACKEND;

	r->cb(rc, NULL, &r->why, r->arg);
	free(r);
}

void
pod_inspect(struct backend *b, const struct backend_handle *h,
    backend_container_cb cb, void *arg)
{
	struct kubernetes *k = (struct kubernetes *)b;
	struct pod_inspection *r = xcalloc(1, sizeof(*r));
	char name[POD_NAME_MAX + 1];

	r->cb = cb;
	r->arg = arg;
	r->room = pod_rooms_of(&k->rooms, h->tenant, &r->why);
	if (r->room == NULL) {
		later(k->base, no_room_cb, r);
		return;
	}
	pod_name(backend_handle_text(h), name);
	(void)pod_ask(k->cluster, r->room->ns,
	    &(struct cluster_ask){.method = "GET",
		.timeout_ms = KUBERNETES_ASK_MS,
		.on_done = inspected_cb,
		.arg = r},
	    "pods/%s", name);
}

/* ---- list: one namespace after another */

struct pod_listing {
	struct kubernetes *k;
	struct pod_place *places;
	size_t nplaces, at;
	struct backend_container *all;
	size_t n, cap;
	backend_list_cb cb;
	void *arg;
};

static void page_ask(struct pod_listing *l, const char *from);

static void
list_end(struct pod_listing *l, int rc, const struct err *why)
{
	l->cb(rc, rc == 0 ? l->all : NULL, rc == 0 ? l->n : 0,
	    rc == 0 ? NULL : why, l->arg);
	free(l->places);
	free(l->all);
	free(l);
}

/* What is no Pod, or not ours after all, is left out. */
static int
take_page(struct pod_listing *l, const json_t *items, struct err *e)
{
	const struct kubernetes *k = l->k;
	const struct pod_ours ours = {.prefix = k->settings.prefix,
	    .id = k->id,
	    .container = k->settings.container,
	    .tenant = l->places[l->at].tenant};
	size_t n = json_array_size(items);

	if (!json_is_array(items))
		return err_set(e, ERR_BACKEND,
		    "list: the cluster's answer has no good items");
	if (n > BACKEND_LIST_MAX - l->n)
		return err_set(e, ERR_BACKEND,
		    "list: the cluster has more than %d Pods of ours",
		    BACKEND_LIST_MAX);
	if (l->n + n + 1 > l->cap) {
		l->cap = l->n + n + 1;
		l->all = xreallocarray(l->all, l->cap, sizeof(*l->all));
	}
	for (size_t i = 0; i < n; i++)
		if (pod_view_container(json_array_get(items, i), &ours,
			&l->all[l->n], NULL, NULL) == 0)
			l->n++;
	return 0;
}

static const char *
rest_of(const json_t *body)
{
	const char *s = json_string_value(
	    json_object_get(json_object_get(body, "metadata"), "continue"));

	return s == NULL ? "" : s;
}

static void
place_next(struct pod_listing *l)
{
	if (l->at < l->nplaces)
		page_ask(l, "");
	else
		list_end(l, 0, NULL);
}

bool
pod_list_passes_over(const struct kubernetes *k, const struct cluster_answer *a)
{
	return k->rooms.is_per_tenant && (a->status == 403 || a->status == 404);
}

static void
page_cb(const struct cluster_answer *a, void *arg)
{
	struct pod_listing *l = arg;
	struct err e;
	int rc = pod_check(a, "list", &e);

	if (rc == 0)
		rc = take_page(l, json_object_get(a->body, "items"), &e);
	if (rc == 0 && rest_of(a->body)[0] != '\0') {
		page_ask(l, rest_of(a->body));
	} else if (rc == 0 || pod_list_passes_over(l->k, a)) {
		if (rc != 0)
			log_debug("cluster: %s", e.msg);
		l->at++;
		place_next(l);
	} else {
		list_end(l, rc, &e);
	}
}

static void
page_ask(struct pod_listing *l, const char *from)
{
	struct kubernetes *k = l->k;
	AUTO(auto_free)
	char *selector = pod_selector(k->settings.prefix, k->id);
	AUTO(auto_free) char *which = api_escape(selector);
	AUTO(auto_free) char *at = api_escape(from);

	(void)pod_ask(k->cluster, l->places[l->at].ns,
	    &(struct cluster_ask){.method = "GET",
		.timeout_ms = KUBERNETES_LIST_MS,
		.max_body = KUBERNETES_PAGE_MAX,
		.on_done = page_cb,
		.arg = l},
	    "pods?labelSelector=%s&limit=%d%s%s", which, KUBERNETES_PAGE,
	    from[0] != '\0' ? "&continue=" : "", at);
}

static void
list_cb(void *arg)
{
	struct pod_listing *l = arg;

	place_next(l);
}

void
pod_list(struct backend *b, backend_list_cb cb, void *arg)
{
	struct kubernetes *k = (struct kubernetes *)b;
	struct pod_listing *l = xcalloc(1, sizeof(*l));

	l->k = k;
	l->nplaces = pod_rooms_places(&k->rooms, &l->places);
	l->all = xcalloc(1, sizeof(*l->all));
	l->cap = 1;
	l->cb = cb;
	l->arg = arg;
	if (l->nplaces == 0)
		later(k->base, list_cb, l);
	else
		page_ask(l, "");
}
