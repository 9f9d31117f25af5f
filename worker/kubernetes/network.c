#include "worker/kubernetes/network.h"

#include <stdio.h>

#include "common/hex.h"
#include "common/js.h"
#include "common/log.h"
#include "common/random.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/kubernetes/cluster.h"
#include "worker/kubernetes/network_body.h"
#include "worker/kubernetes/pod_labels.h"
#include "worker/kubernetes/pod_view.h"

#define NETWORK_ASK_MS 15000
#define NETWORK_LOOK_MS 300
#define NETWORK_TRIES_MS 30000 /* of the callers, behind their start */
#define NETWORK_MARK_BYTES 4   /* of a trial: two workers may try at a time */

#define POLICIES "/apis/networking.k8s.io/v1/namespaces/%s/networkpolicies"
#define PODS "/api/v1/namespaces/%s/pods"

struct network_one {
	char name[POD_NAME_MAX + 1];
	char uid[POD_UID_MAX + 1]; /* "": it was not made */
	bool has_ended;
	int32_t exit_code;
};

struct network_trial {
	struct network_setup setup;
	network_cb cb;
	void *arg;
	struct cluster_call *call;
	/* What comes after the answer that is waited for. */
	void (*on_answer)(
	    struct network_trial *t, const struct cluster_answer *a);
	struct timer *timer;
	uint64_t waited_ms; /* for what is waited for now */
	enum network_part part;
	struct network_one all[NETWORK_PARTS];
	char address[64]; /* of the listener */
	enum network_verdict verdict;
	struct err why;
};

static void remove_next(struct network_trial *t);

/* ---- asking */

static void
answered_cb(const struct cluster_answer *a, void *arg)
{
	struct network_trial *t = arg;

	t->call = NULL;
	t->on_answer(t, a);
}

static void
ask(struct network_trial *t, const char *method, const char *path,
    const char *body,
    void (*on_answer)(struct network_trial *, const struct cluster_answer *))
{
	t->on_answer = on_answer;
	t->call = cluster_start(t->setup.cluster,
	    &(struct cluster_ask){.method = method,
		.path = path,
		.body = body,
		.timeout_ms = NETWORK_ASK_MS,
		.on_done = answered_cb,
		.arg = t});
}

/* ---- the end */

static void
conclude(struct network_trial *t)
{
	struct network_trial told = *t;

	timer_free(t->timer);
	free(t);
	told.cb(told.verdict,
	    told.verdict == NETWORK_CLOSED ? "" : told.why.msg, told.arg);
}

/* t->why is written, unless it is closed. */
static void
end_with(struct network_trial *t, enum network_verdict verdict)
{
	t->verdict = verdict;
	t->part = NETWORK_LISTENER;
	remove_next(t);
}

static void
end_unknown(struct network_trial *t, const char *what, const char *why)
{
	(void)err_set(&t->why, ERR_BACKEND,
	    "whether NetworkPolicies are enforced is not known: %s: %s", what,
	    why);
	end_with(t, NETWORK_UNKNOWN);
}

static void
end_open(struct network_trial *t)
{
	(void)err_set(&t->why, ERR_POLICY,
	    "the cluster does not enforce NetworkPolicies: a Pod that may "
	    "reach nobody reached another");
	end_with(t, NETWORK_OPEN);
}

static void
removed(struct network_trial *t, const struct cluster_answer *a)
{
	if (a->rc != 0 && a->rc != ERR_NOTFOUND)
		log_warn("cluster: Pod %s of a trial of the network stays: %s",
		    t->all[t->part].name, a->why->msg);
	t->part++;
	remove_next(t);
}

static void
remove_next(struct network_trial *t)
{
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_free) char *body = NULL;

	while (t->part < NETWORK_PARTS && t->all[t->part].uid[0] == '\0')
		t->part++;
	if (t->part == NETWORK_PARTS) {
		conclude(t);
		return;
	}
	path = xasprintf(PODS "/%s", t->setup.ns, t->all[t->part].name);
	body = xasprintf("{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
			 "\"gracePeriodSeconds\":1,"
			 "\"preconditions\":{\"uid\":\"%s\"}}",
	    t->all[t->part].uid);
	ask(t, "DELETE", path, body, removed);
}

/* ---- the callers */

static void
judge(struct network_trial *t)
{
	if (t->all[NETWORK_FREE].exit_code != 0)
		end_unknown(t, "a Pod without a policy",
		    "it did not reach another one");
	else if (t->all[NETWORK_BARRED].exit_code != 0)
		end_open(t);
	else
		end_with(t, NETWORK_CLOSED);
}

