#include "worker/kubernetes/pod_room.h"

#include <stdio.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/kubernetes/cluster.h"
#include "worker/kubernetes/pod_labels.h"
#include "worker/kubernetes/pod_namespace.h"

#define RIGHTS_AGAIN_MS 5000   /* until what was missing is asked again */
#define NETWORK_AGAIN_MS 60000 /* until it is tried again */

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

/* A tenant that may have Pods, whether it has a room or not. */
struct pod_name_known {
	struct pod_place place;
	struct hash_entry by_tenant;
};

static const struct pod_rooms_parts *
parts_of(const struct pod_room *r)
{
	return &r->in->parts;
}

/* ---- what it lacks */

bool
pod_room_is_up(const struct pod_room *r)
{
	return r->is_heard && r->state == POD_FEED_UP;
}

bool
pod_room_is_settled(const struct pod_room *r)
{
	return pod_room_is_up(r) && r->is_settled;
}

const char *
pod_room_lack(const struct pod_room *r)
{
	return r->lack;
}

/* A refusal of the only room is as good as an outage of the cluster. */
static bool
is_refused(const struct pod_room *r)
{
	return r->state == POD_FEED_REFUSED && r->in->is_per_tenant;
}

static const char *
first_lack(const struct pod_room *r)
{
	if (is_refused(r))
		return r->detail;
	if (r->rights_lack[0] != '\0')
		return r->rights_lack;
	return r->is_for_boxes ? r->network_lack : "";
}

/* It is heard. */
static void
say(struct pod_room *r)
{
	const char *first = first_lack(r);
	char lack[POD_ROOM_LACK_MAX] = "";

	if (first[0] != '\0')
		(void)snprintf(
		    lack, sizeof(lack), "namespace %s: %s", r->ns, first);
	if (strcmp(r->lack, lack) != 0 && lack[0] != '\0')
		log_warn("cluster: %s", lack);
	memcpy(r->lack, lack, sizeof(r->lack));
	parts_of(r)->user->on_news(parts_of(r)->arg);
}

/* ---- whether sandboxes have no network */

static bool
is_to_be_closed(const struct pod_rooms_parts *of)
{
	return of->policy->network == POLICY_NETWORK_NONE &&
	    !of->settings->may_be_unenforced;
}

static void
set_verdict(struct pod_room *r, enum network_verdict verdict)
{
	r->network_verdict = verdict;
	if (parts_of(r)->policy->network != POLICY_NETWORK_NONE)
		r->network_word = "bridge";
	else
		r->network_word =
		    verdict == NETWORK_CLOSED ? "none" : "none, not proven";
}

static void
network_tried_cb(enum network_verdict verdict, const char *why, void *arg)
{
	struct pod_room *r = arg;

	r->network = NULL;
	set_verdict(r, verdict);
	(void)snprintf(r->network_lack, sizeof(r->network_lack), "%s", why);
	if (verdict == NETWORK_CLOSED)
		log_info("cluster enforces NetworkPolicies: it was tried in "
			 "namespace %s",
		    r->ns);
	else
		timer_set_ms(r->network_again, NETWORK_AGAIN_MS);
	say(r);
}

/* Once, until it is known: a cluster's network is seldom exchanged. */
static void
try_network(void *arg)
{
	struct pod_room *r = arg;
	const struct pod_rooms_parts *of = parts_of(r);
	const struct network_setup setup = {.base = of->base,
	    .cluster = of->cluster,
	    .ns = r->ns,
	    .id = of->id,
	    .settings = of->settings};

	if (!is_to_be_closed(of) || r->network_verdict == NETWORK_CLOSED ||
	    r->network != NULL)
		return;
	timer_stop(r->network_again);
	r->network = network_trial_start(&setup, network_tried_cb, r);
}

/* ---- what we may do */

