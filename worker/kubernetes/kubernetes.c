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
 *	pod_ask.c	a request below a namespace
 *	pod_room.c	the namespaces, and what each has and lacks
 *	pod_table.c	our Pods as they were told last
 *	pod_isolation.c, pod_view.c	JSON from it
 *	pod_body.c	JSON for it
 *	pod_volume.c	both, of claims
 *	pod_labels.c, pod_name.c, pod_namespace.c, pod_settings.c
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
 *	a room hears from the cluster -> the version -> up
 */
#include "worker/kubernetes/kubernetes_int.h"

#include <stdio.h>

#include "common/conf.h"
#include "common/js.h"
#include "common/log.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/kubernetes/pod_namespace.h"

/* ---- whether the cluster is there */

/* Where there is one room, what it lacks all tenants do. */
static void
set_lack(struct kubernetes *k)
{
	const char *text = k->rooms.is_per_tenant ?
	    "" :
	    pod_room_lack(TAILQ_FIRST(&k->rooms.all));

	if (strcmp(k->lack, text) == 0)
		return;
	(void)snprintf(k->lack, sizeof(k->lack), "%s", text);
	if (k->user->on_lack != NULL)
		k->user->on_lack(k->lack, k->user_arg);
}

static void
say(struct kubernetes *k, bool up, const char *detail)
{
	bool was_up = k->known && k->up;

	if (k->known && k->up == up && strcmp(k->detail, detail) == 0)
		return;
	k->known = true;
	k->up = up;
	(void)snprintf(k->detail, sizeof(k->detail), "%s", detail);
	if (up && !was_up)
		log_info(
		    "cluster is up, %s %s", k->about.name, k->about.version);
	else if (!up)
		log_warn("cluster: %s", detail);
	if (up && k->user->on_about != NULL)
		k->user->on_about(&k->about, k->user_arg);
	k->user->on_state(up, k->detail, k->user_arg);
}

/* The rights in the only room come first: without them it is up for nobody. */
static void
say_up(struct kubernetes *k)
{
	char detail[ERR_TEXT_MAX];

	if (!k->rooms.is_per_tenant &&
	    !pod_room_is_settled(TAILQ_FIRST(&k->rooms.all)))
		return;
	pod_rooms_lacks(&k->rooms, detail, sizeof(detail));
	say(k, true, detail);
}

static void
lose(struct kubernetes *k, const char *detail)
{
	if (k->asking != NULL)
		cluster_cancel(k->asking);
	k->asking = NULL;
	k->is_reached = false;
	say(k, false, detail);
}

static void
version_cb(const struct cluster_answer *a, void *arg)
{
	struct kubernetes *k = arg;
	const char *version = js_text(a->body, "gitVersion");

	k->asking = NULL;
	if (a->rc == ERR_WRONG_STATE)
		return;
	if (TAILQ_EMPTY(&k->rooms.all))
		timer_set_ms(k->look, KUBERNETES_LOOK_MS);
	if (!k->is_reached && a->rc != 0) {
		lose(k, a->why->msg);
		return;
	}
	k->is_reached = true;
	k->about = (struct backend_about){.name = "Kubernetes", .api = "v1"};
	text_clean(k->about.version, sizeof(k->about.version), version,
	    strlen(version));
	(void)snprintf(k->about.runtime, sizeof(k->about.runtime), "%s",
	    k->policy->runtime);
	say_up(k);
}

static void
ask_version(struct kubernetes *k)
{
	if (k->asking != NULL)
		return;
	k->asking = cluster_start(k->cluster,
	    &(struct cluster_ask){.method = "GET",
		.path = "/version",
		.timeout_ms = KUBERNETES_ASK_MS,
		.on_done = version_cb,
		.arg = k});
}

/* Until there is a room, which hears by itself. */
static void
look_cb(void *arg)
{
	struct kubernetes *k = arg;

	if (!TAILQ_EMPTY(&k->rooms.all))
		return;
	k->is_reached = false;
	ask_version(k);
}

static void
on_news(void *arg)
{
	struct kubernetes *k = arg;
	const char *detail;
	enum pod_contact contact = pod_rooms_contact(&k->rooms, &detail);

	set_lack(k);
	if (contact == POD_CONTACT_LOST) {
		lose(k, detail);
	} else if (contact == POD_CONTACT_UP && !k->is_reached) {
		k->is_reached = true;
		ask_version(k);
	} else if (contact == POD_CONTACT_UP && k->asking == NULL) {
		say_up(k);
	}
	pod_creates_resume(k);
}

static void
on_change(const struct backend_handle *h, enum backend_change what, void *arg)
{
	struct kubernetes *k = arg;

	k->user->on_change(h, what, k->user_arg);
}

static const struct pod_rooms_user rooms_user = {
    .on_news = on_news, .on_change = on_change};

/* ---- life */

static struct backend_exec *
kubernetes_exec(struct backend *b, const struct backend_handle *h,
    const char *const *command, const struct backend_exec_user *user, void *arg)
{
	const struct kubernetes *k = (const struct kubernetes *)b;
	char name[POD_NAME_MAX + 1];

	pod_name(backend_handle_text(h), name);
	return pod_exec_start(
	    &kubernetes_room(k, h)->execs, name, command, user, arg);
}

static void
kubernetes_name_tenant(struct backend *b, const char *tenant)
{
	pod_rooms_name(&((struct kubernetes *)b)->rooms, tenant);
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
		pod_rooms_stop(&k->rooms);
		cluster_free(k->cluster);
		pod_creates_clear(k);
		pod_starts_clear(k);
		pod_removals_clear(k);
		pod_rooms_clear(&k->rooms);
		timer_free(k->look);
	}
	pod_settings_clear(&k->settings);
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
    .name_tenant = kubernetes_name_tenant,
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
	TAILQ_INIT(&k->creates);
	TAILQ_INIT(&k->starts);
	TAILQ_INIT(&k->removals);
	if (!pod_namespace_is_per_tenant(k->settings.ns) &&
	    !pod_name_is_label(ns))
		return err_set(e, ERR_INVAL,
		    "KUBECONFIG: \"%.64s\" is no name of a namespace", ns);
	k->look = timer_new(k->base, look_cb, k);
	pod_rooms_init(&k->rooms,
	    &(struct pod_rooms_parts){.base = k->base,
		.cluster = k->cluster,
		.policy = k->policy,
		.settings = &k->settings,
		.id = k->id,
		.user = &rooms_user,
		.arg = k},
	    ns);
	return 0;
}

int
kubernetes_open(const struct conf *conf, const struct backend_start *start,
    struct backend **out, struct err *e)
{
	struct kubernetes *k = xcalloc(1, sizeof(*k));

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
	(void)snprintf(k->b.port, sizeof(k->b.port), "%u",
	    (unsigned int)cluster_port(k->cluster));
	k->b.is_per_tenant = k->rooms.is_per_tenant;
	if (k->b.is_per_tenant)
		look_cb(k);
	*out = &k->b;
	return 0;
}
