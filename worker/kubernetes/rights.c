/*
 * SelfSubjectRulesReview, authorization.k8s.io/v1: every caller that is known
 * may ask for it.  Its rules are looked at as the cluster would: a right is
 * there when one rule names its verb, group and resource, or "*".
 */
#include "worker/kubernetes/rights.h"

#include <stdio.h>

#include "common/js.h"
#include "common/xmalloc.h"
#include "worker/kubernetes/cluster.h"

#define RIGHTS_MS 10000

struct rights_ask {
	struct cluster_call *call;
	const struct rights_need *needs;
	size_t n;
	rights_cb cb;
	void *arg;
};

/* ---- what rules give */

static bool
has_word(const json_t *words, const char *word)
{
	const json_t *one;
	size_t i;

	json_array_foreach (words, i, one) {
		const char *text = js_plain(one);

		if (text != NULL &&
		    (strcmp(text, word) == 0 || strcmp(text, "*") == 0))
			return true;
	}
	return false;
}

/* "*" is of subresources, too, and so is "*" with the subresource's name. */
static bool
has_resource(const json_t *words, const char *resource)
{
	const char *slash = strchr(resource, '/');
	AUTO(auto_free) char *any = NULL;

	if (has_word(words, resource))
		return true;
	if (slash == NULL)
		return false;
	any = xasprintf("*%s", slash);
	return has_word(words, any);
}

/* A rule with names is of objects that are there already. */
static bool
gives(const json_t *rule, const struct rights_need *need)
{
	return json_array_size(json_object_get(rule, "resourceNames")) == 0 &&
	    has_word(json_object_get(rule, "verbs"), need->verb) &&
	    has_word(json_object_get(rule, "apiGroups"), need->group) &&
	    has_resource(json_object_get(rule, "resources"), need->resource);
}

static bool
is_given(const json_t *rules, const struct rights_need *need)
{
	const json_t *rule;
	size_t i;

	json_array_foreach (rules, i, rule)
		if (gives(rule, need))
			return true;
	return false;
}

void
rights_compare(const json_t *review, const struct rights_need *needs, size_t n,
    struct rights_found *out)
{
	const json_t *status = json_object_get(review, "status");
	const json_t *rules = json_object_get(status, "resourceRules");
	size_t at = 0;

	memset(out, 0, sizeof(*out));
	out->is_hint = json_is_true(json_object_get(status, "incomplete"));
	for (size_t i = 0; i < n && at < sizeof(out->missing); i++)
		if (!is_given(rules, &needs[i]))
			at += (size_t)snprintf(out->missing + at,
			    sizeof(out->missing) - at, "%s%s %s",
			    at > 0 ? ", " : "", needs[i].verb,
			    needs[i].resource);
}

/* ---- asking */

static void
review_done_cb(const struct cluster_answer *a, void *arg)
{
	struct rights_ask r = *(struct rights_ask *)arg;
	struct rights_found found;
	struct err e;

	free(arg);
	if (a->rc != 0) {
		r.cb(a->rc, NULL, a->why, r.arg);
	} else if (!json_is_array(json_object_get(
		       json_object_get(a->body, "status"), "resourceRules"))) {
		r.cb(err_set(&e, ERR_BACKEND,
			 "the cluster does not say what rights we have"),
		    NULL, &e, r.arg);
	} else {
		rights_compare(a->body, r.needs, r.n, &found);
		r.cb(0, &found, NULL, r.arg);
	}
}

struct rights_ask *
rights_ask_start(struct cluster *k, const char *ns,
    const struct rights_need *needs, size_t n, rights_cb cb, void *arg)
{
	struct rights_ask *r = xcalloc(1, sizeof(*r));
	AUTO(auto_json)
	json_t *body = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion",
	    "authorization.k8s.io/v1", "kind", "SelfSubjectRulesReview", "spec",
	    "namespace", ns);
	AUTO(auto_free) char *text = js_dump(body);

	r->needs = needs;
	r->n = n;
	r->cb = cb;
	r->arg = arg;
	r->call = cluster_start(k,
	    &(struct cluster_ask){.method = "POST",
		.path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
		.body = text,
		.timeout_ms = RIGHTS_MS,
		.on_done = review_done_cb,
		.arg = r});
	return r;
}

void
rights_ask_cancel(struct rights_ask *r)
{
	cluster_cancel(r->call);
	free(r);
}