static void
note_rights(struct pod_room *r, const struct rights_found *found)
{
	r->rights_lack[0] = '\0';
	if (found->missing[0] == '\0')
		return;
	(void)snprintf(r->rights_lack, sizeof(r->rights_lack),
	    "we may not: %s (the namespace or a Role in it is missing)",
	    found->missing);
	if (!found->is_hint)
		return;
	/* A cluster that does not say all may still let us. */
	log_warn("cluster: perhaps in namespace %s %s", r->ns, r->rights_lack);
	r->rights_lack[0] = '\0';
}

static void
asked_rights_cb(
    int rc, const struct rights_found *found, const struct err *why, void *arg)
{
	static const struct rights_found none;
	struct pod_room *r = arg;

	r->rights = NULL;
	if (rc == ERR_WRONG_STATE)
		return;
	if (rc != 0)
		log_warn("cluster: our rights are not known: %s", why->msg);
	note_rights(r, rc == 0 ? found : &none);
	r->is_settled = true;
	if (r->rights_lack[0] != '\0')
		timer_set_ms(r->rights_again, RIGHTS_AGAIN_MS);
	else if (r->is_for_boxes)
		try_network(r);
	say(r);
}

static void
ask_rights(void *arg)
{
	struct pod_room *r = arg;
	const struct pod_rooms_parts *of = parts_of(r);
	size_t n = ARRAY_LEN(needs);

	if (of->settings->volume_class[0] == '\0')
		n -= NEEDS_OF_VOLUMES;
	r->rights =
	    rights_ask_start(of->cluster, r->ns, needs, n, asked_rights_cb, r);
}

static void
stop_asking(struct pod_room *r)
{
	if (r->rights != NULL)
		rights_ask_cancel(r->rights);
	if (r->network != NULL)
		network_trial_cancel(r->network);
	r->rights = NULL;
	r->network = NULL;
	timer_stop(r->rights_again);
	timer_stop(r->network_again);
}

/* ---- what the cluster tells */

static void
on_state(enum pod_feed_state state, const char *detail, void *arg)
{
	struct pod_room *r = arg;

	stop_asking(r);
	r->is_heard = true;
	r->is_settled = false;
	r->state = state;
	(void)snprintf(r->detail, sizeof(r->detail), "%s", detail);
	if (state == POD_FEED_UP)
		ask_rights(r);
	say(r);
}

static void
tell(const struct pod_room *r, const char *name, enum backend_change what)
{
	struct backend_handle h;

	backend_handle_named(&h, name);
	backend_handle_set_tenant(&h, r->tenant);
	parts_of(r)->user->on_change(&h, what, parts_of(r)->arg);
}

static void
on_pod(const json_t *pod, void *arg)
{
	struct pod_room *r = arg;
	struct pod_state s;
	struct err e;
	enum pod_news news;

	if (pod_view_state(pod, r->ours.container, &s, &e) != 0) {
		log_debug("cluster: %s", e.msg);
		return;
	}
	news = pod_table_see(&r->pods, &s);
	if (news == POD_NEWS_KILLED)
		tell(r, s.name, BACKEND_OOM);
	if (news != POD_NEWS_NONE)
		tell(r, s.name, BACKEND_DIED);
}

static void
on_gone(const char *name, const char *uid, void *arg)
{
	struct pod_room *r = arg;

	if (pod_table_gone(&r->pods, name, uid))
		tell(r, name, BACKEND_DESTROYED);
}

static void
on_listed(void *arg)
{
	const struct pod_room *r = arg;

	log_debug("cluster: %zu Pods of ours in namespace %s",
	    r->pods.by_name.count, r->ns);
}

static const struct pod_feed_user feed_user = {.on_pod = on_pod,
    .on_gone = on_gone,
    .on_state = on_state,
    .on_listed = on_listed};

/* ---- making boxes */

/* A trial that nobody needed before. */
static void
room_want_boxes(struct pod_room *r)
{
	if (r->is_for_boxes)
		return;
	r->is_for_boxes = true;
	if (pod_room_is_settled(r) && r->rights_lack[0] == '\0')
		try_network(r);
}

