/*
 * cluster_client KUBECONFIG - what a worker asks of a cluster
 *
 * Does each line of its input, and says what came of it in a line of JSON:
 *
 *	ask MS METHOD PATH [BODY]	{"rc", "status", "reason", "why",
 *"body"} rights				{"missing", "hint"} follow
 *SELECTOR			{"up", "detail"}, {"pod", "phase"},
 *					{"gone"} and {"listed"}, as they come
 *	stop				the following
 *
 * Ends with its input.
 */
#include <stdio.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/kubernetes/cluster.h"
#include "worker/kubernetes/pod_feed.h"
#include "worker/kubernetes/rights.h"

static struct event_base *base;
static struct cluster *cluster;
static struct pod_feed *feed;

static void
say(json_t *what)
{
	AUTO(auto_free) char *text = js_dump(what);

	json_decref(what);
	(void)puts(text);
	(void)fflush(stdout);
}

static void
answered_cb(const struct cluster_answer *a, void *arg)
{
	(void)arg;
	say(json_pack("{s:s, s:i, s:s, s:s, s:O?}", "rc",
	    a->rc == 0 ? "" : err_name(a->rc), "status", (int)a->status,
	    "reason", a->reason, "why", a->why->msg, "body", a->body));
}

/* A literal, as the call keeps it. */
static const char *
method_of(const char *word)
{
	static const char *const all[] = {"POST", "DELETE", "PATCH"};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(word, all[i]) == 0)
			return all[i];
	return "GET";
}

static void
ask(char *words)
{
	char *rest = words;
	const char *ms = strsep(&rest, " ");
	const char *method = method_of(strsep(&rest, " "));
	const char *path = strsep(&rest, " ");

	(void)cluster_start(cluster,
	    &(struct cluster_ask){.method = method,
		.path = path,
		.body = rest,
		.timeout_ms = (uint32_t)strtoul(ms, NULL, 10),
		.on_done = answered_cb});
}

static void
rights_known_cb(
    int rc, const struct rights_found *found, const struct err *why, void *arg)
{
	(void)arg;
	if (rc != 0)
		say(json_pack("{s:s}", "why", why->msg));
	else
		say(json_pack("{s:s, s:b}", "missing", found->missing, "hint",
		    found->is_hint));
}

static void
ask_rights(void)
{
	static const struct rights_need needs[] = {{"create", "", "pods"},
	    {"create", "", "pods/exec"},
	    {"delete", "networking.k8s.io", "networkpolicies"},
	    {"update", "", "secrets"}};

	(void)rights_ask_start(cluster, cluster_namespace(cluster), needs,
	    ARRAY_LEN(needs), rights_known_cb, NULL);
}

static void
on_pod(const json_t *pod, void *arg)
{
	(void)arg;
	say(json_pack("{s:s, s:s}", "pod",
	    js_text(json_object_get(pod, "metadata"), "name"), "phase",
	    js_text(json_object_get(pod, "status"), "phase")));
}

static void
on_gone(const char *name, const char *uid, void *arg)
{
	(void)uid;
	(void)arg;
	say(json_pack("{s:s}", "gone", name));
}

static void
on_state(enum pod_feed_state state, const char *detail, void *arg)
{
	(void)arg;
	say(json_pack(
	    "{s:b, s:s}", "up", state == POD_FEED_UP, "detail", detail));
}

static void
on_listed(void *arg)
{
	(void)arg;
	say(json_pack("{s:b}", "listed", 1));
}

static const struct pod_feed_user follower = {
    on_pod, on_gone, on_state, on_listed};

static void
do_line(char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, "ask ", 4) == 0) {
		ask(line + 4);
	} else if (strcmp(line, "rights") == 0) {
		ask_rights();
	} else if (strncmp(line, "follow ", 7) == 0) {
		feed = pod_feed_start(base, cluster, cluster_namespace(cluster),
		    line + 7, &follower, NULL);
	} else if (strcmp(line, "stop") == 0) {
		pod_feed_stop(feed);
		feed = NULL;
	}
}

/* One line for each time that there is something: who writes waits. */
static void
line_cb(evutil_socket_t fd, short what, void *arg)
{
	char line[65536];

	(void)fd;
	(void)what;
	(void)arg;
	if (fgets(line, sizeof(line), stdin) != NULL)
		do_line(line);
	else
		(void)event_base_loopbreak(base);
}

int
main(int argc, char **argv)
{
	struct cluster_setup setup = {.kubeconfig = argc > 1 ? argv[1] : NULL};
	struct event *in;
	struct err e;

	(void)setvbuf(stdin, NULL, _IONBF, 0);
	base = event_base_new();
	if (cluster_open(base, &setup, &cluster, &e) != 0) {
		(void)fprintf(stderr, "%s\n", e.msg);
		return 1;
	}
	in = event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, line_cb, NULL);
	(void)event_add(in, NULL);
	(void)event_base_dispatch(base);
	pod_feed_stop(feed);
	cluster_free(cluster);
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
	event_free(in);
	event_base_free(base);
	return 0;
}
