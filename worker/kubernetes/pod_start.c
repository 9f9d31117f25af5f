/*
 * A Pod is started by the cluster alone: here it is waited for, by what the
 * cluster tells of it.
 *
 *	it runs			well
 *	it ended, or goes	failed, with its reason
 *	what time cannot mend	failed at once, with the cluster's word for it
 *	pending for too long	LOOK at it once more; then failed, with what it
 *				waits for: its own word, or where it has none
 *				the last warning among the cluster's EVENTS
 *
 * Who asked removes the Pod then.
 */
#include "worker/kubernetes/kubernetes_int.h"

#include <stdio.h>

#include "common/exit.h"
#include "common/js.h"
#include "common/log.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/xmalloc.h"

#define EVENTS_MAX "50"

struct pod_start {
	struct kubernetes *k;
	struct pod_room *room;
	char name[POD_NAME_MAX + 1];
	char uid[POD_UID_MAX + 1]; /* "": whichever is there */
	struct pod_wait wait;
	struct timer *late;
	struct cluster_call *call;
	bool is_abandoned;
	bool is_late;
	char reason[POD_REASON_MAX + 1]; /* while the events are looked at */
	backend_done_cb cb;
	void *arg;
	TAILQ_ENTRY(pod_start) link;
};

static void start_look(struct pod_start *s);

/* ---- the end */

static void
start_end(struct pod_start *s, int rc, const struct err *why)
{
	TAILQ_REMOVE(&s->k->starts, s, link);
	if (s->call != NULL)
		cluster_cancel(s->call);
	pod_wait_end(&s->wait);
	timer_free(s->late);
	s->cb(rc, rc == 0 ? NULL : why, s->arg);
	free(s);
}

/* ---- for too long */

static void
start_give_up(struct pod_start *s, const char *reason)
{
	struct err e;
	int rc = err_set(&e, ERR_BACKEND,
	    "Pod %s did not start within %u s (KUBERNETES_PENDING_SECONDS): %s",
	    s->name, s->k->settings.pending_ms / 1000, reason);

	start_end(s, rc, &e);
}

/* The last one, or the one that was repeated last. */
static void
take_warning(const json_t *events, char *out, size_t size)
{
	const json_t *one;
	const char *last = "";
	size_t i;

	json_array_foreach (events, i, one) {
		const char *when = js_text(one, "lastTimestamp");
		char word[64], message[200];

		if (strcmp(when, last) < 0)
			continue;
		last = when;
		text_clean(word, sizeof(word), js_text(one, "reason"),
		    strlen(js_text(one, "reason")));
		text_clean(message, sizeof(message), js_text(one, "message"),
		    strlen(js_text(one, "message")));
		(void)snprintf(out, size, "%s: %s", word, message);
	}
}

/* Without the right to read them there is the Pod's own word. */
static void
events_cb(const struct cluster_answer *a, void *arg)
{
	struct pod_start *s = arg;

	s->call = NULL;
	if (a->rc == 0)
		take_warning(json_object_get(a->body, "items"), s->reason,
		    sizeof(s->reason));
	start_give_up(s, s->reason);
}

static void
start_ask_events(struct pod_start *s, const struct pod_state *p)
{
	(void)snprintf(s->reason, sizeof(s->reason), "%s", p->reason);
	s->call = pod_ask(s->k->cluster, s->room->ns,
	    &(struct cluster_ask){.method = "GET",
		.timeout_ms = KUBERNETES_ASK_MS,
		.on_done = events_cb,
		.arg = s},
	    "events?fieldSelector=involvedObject.uid%%3D%s%%2Ctype%%3DWarning"
	    "&limit=" EVENTS_MAX,
	    p->uid);
}

/* ---- what it is now */

static int
say_removed(struct err *e)
{
	return err_set(e, ERR_BACKEND,
	    "the Pod was removed from outside while it started");
}

/* 0: it runs; 1: it may yet; else it will not. */
static int
start_check(const struct pod_start *s, const struct pod_state *p, struct err *e)
{
	if (s->uid[0] != '\0' && strcmp(s->uid, p->uid) != 0)
		return err_set(e, ERR_BACKEND,
		    "another Pod took the place of the sandbox's, which was "
		    "removed from outside");
	switch (p->phase) {
	case POD_RUNNING:
		return 0;
	case POD_REMOVING:
		return say_removed(e);
	case POD_ENDED:
		return err_set(e, ERR_BACKEND,
		    "the Pod ended while it started: %s", p->reason);
	case POD_PENDING:
		break;
	}
	if (p->is_hopeless)
		return err_set(
		    e, ERR_BACKEND, "the Pod cannot start: %s", p->reason);
	return 1;
}