int
pod_room_check(struct pod_room *r, struct err *e)
{
	room_want_boxes(r);
	if (!r->is_heard)
		return 1;
	if (r->state != POD_FEED_UP)
		return err_set(
		    e, ERR_BACKEND, "%s", is_refused(r) ? r->lack : r->detail);
	if (!r->is_settled || r->network != NULL)
		return 1;
	if (r->lack[0] != '\0')
		return err_set(e, ERR_BACKEND, "%s", r->lack);
	return 0;
}

/* ---- which there are */

static bool
is_of_tenant(const struct hash_entry *en, const void *key)
{
	return strcmp(HASH_OF(en, const struct pod_room, by_tenant)->tenant,
		   key) == 0;
}

struct pod_room *
pod_rooms_find(const struct pod_rooms *all, const char *tenant)
{
	if (!all->is_per_tenant)
		return TAILQ_FIRST(&all->all);
	return HASH_OBJECT(hashmap_get(&all->by_tenant,
			       hashmap_key_text(tenant), is_of_tenant, tenant),
	    struct pod_room, by_tenant);
}

static struct pod_room *
room_open(struct pod_rooms *all, const char *ns, const char *tenant)
{
	const struct pod_rooms_parts *of = &all->parts;
	struct pod_room *r = xcalloc(1, sizeof(*r));
	AUTO(auto_free)
	char *selector = pod_selector(of->settings->prefix, of->id);

	r->in = all;
	(void)snprintf(r->ns, sizeof(r->ns), "%s", ns);
	(void)snprintf(r->tenant, sizeof(r->tenant), "%s", tenant);
	r->ours = (struct pod_ours){.prefix = of->settings->prefix,
	    .id = of->id,
	    .container = of->settings->container,
	    .tenant = r->tenant};
	r->is_for_boxes = !all->is_per_tenant;
	r->rights_again = timer_new(of->base, ask_rights, r);
	r->network_again = timer_new(of->base, try_network, r);
	set_verdict(r, NETWORK_UNKNOWN);
	if (is_to_be_closed(of))
		(void)snprintf(r->network_lack, sizeof(r->network_lack),
		    "whether the cluster enforces NetworkPolicies is not "
		    "known yet");
	pod_table_init(&r->pods, of->base);
	pod_execs_init(
	    &r->execs, of->base, of->cluster, r->ns, of->settings->container);
	r->feed = pod_feed_start(
	    of->base, of->cluster, r->ns, selector, &feed_user, r);
	TAILQ_INSERT_TAIL(&all->all, r, link);
	hashmap_put(
	    &all->by_tenant, &r->by_tenant, hashmap_key_text(r->tenant));
	all->n++;
	return r;
}

struct pod_room *
pod_rooms_of(struct pod_rooms *all, const char *tenant, struct err *e)
{
	struct pod_room *r = pod_rooms_find(all, tenant);
	char ns[POD_NAME_MAX + 1];

	if (r != NULL ||
	    pod_namespace_of(all->parts.settings->ns, tenant, ns, e) != 0)
		return r;
	if (all->n < POD_ROOMS_MAX)
		return room_open(all, ns, tenant);
	(void)err_set(e, ERR_LIMIT,
	    "namespace %s: sandboxes are in %d other namespaces already, which "
	    "is all that one worker follows",
	    ns, POD_ROOMS_MAX);
	return NULL;
}

/* ---- where Pods may be */

static bool
is_name_of(const struct hash_entry *en, const void *key)
{
	return strcmp(HASH_OF(en, const struct pod_name_known, by_tenant)
			  ->place.tenant,
		   key) == 0;
}

