/*
 * Pods that are there: inspected, listed.  Both ask the cluster and not what is
 * known here (pod_table.h), which may be a moment behind.
 */
#include "worker/kubernetes/kubernetes_int.h"

#include <stdio.h>

#include "common/xmalloc.h"
#include "worker/kubernetes/pod_isolation.h"
#include "worker/kubernetes/pod_labels.h"

/* ---- inspect */

struct pod_inspection {
	struct kubernetes *k;
	backend_container_cb cb;
	void *arg;
};

static void
inspected_cb(const struct cluster_answer *a, void *arg)
{
	struct pod_inspection *r = arg;
	struct kubernetes *k = r->k;
	struct backend_container c = {.is_ours = false};
	struct backend_report report;
	struct err e;
	int rc = pod_check(a, "inspect", &e);

	if (rc == 0)
		rc = pod_view_container(a->body, &k->ours, &c, &report, &e);
	if (rc == 0 && c.is_ours)
		pod_isolation_write(a->body, k->ours.container, k->network_word,
		    report.isolation);
	r->cb(rc, rc == 0 ? &c : NULL, rc == 0 ? NULL : &e, r->arg);
	free(r);
}

void
pod_inspect(struct backend *b, const struct backend_handle *h,
    backend_container_cb cb, void *arg)
{
	struct pod_inspection *r = xcalloc(1, sizeof(*r));
	char name[POD_NAME_MAX + 1];

	r->k = (struct kubernetes *)b;
	r->cb = cb;
	r->arg = arg;
	pod_name(backend_handle_text(h), name);
	(void)pod_ask(r->k,
	    &(struct cluster_ask){.method = "GET",
		.timeout_ms = KUBERNETES_ASK_MS,
		.on_done = inspected_cb,
		.arg = r},
	    "pods/%s", name);
}

/* ---- list */

struct pod_listing {
	struct kubernetes *k;
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
	free(l->all);
	free(l);
}

/* What is no Pod, or not ours after all, is left out. */
static int
take_page(struct pod_listing *l, const json_t *items, struct err *e)
{
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
		if (pod_view_container(json_array_get(items, i), &l->k->ours,
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
page_cb(const struct cluster_answer *a, void *arg)
{
	struct pod_listing *l = arg;
	struct err e;
	int rc = pod_check(a, "list", &e);

	if (rc == 0)
		rc = take_page(l, json_object_get(a->body, "items"), &e);
	if (rc == 0 && rest_of(a->body)[0] != '\0')
		page_ask(l, rest_of(a->body));
	else
		list_end(l, rc, &e);
}

static void
page_ask(struct pod_listing *l, const char *from)
{
	struct kubernetes *k = l->k;
	AUTO(auto_free)
	char *selector = pod_selector(k->settings.prefix, k->id);
	AUTO(auto_free) char *which = api_escape(selector);
	AUTO(auto_free) char *at = api_escape(from);

	(void)pod_ask(k,
	    &(struct cluster_ask){.method = "GET",
		.timeout_ms = KUBERNETES_LIST_MS,
		.max_body = KUBERNETES_PAGE_MAX,
		.on_done = page_cb,
		.arg = l},
	    "pods?labelSelector=%s&limit=%d%s%s", which, KUBERNETES_PAGE,
	    from[0] != '\0' ? "&continue=" : "", at);
}

void
pod_list(struct backend *b, backend_list_cb cb, void *arg)
{
	struct pod_listing *l = xcalloc(1, sizeof(*l));

	l->k = (struct kubernetes *)b;
	l->all = xcalloc(1, sizeof(*l->all));
	l->cap = 1;
	l->cb = cb;
	l->arg = arg;
	page_ask(l, "");
}
