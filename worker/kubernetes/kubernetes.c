/*
 * The room's top: what the backend is made of.
 *
 *	kubernetes.c	composes; what follows when the cluster comes or goes,
 *			or tells of a Pod
 *	pod_create.c	a Pod that is to be
 *	pod_start.c	until it runs
 *	pod_removal.c	until it is gone
 *	pod_ops.c	Pods that are there
 *	volume_take.c, volume_forget.c, volume_sweep.c
 *			the claims that have sandboxes' files
 *	cluster_facts.c	what the cluster says of itself, for the doctor
 *	pod_ask.c	a request below the namespace
 *	pod_table.c	our Pods as they were told last
 *	pod_isolation.c, pod_view.c	JSON from it
 *	pod_body.c	JSON for it
 *	pod_volume.c	both, of claims
 *	pod_labels.c, pod_name.c, pod_settings.c
 *	network.c, network_body.c
 *			whether the cluster enforces policies
 *	pod_exec.c, exec_stream.c, websocket.c
 *			a program in one, and its streams
 *	pod_feed.c, rights.c, cluster.c
 *			the cluster's API
 *	kubeconfig.c, yaml_tree.c
 *			where it is, and who we are there
 *
 * Each calls only those below it.
 *
 *	the feed lists our Pods -> the version -> our rights -> up
 *	rights -> a trial of the network -> sandboxes can be made
 */
#include "worker/kubernetes/kubernetes_int.h"

#include <stdio.h>

#include "common/conf.h"
#include "common/js.h"
#include "common/log.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/kubernetes/pod_labels.h"

/* What no sandbox can do without, and behind it what none with a volume can. */
static const struct rights_need needs[] = {{"create", "", "pods"},
    {"get", "", "pods"}, {"list", "", "pods"}, {"watch", "", "pods"},
    {"delete", "", "pods"}, {"get", "", "pods/exec"},
    {"create", "", "pods/exec"}, {"create", "", "persistentvolumeclaims"},
    {"get", "", "persistentvolumeclaims"},
    {"list", "", "persistentvolumeclaims"},
    {"patch", "", "persistentvolumeclaims"},
    {"delete", "", "persistentvolumeclaims"}};
#define NEEDS_OF_VOLUMES 5

/* ---- whether the cluster is there */

static void
set_lack(struct kubernetes *k)
{
	const char *text =
	    k->rights_lack[0] != '\0' ? k->rights_lack : k->network_lack;

	if (strcmp(k->lack, text) == 0)
		return;
	(void)snprintf(k->lack, sizeof(k->lack), "%s", text);
	if (text[0] != '\0')
		log_warn("cluster: %s", text);
	if (k->user->on_lack != NULL)
		k->user->on_lack(k->lack, k->user_arg);
}

static void
say(struct kubernetes *k, bool up, const char *detail)
{
	if (k->known && k->up == up && strcmp(k->detail, detail) == 0)
		return;
	k->known = true;
	k->up = up;
	(void)snprintf(k->detail, sizeof(k->detail), "%s", detail);
	if (up)
		log_info("cluster is up, %s %s, namespace %s", k->about.name,
		    k->about.version, k->ns);
	else
		log_warn("cluster: %s", detail);
	if (up && k->user->on_about != NULL)
		k->user->on_about(&k->about, k->user_arg);
	k->user->on_state(up, k->detail, k->user_arg);
}

/* ---- whether sandboxes have no network */

static bool
is_to_be_closed(const struct kubernetes *k)
{
	return k->policy->network == POLICY_NETWORK_NONE &&
	    !k->settings.may_be_unenforced;
}

static void
set_verdict(struct kubernetes *k, enum network_verdict verdict)
{
	k->network_verdict = verdict;
	if (k->policy->network != POLICY_NETWORK_NONE)
		k->network_word = "bridge";
	else
		k->network_word =
		    verdict == NETWORK_CLOSED ? "none" : "none, not proven";
}

static void
network_tried_cb(enum network_verdict verdict, const char *why, void *arg)
{
	struct kubernetes *k = arg;

	k->network = NULL;
	set_verdict(k, verdict);
	(void)snprintf(k->network_lack, sizeof(k->network_lack), "%s", why);
	if (verdict == NETWORK_CLOSED)
		log_info("cluster enforces NetworkPolicies: it was tried");
	else
		timer_set_ms(k->network_again, KUBERNETES_NETWORK_MS);
	set_lack(k);
	pod_creates_resume(k);
}

/* Once, until it is known: a cluster's network is seldom exchanged. */
static void
try_network(void *arg)
{
	struct kubernetes *k = arg;
	const struct network_setup setup = {.base = k->base,
	    .cluster = k->cluster,
	    .ns = k->ns,
	    .id = k->id,
	    .settings = &k->settings};

	if (!is_to_be_closed(k) || k->network_verdict == NETWORK_CLOSED ||
	    k->network != NULL)
		return;
	k->network = network_trial_start(&setup, network_tried_cb, k);
}