void
pod_rooms_name(struct pod_rooms *all, const char *tenant)
{
	struct pod_name_known *k;
	uint64_t hash = hashmap_key_text(tenant);
	struct pod_place place = {.ns = ""};

	if (!all->is_per_tenant || all->names.count >= POD_PLACES_MAX ||
	    hashmap_get(&all->names, hash, is_name_of, tenant) != NULL ||
	    pod_namespace_of(all->parts.settings->ns, tenant, place.ns, NULL) !=
		0)
		return;
	(void)snprintf(place.tenant, sizeof(place.tenant), "%s", tenant);
	k = xcalloc(1, sizeof(*k));
	k->place = place;
	hashmap_put(&all->names, &k->by_tenant, hash);
}

static void
add_place(struct pod_place *out, const char *ns, const char *tenant)
{
	(void)snprintf(out->ns, sizeof(out->ns), "%s", ns);
	(void)snprintf(out->tenant, sizeof(out->tenant), "%s", tenant);
}

size_t
pod_rooms_places(const struct pod_rooms *all, struct pod_place **out)
{
	struct pod_place *list =
	    xcalloc(all->n + all->names.count + 1, sizeof(*list));
	const struct pod_room *r;
	const struct hash_entry *en, *next;
	size_t n = 0;

	TAILQ_FOREACH (r, &all->all, link)
		add_place(&list[n++], r->ns, r->tenant);
	HASHMAP_FOREACH (en, next, &all->names) {
		const struct pod_place *p =
		    &HASH_OF(en, const struct pod_name_known, by_tenant)->place;

		if (pod_rooms_find(all, p->tenant) == NULL)
			add_place(&list[n++], p->ns, p->tenant);
	}
	*out = list;
	return n;
}

/* ---- all together */

enum pod_contact
pod_rooms_contact(const struct pod_rooms *all, const char **detail)
{
	enum pod_contact contact = POD_CONTACT_NONE;
	const struct pod_room *r;

	*detail = "";
	TAILQ_FOREACH (r, &all->all, link) {
		if (!r->is_heard)
			continue;
		if (r->state == POD_FEED_UP || is_refused(r))
			return POD_CONTACT_UP;
		contact = POD_CONTACT_LOST;
		*detail = r->detail;
	}
	return contact;
}

void
pod_rooms_lacks(const struct pod_rooms *all, char *out, size_t size)
{
	const struct pod_room *r;
	size_t at = 0, n = 0;

	out[0] = '\0';
	TAILQ_FOREACH (r, &all->all, link)
		n += r->lack[0] != '\0';
	if (!all->is_per_tenant || n == 0)
		return;
	at = (size_t)snprintf(
	    out, size, "%zu of %zu namespaces lack something", n, all->n);
	TAILQ_FOREACH (r, &all->all, link)
		if (r->lack[0] != '\0' && at < size)
			at += (size_t)snprintf(
			    out + at, size - at, "; %.200s", r->lack);
}

/* ---- life */

void
pod_rooms_init(
    struct pod_rooms *all, const struct pod_rooms_parts *parts, const char *ns)
{
	*all = (struct pod_rooms){.parts = *parts,
	    .is_per_tenant = pod_namespace_is_per_tenant(parts->settings->ns)};
	TAILQ_INIT(&all->all);
	if (!all->is_per_tenant)
		(void)room_open(all, ns, "");
}

void
pod_rooms_stop(struct pod_rooms *all)
{
	struct pod_room *r;

	TAILQ_FOREACH (r, &all->all, link) {
		pod_feed_stop(r->feed);
		stop_asking(r);
		pod_execs_clear(&r->execs);
	}
}

void
pod_rooms_clear(struct pod_rooms *all)
{
	struct hash_entry *en, *next;
	struct pod_room *r;

	while ((r = TAILQ_FIRST(&all->all)) != NULL) {
		TAILQ_REMOVE(&all->all, r, link);
		pod_table_clear(&r->pods);
		timer_free(r->rights_again);
		timer_free(r->network_again);
		free(r);
	}
	hashmap_clear(&all->by_tenant);
	HASHMAP_FOREACH (en, next, &all->names)
		free(HASH_OF(en, struct pod_name_known, by_tenant));
	hashmap_clear(&all->names);
}