static void look(struct network_trial *t);

static void
look_cb(void *arg)
{
	look(arg);
}

/* Again, unless it takes too long. */
static void
look_later(struct network_trial *t, const char *reason)
{
	uint64_t most = t->setup.settings->pending_ms + NETWORK_TRIES_MS;

	t->waited_ms += NETWORK_LOOK_MS;
	if (t->waited_ms > most)
		end_unknown(t, "a Pod that tries it",
		    reason[0] != '\0' ? reason : "it takes too long");
	else
		timer_set_ms(t->timer, NETWORK_LOOK_MS);
}

/* ---- making Pods */

static void
made(struct network_trial *t, const struct cluster_answer *a)
{
	struct network_one *one = &t->all[t->part];
	struct pod_state s;
	struct err e;

	if (a->rc != 0) {
		end_unknown(t, "making a Pod that tries it", a->why->msg);
		return;
	}
	if (pod_view_state(a->body, NETWORK_CONTAINER, &s, &e) != 0) {
		end_unknown(t, "making a Pod that tries it", e.msg);
		return;
	}
	(void)snprintf(one->uid, sizeof(one->uid), "%s", s.uid);
	t->waited_ms = 0;
	look(t);
}

static void
make(struct network_trial *t, enum network_part part)
{
	const struct network_one *listener = &t->all[NETWORK_LISTENER];
	bool is_caller = part != NETWORK_LISTENER;
	const struct network_pod pod = {.settings = t->setup.settings,
	    .id = t->setup.id,
	    .name = t->all[part].name,
	    .part = part,
	    .address = is_caller ? t->address : NULL,
	    .owner_name = is_caller ? listener->name : NULL,
	    .owner_uid = is_caller ? listener->uid : NULL};
	AUTO(auto_free) char *body = network_pod_body(&pod);
	AUTO(auto_free)
	char *path = xasprintf(PODS "?fieldValidation=Strict", t->setup.ns);

	t->part = part;
	ask(t, "POST", path, body, made);
}

/* ---- looking at them, in turn */

/* One that is barred proves nothing when the listener has gone meanwhile. */
static void
go_on(struct network_trial *t)
{
	if (t->part == NETWORK_BARRED) {
		t->part = NETWORK_LISTENER;
		look(t);
	} else if (t->part == NETWORK_FREE && t->all[t->part].exit_code == 0) {
		make(t, NETWORK_BARRED);
	} else if (t->part == NETWORK_LISTENER &&
	    !t->all[NETWORK_FREE].has_ended) {
		make(t, NETWORK_FREE);
	} else {
		judge(t);
	}
}

/* Whether it is as far as it has to be. */
static bool
is_there(struct network_trial *t, const json_t *pod, const struct pod_state *s)
{
	struct network_one *one = &t->all[t->part];

	if (t->part == NETWORK_LISTENER)
		return s->phase == POD_RUNNING &&
		    network_pod_address(pod, t->address, sizeof(t->address));
	one->has_ended = s->phase == POD_ENDED;
	one->exit_code = s->exit_code;
	return one->has_ended;
}

/* One that was taken away, or ended otherwise than by its program. */
static bool
is_lost(const struct network_trial *t, const struct pod_state *s)
{
	return strcmp(s->uid, t->all[t->part].uid) != 0 ||
	    s->phase == POD_REMOVING || s->was_ended_from_outside ||
	    (t->part == NETWORK_LISTENER && s->phase == POD_ENDED) ||
	    (s->phase == POD_PENDING && s->is_hopeless);
}

static void
seen(struct network_trial *t, const struct cluster_answer *a)
{
	struct pod_state s;
	struct err e;

	if (a->rc != 0)
		end_unknown(t, "a Pod that tries it", a->why->msg);
	else if (pod_view_state(a->body, NETWORK_CONTAINER, &s, &e) != 0)
		end_unknown(t, "a Pod that tries it", e.msg);
	else if (is_lost(t, &s))
		end_unknown(t, "a Pod that tries it",
		    s.reason[0] != '\0' ? s.reason : "it is gone");
	else if (is_there(t, a->body, &s))
		go_on(t);
	else
		look_later(t, s.reason);
}

static void
look(struct network_trial *t)
{
	AUTO(auto_free)
	char *path = xasprintf(PODS "/%s", t->setup.ns, t->all[t->part].name);

	ask(t, "GET", path, NULL, seen);
}

/* ---- the policy */