/* ---- what we may do */

static void
note_rights(struct kubernetes *k, const struct rights_found *found)
{
	k->rights_lack[0] = '\0';
	if (found->missing[0] == '\0')
		return;
	(void)snprintf(k->rights_lack, sizeof(k->rights_lack),
	    "in namespace %s we may not: %s (a Role is missing)", k->ns,
	    found->missing);
	if (!found->is_hint)
		return;
	/* A cluster that does not say all may still let us. */
	log_warn("cluster: perhaps %s", k->rights_lack);
	k->rights_lack[0] = '\0';
}

static void
asked_rights_cb(
    int rc, const struct rights_found *found, const struct err *why, void *arg)
{
	static const struct rights_found none;
	struct kubernetes *k = arg;

	k->rights = NULL;
	if (rc == ERR_WRONG_STATE)
		return;
	if (rc != 0)
		log_warn("cluster: our rights are not known: %s", why->msg);
	note_rights(k, rc == 0 ? found : &none);
	if (k->rights_lack[0] != '\0')
		timer_set_ms(k->rights_again, KUBERNETES_RIGHTS_MS);
	else
		try_network(k);
	set_lack(k);
	say(k, true, "");
	if (k->network == NULL)
		pod_creates_resume(k);
}

static void
ask_rights(void *arg)
{
	struct kubernetes *k = arg;

	size_t n = ARRAY_LEN(needs);

	if (k->settings.volume_class[0] == '\0')
		n -= NEEDS_OF_VOLUMES;
	k->rights =
	    rights_ask_start(k->cluster, k->ns, needs, n, asked_rights_cb, k);
}

static void
version_cb(const struct cluster_answer *a, void *arg)
{
	struct kubernetes *k = arg;
	const char *version = js_text(a->body, "gitVersion");

	k->asking = NULL;
	if (a->rc == ERR_WRONG_STATE)
		return;
	k->about = (struct backend_about){.name = "Kubernetes", .api = "v1"};
	text_clean(k->about.version, sizeof(k->about.version), version,
	    strlen(version));
	(void)snprintf(k->about.runtime, sizeof(k->about.runtime), "%s",
	    k->policy->runtime);
	ask_rights(k);
}

static void
stop_asking(struct kubernetes *k)
{
	if (k->asking != NULL)
		cluster_cancel(k->asking);
	if (k->rights != NULL)
		rights_ask_cancel(k->rights);
	if (k->network != NULL)
		network_trial_cancel(k->network);
	k->asking = NULL;
	k->rights = NULL;
	k->network = NULL;
	timer_stop(k->rights_again);
	timer_stop(k->network_again);
}

static void
on_state(bool up, const char *detail, void *arg)
{
	struct kubernetes *k = arg;

	stop_asking(k);
	if (!up) {
		say(k, false, detail);
		pod_creates_resume(k);
		return;
	}
	k->asking = cluster_start(k->cluster,
	    &(struct cluster_ask){.method = "GET",
		.path = "/version",
		.timeout_ms = KUBERNETES_ASK_MS,
		.on_done = version_cb,
		.arg = k});
}

/* ---- what it tells of Pods */

static void
tell(struct kubernetes *k, const char *name, enum backend_change what)
{
	struct backend_handle h;

	backend_handle_named(&h, name);
	k->user->on_change(&h, what, k->user_arg);
}

static void
on_pod(const json_t *pod, void *arg)
{
	struct kubernetes *k = arg;
	struct pod_state s;
	struct err e;
	enum pod_news news;

	if (pod_view_state(pod, k->settings.container, &s, &e) != 0) {
		log_debug("cluster: %s", e.msg);
		return;
	}
	news = pod_table_see(&k->pods, &s);
	if (news == POD_NEWS_KILLED)
		tell(k, s.name, BACKEND_OOM);
	if (news != POD_NEWS_NONE)
		tell(k, s.name, BACKEND_DIED);
}

static void
on_gone(const char *name, const char *uid, void *arg)
{
	struct kubernetes *k = arg;

	if (pod_table_gone(&k->pods, name, uid))
		tell(k, name, BACKEND_DESTROYED);
}

static void
on_listed(void *arg)
{
	const struct kubernetes *k = arg;

	log_debug("cluster: %zu Pods of ours", k->pods.by_name.count);
}

static const struct pod_feed_user feed_user = {.on_pod = on_pod,
    .on_gone = on_gone,
    .on_state = on_state,
    .on_listed = on_listed};

/* ---- life */

static struct backend_exec *
kubernetes_exec(struct backend *b, const struct backend_handle *h,
    const char *const *command, const struct backend_exec_user *user, void *arg)
{
	struct kubernetes *k = (struct kubernetes *)b;
	char name[POD_NAME_MAX + 1];

	pod_name(backend_handle_text(h), name);
	return pod_exec_start(&k->execs, name, command, user, arg);
}

