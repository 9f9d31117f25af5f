/*
 *	FEED_LISTS	a list, page by page, all of one version
 *	FEED_WATCHES	what happened after that version, a line each
 *	FEED_WAITS	either failed: a list in a while
 *
 * The server ends a watch after WATCH_S: another begins where it ended.  Every
 * other end is followed by a list, which tells what was missed, and whether the
 * server is there.  Bookmarks keep the version young, so that it is not
 * forgotten ("410 Gone") while no Pod of ours changes; they also show that the
 * connection lives.
 */
#include "worker/kubernetes/pod_feed.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/err.h"
#include "common/js.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/http/api.h"
#include "worker/kubernetes/backoff.h"
#include "worker/kubernetes/cluster.h"
#include "worker/kubernetes/watch_line.h"
#include "worker/later.h"

#define LIST_MS 30000
#define LIST_BYTES_MAX 67108864
#define PAGE "100" /* as many as a turn of the loop can parse */
#define WATCH_MS 300000
#define SHORT_MS 1000 /* of a watch that is ended before its time */
#define GONE 410

enum feed_stage {
	FEED_LISTS,
	FEED_WATCHES,
	FEED_WAITS
};

struct pod_feed {
	struct event_base *base;
	struct cluster *cluster;
	char *pods; /* path and selector */
	const struct pod_feed_user *user;
	void *arg;
	enum feed_stage stage;
	struct cluster_call *call;
	struct timer *timer; /* of FEED_WAITS, and of a silent watch */
	uint32_t watch_ms;
	char *version;         /* all up to it was told */
	char *next_page;       /* of a list; NULL: it begins */
	json_t *known;         /* uids by name, of what was told as there */
	json_t *listed;        /* likewise, of this list */
	unsigned int failures; /* without anything good between */
	bool is_expired;       /* the watch's version is not known any more */
	bool is_refused;       /* a watch was: a list alone is not enough */
	bool had_line, had_error; /* of this watch */
	uint64_t watched_ms;      /* it began */
	bool stopped;
	bool said;
	enum pod_feed_state state;
	char detail[ERR_TEXT_MAX];
};

static void list_start(struct pod_feed *f);
static void watch_start(struct pod_feed *f);

/* ---- what the user is told */

static void
say_state(struct pod_feed *f, enum pod_feed_state state, const char *detail)
{
	if (f->said && f->state == state && strcmp(f->detail, detail) == 0)
		return;
	f->said = true;
	f->state = state;
	(void)snprintf(f->detail, sizeof(f->detail), "%s", detail);
	f->user->on_state(state, f->detail, f->arg);
}

/* Whatever the name is, by which its uid is known. */
static void
say_gone(struct pod_feed *f, const char *name)
{
	AUTO(auto_json)
	json_t *uid = json_incref(json_object_get(f->known, name));

	(void)json_object_del(f->known, name);
	f->user->on_gone(name, json_string_value(uid), f->arg);
}

static bool
is_known_as(const struct pod_feed *f, const char *name, const char *uid)
{
	return strcmp(js_text(f->known, name), uid) == 0;
}

/* What has no name or no uid is no object. */
static void
say_pod(struct pod_feed *f, const json_t *pod)
{
	const json_t *meta = json_object_get(pod, "metadata");
	const char *name = js_text(meta, "name"), *uid = js_text(meta, "uid");

	if (name[0] == '\0' || uid[0] == '\0')
		return;
	if (json_object_get(f->known, name) != NULL &&
	    !is_known_as(f, name, uid))
		say_gone(f, name);
	if (f->stopped)
		return;
	(void)json_object_set_new(f->known, name, json_string(uid));
	if (f->listed != NULL)
		(void)json_object_set_new(f->listed, name, json_string(uid));
	f->user->on_pod(pod, f->arg);
}

/* ---- another try */

/* A pause is over, or a watch was silent for too long. */
static void
timer_cb(void *arg)
{
	struct pod_feed *f = arg;

	if (f->stage == FEED_WATCHES) {
		log_debug("a watch of Pods was silent");
		cluster_cancel(f->call);
		f->call = NULL;
	}
	list_start(f);
}