/* True: it is settled. */
static bool
start_settle(struct pod_start *s, const struct pod_state *p)
{
	struct err e;
	int rc = start_check(s, p, &e);

	if (rc == 1)
		return false;
	start_end(s, rc, &e);
	return true;
}

static void
news_cb(void *arg)
{
	struct pod_start *s = arg;
	const struct pod_state *p = pod_table_find(&s->room->pods, s->name);

	if (s->call != NULL)
		return; /* the answer is newer */
	if (p == NULL)
		start_look(s);
	else
		(void)start_settle(s, p);
}

static void
looked_cb(const struct cluster_answer *a, void *arg)
{
	struct pod_start *s = arg;
	struct pod_state p;
	struct err e;
	int rc = pod_check(a, "start", &e);

	s->call = NULL;
	if (rc == 0)
		rc = pod_view_state(a->body, s->k->settings.container, &p, &e);
	if (rc == ERR_WRONG_STATE)
		return; /* pod_starts_clear tells */
	if (rc != 0 && s->is_late)
		start_give_up(s, e.msg);
	else if (rc == ERR_NOTFOUND)
		start_end(s, say_removed(&e), &e);
	else if (rc != 0 || start_settle(s, &p) || !s->is_late)
		return; /* it is told, or will be */
	else if (p.is_mute)
		start_ask_events(s, &p);
	else
		start_give_up(s, p.reason);
}

static void
start_look(struct pod_start *s)
{
	s->call = pod_ask(s->k->cluster, s->room->ns,
	    &(struct cluster_ask){.method = "GET",
		.timeout_ms = KUBERNETES_ASK_MS,
		.on_done = looked_cb,
		.arg = s},
	    "pods/%s", s->name);
}

static void
late_cb(void *arg)
{
	struct pod_start *s = arg;
	struct err e;

	if (s->is_abandoned) {
		(void)err_set(
		    &e, ERR_BACKEND, "the sandbox is not wanted any more");
		start_end(s, ERR_BACKEND, &e);
		return;
	}
	s->is_late = true;
	if (s->call == NULL)
		start_look(s);
}

/* ---- public */

struct pod_room *
kubernetes_room(const struct kubernetes *k, const struct backend_handle *h)
{
	struct pod_room *room = pod_rooms_find(&k->rooms, h->tenant);

	if (room == NULL)
		fatal(EXIT_BUG, "Pod %s was seen in no room", h->id);
	return room;
}

void
pod_start(struct backend *b, const struct backend_handle *h, backend_done_cb cb,
    void *arg)
{
	struct kubernetes *k = (struct kubernetes *)b;
	struct pod_start *s = xcalloc(1, sizeof(*s));

	s->k = k;
	s->room = kubernetes_room(k, h);
	s->cb = cb;
	s->arg = arg;
	pod_name(backend_handle_text(h), s->name);
	if (!pod_view_uid_of(h->life, s->uid))
		s->uid[0] = '\0';
	s->late = timer_new(k->base, late_cb, s);
	timer_set_ms(s->late, k->settings.pending_ms);
	TAILQ_INSERT_TAIL(&k->starts, s, link);
	pod_wait_begin(&s->wait, &s->room->pods, s->name, news_cb, s);
	pod_wait_look(&s->wait);
}

void
pod_start_abandon(struct backend *b, const struct backend_handle *h)
{
	struct kubernetes *k = (struct kubernetes *)b;
	const struct pod_room *room = kubernetes_room(k, h);
	char name[POD_NAME_MAX + 1];
	struct pod_start *s;

	pod_name(backend_handle_text(h), name);
	TAILQ_FOREACH (s, &k->starts, link)
		if (s->room == room && strcmp(s->name, name) == 0) {
			s->is_abandoned = true;
			timer_set_ms(s->late, 0);
		}
}

/* Those that wait for no answer; the others were told by cluster_free. */
void
pod_starts_clear(struct kubernetes *k)
{
	struct pod_start *s;
	struct err e;

	(void)err_set(&e, ERR_WRONG_STATE, "the worker is ending");
	while ((s = TAILQ_FIRST(&k->starts)) != NULL)
		start_end(s, ERR_WRONG_STATE, &e);
}