static enum backend_users
kubernetes_users(const struct backend *b)
{
	return ((const struct kubernetes *)b)->settings.host_users ==
		POD_HOST_USERS_FALSE ?
	    BACKEND_USERS_MAPPED :
	    BACKEND_USERS_SAME;
}

static const char *const *
kubernetes_files(const struct backend *b)
{
	return cluster_files(((const struct kubernetes *)b)->cluster);
}

/* Those that wait for an answer are told by cluster_free. */
static void
kubernetes_free(struct backend *b)
{
	struct kubernetes *k = (struct kubernetes *)b;

	k->freeing = true;
	if (k->cluster != NULL) {
		pod_feed_stop(k->feed);
		stop_asking(k);
		pod_execs_clear(&k->execs);
		cluster_free(k->cluster);
		pod_creates_clear(k);
		pod_starts_clear(k);
		pod_removals_clear(k);
		pod_table_clear(&k->pods);
		timer_free(k->rights_again);
		timer_free(k->network_again);
	}
	pod_settings_clear(&k->settings);
	free(k->ns);
	free(k->instance);
	free(k->id);
	free(k);
}

static const struct backend_ops kubernetes_ops = {
    .can = BACKEND_CAN_EXEC | BACKEND_CAN_PREPARE,
    .free = kubernetes_free,
    .create = pod_create,
    .abandon = pod_create_abandon,
    .start = pod_start,
    .start_abandon = pod_start_abandon,
    .inspect = pod_inspect,
    .remove = pod_remove,
    .is_id = pod_name_is_label,
    .users = kubernetes_users,
    .list = pod_list,
    .exec = kubernetes_exec,
    .exec_cancel = pod_exec_cancel,
    .files = kubernetes_files};

/* With KUBERNETES_VOLUME_CLASS there are files that outlive a box. */
static void
choose_ops(struct kubernetes *k)
{
	k->ops = kubernetes_ops;
	if (k->settings.volume_class[0] != '\0') {
		k->ops.forget_files = volume_forget;
		k->ops.sweep_files = volume_sweep;
	}
	k->b.ops = &k->ops;
}

static int
open_cluster(struct kubernetes *k, const struct conf *conf, struct err *e)
{
	const char *ns;

	if (pod_settings_init(&k->settings, conf, e) != 0 ||
	    cluster_open(k->base,
		&(struct cluster_setup){
		    .kubeconfig = conf_str(conf, CONF_KUBECONFIG),
		    .context = conf_str(conf, CONF_KUBERNETES_CONTEXT)},
		&k->cluster, e) != 0)
		return ERR_INVAL;
	choose_ops(k);
	ns = k->settings.ns[0] != '\0' ? k->settings.ns :
					 cluster_namespace(k->cluster);
	k->ns = xstrdup(ns);
	TAILQ_INIT(&k->creates);
	TAILQ_INIT(&k->starts);
	TAILQ_INIT(&k->removals);
	k->rights_again = timer_new(k->base, ask_rights, k);
	k->network_again = timer_new(k->base, try_network, k);
	set_verdict(k, NETWORK_UNKNOWN);
	if (is_to_be_closed(k))
		(void)snprintf(k->network_lack, sizeof(k->network_lack),
		    "whether the cluster enforces NetworkPolicies is not "
		    "known yet");
	pod_table_init(&k->pods, k->base);
	pod_execs_init(
	    &k->execs, k->base, k->cluster, k->ns, k->settings.container);
	if (pod_name_is_label(ns))
		return 0;
	return err_set(e, ERR_INVAL,
	    "KUBECONFIG: \"%.64s\" is no name of a namespace", ns);
}

int
kubernetes_open(const struct conf *conf, const struct backend_start *start,
    struct backend **out, struct err *e)
{
	struct kubernetes *k = xcalloc(1, sizeof(*k));
	AUTO(auto_free) char *selector = NULL;

	k->b.ops = &kubernetes_ops;
	k->base = start->base;
	k->policy = start->policy;
	k->user = start->watch;
	k->user_arg = start->arg;
	k->instance = xstrdup(conf_str(conf, CONF_INSTANCE));
	k->id = xstrdup(start->instance_id);
	if (open_cluster(k, conf, e) != 0) {
		kubernetes_free(&k->b);
		return ERR_INVAL;
	}
	k->ours = (struct pod_ours){.prefix = k->settings.prefix,
	    .id = k->id,
	    .container = k->settings.container};
	(void)snprintf(k->b.port, sizeof(k->b.port), "%u",
	    (unsigned int)cluster_port(k->cluster));
	selector = pod_selector(k->settings.prefix, k->id);
	k->feed =
	    pod_feed_start(k->base, k->cluster, k->ns, selector, &feed_user, k);
	*out = &k->b;
	return 0;
}