/* A version that is not known any more is no failure, once. */
static void
try_again(struct pod_feed *f)
{
	uint64_t ms = backoff_ms(f->failures);

	if (f->is_expired && f->failures == 0)
		ms = 0;
	f->is_expired = false;
	f->failures++;
	f->stage = FEED_WAITS;
	timer_set_ms(f->timer, ms);
}

/* A right or a namespace is missing: another namespace may be well. */
static enum pod_feed_state
state_of(const struct cluster_answer *a)
{
	return a->status == 403 || a->status == 404 ? POD_FEED_REFUSED :
						      POD_FEED_AWAY;
}

static void
fail(struct pod_feed *f, const struct cluster_answer *a, const char *why)
{
	say_state(f, state_of(a), why);
	if (!f->stopped)
		try_again(f);
}

/* ---- lists */

static void
keep_version(struct pod_feed *f, const char *version)
{
	if (version[0] != '\0')
		xset_text(&f->version, version);
}

static void
list_forget(struct pod_feed *f)
{
	json_decref(f->listed);
	f->listed = NULL;
	free(f->next_page);
	f->next_page = NULL;
}

/* What was known, and is not in the whole list. */
static void
say_missing(struct pod_feed *f)
{
	AUTO(auto_json) json_t *before = json_copy(f->known);
	const char *name;
	const json_t *uid;

	json_object_foreach (before, name, uid) {
		if (json_object_get(f->listed, name) == NULL)
			say_gone(f, name);
		if (f->stopped)
			return;
	}
}

static void
list_end(struct pod_feed *f)
{
	say_missing(f);
	if (f->stopped)
		return;
	list_forget(f);
	f->user->on_listed(f->arg);
	if (!f->stopped)
		watch_start(f);
}

static void list_ask(struct pod_feed *f);

static void
take_page(struct pod_feed *f, const json_t *body)
{
	const json_t *meta = json_object_get(body, "metadata");
	const json_t *items = json_object_get(body, "items"), *pod;
	const char *next = js_text(meta, "continue");
	size_t i;

	if (!f->is_refused)
		say_state(f, POD_FEED_UP, "");
	json_array_foreach (items, i, pod) {
		if (f->stopped)
			return;
		say_pod(f, pod);
	}
	if (f->stopped)
		return;
	keep_version(f, js_text(meta, "resourceVersion"));
	if (next[0] == '\0') {
		list_end(f);
		return;
	}
	xset_text(&f->next_page, next);
	list_ask(f);
}

static void
list_done_cb(const struct cluster_answer *a, void *arg)
{
	struct pod_feed *f = arg;

	f->call = NULL;
	if (a->rc == 0 && json_is_array(json_object_get(a->body, "items"))) {
		take_page(f, a->body);
		return;
	}
	f->is_expired = a->status == GONE; /* between two pages */
	if (f->is_expired)
		try_again(f);
	else
		fail(f, a,
		    a->rc != 0 ? a->why->msg :
				 "the cluster answers with no list of Pods");
}

static void
list_ask(struct pod_feed *f)
{
	AUTO(auto_free)
	char *next = api_escape(f->next_page != NULL ? f->next_page : "");
	AUTO(auto_free)
	char *path = xasprintf("%s&limit=" PAGE "%s%s", f->pods,
	    next[0] != '\0' ? "&continue=" : "", next);

	f->call = cluster_start(f->cluster,
	    &(struct cluster_ask){.method = "GET",
		.path = path,
		.timeout_ms = LIST_MS,
		.max_body = LIST_BYTES_MAX,
		.on_done = list_done_cb,
		.arg = f});
}

static void
list_start(struct pod_feed *f)
{
	f->stage = FEED_LISTS;
	list_forget(f);
	f->listed = json_object();
	list_ask(f);
}

/* ---- watches */

static void
take_deleted(struct pod_feed *f, const json_t *meta)
{
	const char *name = js_text(meta, "name");

	if (json_object_get(f->known, name) != NULL &&
	    is_known_as(f, name, js_text(meta, "uid")))
		say_gone(f, name);
}

/* The server ends the watch after it. */
static void
take_error(struct pod_feed *f, const struct watch_line *l)
{
	static struct log_limit limit;

	f->had_error = true;
	f->is_expired = l->kind == WATCH_EXPIRED;
	if (!f->is_expired)
		log_warn_limited(&limit, "the watch of Pods: %s", l->why);
}