static void
policy_made(struct network_trial *t, const struct cluster_answer *a)
{
	/* 409: another worker made it meanwhile. */
	if (a->rc != 0 && a->rc != ERR_CONFLICT)
		end_unknown(
		    t, "making NetworkPolicy " NETWORK_POLICY, a->why->msg);
	else
		make(t, NETWORK_LISTENER);
}

static void
make_policy(struct network_trial *t)
{
	AUTO(auto_free)
	char *body = network_policy_body(t->setup.settings->prefix);
	AUTO(auto_free)
	char *path = xasprintf(POLICIES "?fieldValidation=Strict", t->setup.ns);

	ask(t, "POST", path, body, policy_made);
}

static void
policy_seen(struct network_trial *t, const struct cluster_answer *a)
{
	const struct pod_settings *s = t->setup.settings;

	if (a->rc == ERR_NOTFOUND && s->network_rule == POD_NETWORK_MAKE) {
		make_policy(t);
	} else if (a->rc == ERR_NOTFOUND) {
		(void)err_set(&t->why, ERR_POLICY,
		    "there is no NetworkPolicy " NETWORK_POLICY
		    ": make it, or set KUBERNETES_NETWORK_POLICY=make");
		end_with(t, NETWORK_OPEN);
	} else if (a->rc != 0) {
		end_unknown(t, "NetworkPolicy " NETWORK_POLICY, a->why->msg);
	} else if (network_policy_check(a->body, s->prefix, &t->why) != 0) {
		end_with(t, NETWORK_OPEN);
	} else {
		make(t, NETWORK_LISTENER);
	}
}

static void
see_policy(struct network_trial *t)
{
	AUTO(auto_free)
	char *path = xasprintf(POLICIES "/" NETWORK_POLICY, t->setup.ns);

	if (t->setup.settings->network_rule == POD_NETWORK_LEAVE)
		make(t, NETWORK_LISTENER);
	else
		ask(t, "GET", path, NULL, policy_seen);
}

/* ---- what an earlier trial left */

static void
tidied(struct network_trial *t, const struct cluster_answer *a)
{
	(void)a; /* the next trial sees it again */
	see_policy(t);
}

/* Its listener outlived all of the trial.  The callers go with it. */
static bool
is_leftover(const json_t *pod)
{
	return strcmp(js_text(json_object_get(pod, "status"), "reason"),
		   "DeadlineExceeded") == 0;
}

static void
listed(struct network_trial *t, const struct cluster_answer *a)
{
	const json_t *items = json_object_get(a->body, "items"), *pod;
	size_t i;

	json_array_foreach (items, i, pod) {
		const char *name =
		    js_text(json_object_get(pod, "metadata"), "name");
		AUTO(auto_free) char *path = NULL;

		if (!is_leftover(pod) || !pod_name_is_label(name))
			continue;
		path = xasprintf(PODS "/%s", t->setup.ns, name);
		ask(t, "DELETE", path, NULL, tidied);
		return;
	}
	see_policy(t);
}

static void
tidy(struct network_trial *t)
{
	AUTO(auto_free)
	char *path = xasprintf(PODS
	    "?limit=50&labelSelector=%s%%2F" POD_LABEL_TRIAL "%%3D%s",
	    t->setup.ns, t->setup.settings->prefix, t->setup.id);

	ask(t, "GET", path, NULL, listed);
}

/* ---- life */

static void
name_all(struct network_trial *t)
{
	static const char *const parts[NETWORK_PARTS] = {
	    [NETWORK_LISTENER] = "listen",
	    [NETWORK_FREE] = "reach",
	    [NETWORK_BARRED] = "barred"};
	uint8_t mark[NETWORK_MARK_BYTES];
	char text[HEX_BYTES(NETWORK_MARK_BYTES)];

	random_fill(mark, sizeof(mark));
	hex_encode(mark, sizeof(mark), text);
	for (size_t i = 0; i < NETWORK_PARTS; i++)
		(void)snprintf(t->all[i].name, sizeof(t->all[i].name),
		    "mcp-sandboxd-network-%s-%s", text, parts[i]);
}

struct network_trial *
network_trial_start(const struct network_setup *setup, network_cb cb, void *arg)
{
	struct network_trial *t = xcalloc(1, sizeof(*t));

	t->setup = *setup;
	t->cb = cb;
	t->arg = arg;
	t->timer = timer_new(setup->base, look_cb, t);
	name_all(t);
	tidy(t);
	return t;
}

void
network_trial_cancel(struct network_trial *t)
{
	if (t->call != NULL)
		cluster_cancel(t->call);
	timer_free(t->timer);
	free(t);
}