static void
take_line(struct pod_feed *f, const struct watch_line *l)
{
	if (l->kind == WATCH_ERROR || l->kind == WATCH_EXPIRED) {
		take_error(f, l);
		return;
	}
	f->failures = 0;
	f->is_refused = false;
	keep_version(f, l->version);
	say_state(f, POD_FEED_UP, "");
	if (f->stopped)
		return;
	if (l->kind == WATCH_THERE)
		say_pod(f, l->object);
	else if (l->kind == WATCH_GONE)
		take_deleted(f, json_object_get(l->object, "metadata"));
}

/* What a line that cannot be read would have said is in a list. */
static void
line_cb(const char *line, size_t n, void *arg)
{
	static struct log_limit limit;
	struct pod_feed *f = arg;
	struct watch_line l;
	struct err e;

	f->had_line = true;
	if (watch_line_read(line, n, &l, &e) == 0) {
		timer_set_ms(f->timer, 2 * (uint64_t)f->watch_ms);
		take_line(f, &l);
		watch_line_clear(&l);
		return;
	}
	log_warn_limited(&limit, "the watch of Pods: %s", e.msg);
	cluster_cancel(f->call);
	f->call = NULL;
	try_again(f);
}

/* A server that ends each at once is not asked without a pause. */
static bool
is_usual_end(const struct pod_feed *f, const struct cluster_answer *a)
{
	return a->rc == 0 && !f->had_error &&
	    (f->had_line || clock_mono_ms() - f->watched_ms >= SHORT_MS);
}

/* An end without an answer is the connection's: the list that follows says
 * whether the server is there. */
static void
watch_done_cb(const struct cluster_answer *a, void *arg)
{
	struct pod_feed *f = arg;

	f->call = NULL;
	timer_stop(f->timer);
	if (is_usual_end(f, a)) {
		watch_start(f);
		return;
	}
	if (a->status == GONE)
		f->is_expired = true;
	if (a->rc == 0 || a->status == 0 || f->is_expired) {
		try_again(f);
		return;
	}
	f->is_refused = true;
	fail(f, a, a->why->msg);
}

static void
watch_start(struct pod_feed *f)
{
	AUTO(auto_free) char *version = api_escape(f->version);
	uint32_t seconds = (f->watch_ms + 999) / 1000;
	AUTO(auto_free)
	char *path = xasprintf("%s&watch=true&allowWatchBookmarks=true"
			       "&timeoutSeconds=%u&resourceVersion=%s",
	    f->pods, seconds, version);

	f->stage = FEED_WATCHES;
	f->had_line = f->had_error = false;
	f->watched_ms = clock_mono_ms();
	timer_set_ms(f->timer, 2 * (uint64_t)f->watch_ms);
	f->call = cluster_start(f->cluster,
	    &(struct cluster_ask){.method = "GET",
		.path = path,
		.max_line = WATCH_LINE_MAX,
		.on_line = line_cb,
		.on_done = watch_done_cb,
		.arg = f});
}

/* ---- public */

struct pod_feed *
pod_feed_start(struct event_base *base, struct cluster *cluster, const char *ns,
    const char *selector, const struct pod_feed_user *user, void *arg)
{
	struct pod_feed *f = xcalloc(1, sizeof(*f));
	AUTO(auto_free) char *escaped = api_escape(selector);

	f->base = base;
	f->cluster = cluster;
	f->pods = xasprintf(
	    "/api/v1/namespaces/%s/pods?labelSelector=%s", ns, escaped);
	f->user = user;
	f->arg = arg;
	f->timer = timer_new(base, timer_cb, f);
	f->watch_ms = WATCH_MS;
	f->version = xstrdup("");
	f->known = json_object();
	list_start(f);
	return f;
}

void
pod_feed_set_watch_ms(struct pod_feed *f, uint32_t ms)
{
	f->watch_ms = ms;
}

static void
pod_feed_free(void *arg)
{
	struct pod_feed *f = arg;

	list_forget(f);
	json_decref(f->known);
	free(f->version);
	free(f->pods);
	free(f);
}

/* It may be in one of its callbacks. */
void
pod_feed_stop(struct pod_feed *f)
{
	if (f == NULL)
		return;
	f->stopped = true;
	if (f->call != NULL)
		cluster_cancel(f->call);
	f->call = NULL;
	timer_free(f->timer);
	later(f->base, pod_feed_free, f);
}
