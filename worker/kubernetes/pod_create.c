/*
 * A Pod is made: one request, which the cluster refuses when a field is unknown
 * to it.  A name may be taken by a Pod on its way out:
 *
 *	HELD	while it is not known whether its room can have it (pod_room.h)
 *	  |
 *	VOLUME	its claim, where it has one (volume_take.c)
 *	  |
 *	ASK	POST
 *	  |	409: whose is it?
 *	LOOK	GET	it stays: a conflict
 *	  |	it is being removed, or is gone already
 *	WAIT	until it is gone, then ASK
 *
 * Whether it gets a node is start's to see.
 */
#include "worker/kubernetes/kubernetes_int.h"

#include "common/clock.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/kubernetes/pod_body.h"
#include "worker/later.h"

#define LOOK_AGAIN_MS 1000 /* where no change was told */

struct backend_create {
	struct kubernetes *k;
	struct pod_room *room; /* NULL: it has none, and is over */
	char name[POD_NAME_MAX + 1];
	const struct backend_spec *spec;
	char *body; /* NULL: it is not known yet whether there is a claim */
	struct volume_take *take; /* NULL: none is under way */
	struct cluster_call *call;
	struct pod_wait wait;
	struct timer *again;
	uint64_t until_ms; /* for the name; 0: it was not taken yet */
	bool is_held;
	bool is_over;
	int rc;
	struct err why;
	backend_created_cb cb;
	void *arg;
	TAILQ_ENTRY(backend_create) link;
};

static void create_ask(struct backend_create *c);
static void create_look(void *arg);

/* ---- the end */

static void
create_end(struct backend_create *c, const struct backend_handle *h)
{
	TAILQ_REMOVE(&c->k->creates, c, link);
	pod_wait_end(&c->wait);
	volume_take_free(c->take);
	timer_free(c->again);
	c->cb(c->rc, h, c->rc == 0 ? NULL : &c->why, c->arg);
	free(c->body);
	free(c);
}

static void
fail_cb(void *arg)
{
	create_end(arg, NULL);
}

static void
create_fail_later(struct backend_create *c, int code, const char *text)
{
	c->is_over = true;
	pod_wait_end(&c->wait);
	timer_stop(c->again);
	c->rc = err_set(&c->why, code, "%s", text);
	later(c->k->base, fail_cb, c);
}

/* ---- a name that is taken */

static void
waited_cb(void *arg)
{
	struct backend_create *c = arg;

	if (c->call == NULL && pod_table_find(&c->room->pods, c->name) == NULL)
		create_ask(c);
}

static void
create_wait(struct backend_create *c)
{
	if (c->wait.in == NULL)
		pod_wait_begin(&c->wait, &c->room->pods, c->name, waited_cb, c);
	timer_set_ms(c->again, LOOK_AGAIN_MS);
}

static bool
is_on_its_way_out(const struct cluster_answer *a, const struct kubernetes *k)
{
	struct pod_state s;

	return a->rc == 0 &&
	    pod_view_state(a->body, k->settings.container, &s, NULL) == 0 &&
	    s.phase == POD_REMOVING;
}

static void
looked_cb(const struct cluster_answer *a, void *arg)
{
	struct backend_create *c = arg;
	struct err e;
	int rc = pod_check(a, "create", &e);

	c->call = NULL;
	if (rc == ERR_NOTFOUND) {
		create_ask(c);
	} else if (is_on_its_way_out(a, c->k) &&
	    clock_mono_ms() < c->until_ms) {
		create_wait(c);
	} else {
		if (rc != 0) { /* else it is a conflict */
			c->rc = rc;
			c->why = e;
		}
		create_end(c, NULL);
	}
}

static void
create_look(void *arg)
{
	struct backend_create *c = arg;

	timer_stop(c->again);
	c->call = pod_ask(c->k->cluster, c->room->ns,
	    &(struct cluster_ask){.method = "GET",
		.timeout_ms = KUBERNETES_ASK_MS,
		.on_done = looked_cb,
		.arg = c},
	    "pods/%s", c->name);
}

/* ---- create */

/* Texts go to a client: a quota's, say, which is the cluster's operator's. */
static int
code_of(const struct cluster_answer *a)
{
	switch (a->rc) {
	case ERR_CONFLICT:
	case ERR_LOST:
	case ERR_POLICY:
	case ERR_QUOTA:
	case ERR_WRONG_STATE:
		return a->rc;
	default:
		return ERR_BACKEND;
	}
}

static void
create_made(struct backend_create *c, const struct cluster_answer *a)
{
	struct backend_handle h = {.id = ""};
	struct pod_state s;

	c->rc = pod_view_state(a->body, c->k->settings.container, &s, &c->why);
	if (c->rc != 0) {
		c->rc = ERR_LOST; /* there is one, whatever its uid */
		create_end(c, NULL);
		return;
	}
	memcpy(h.id, s.name, strlen(s.name) + 1);
	pod_view_life(&s, h.life);
	backend_handle_set_tenant(&h, c->room->tenant);
	pod_table_made(&c->room->pods, &s);
	create_end(c, &h);
}

static void
created_cb(const struct cluster_answer *a, void *arg)
{
	struct backend_create *c = arg;

	c->call = NULL;
	if (a->rc == 0) {
		create_made(c, a);
		return;
	}
	c->rc = err_set(&c->why, code_of(a), "create: %s", a->why->msg);
	if (c->rc != ERR_CONFLICT) {
		create_end(c, NULL);
		return;
	}
	if (c->until_ms == 0)
		c->until_ms = clock_mono_ms() + KUBERNETES_NAME_MS;
	create_look(c);
}

static void
create_ask(struct backend_create *c)
{
	pod_wait_end(&c->wait);
	timer_stop(c->again);
	c->call = pod_ask(c->k->cluster, c->room->ns,
	    &(struct cluster_ask){.method = "POST",
		.body = c->body,
		.timeout_ms = KUBERNETES_CREATE_MS,
		.on_done = created_cb,
		.arg = c},
	    "pods?fieldManager=mcp-sandboxd&fieldValidation=Strict");
}

static void
create_write(struct backend_create *c, bool has_old_files)
{
	const struct kubernetes *k = c->k;

	c->body = pod_body(&(struct pod_body){.policy = k->policy,
	    .settings = &k->settings,
	    .ns = c->room->ns,
	    .instance = k->instance,
	    .id = k->id,
	    .spec = c->spec,
	    .created_ms = clock_wall_ms(),
	    .has_old_files = has_old_files});
	create_ask(c);
}

static void
taken_cb(int rc, bool had_files, const struct err *why, void *arg)
{
	struct backend_create *c = arg;

	c->take = NULL;
	if (rc == 0) {
		create_write(c, had_files);
		return;
	}
	c->rc = rc;
	c->why = *why;
	create_end(c, NULL);
}

static void
create_go(struct backend_create *c)
{
	if (pod_body_has_volume(&c->k->settings, c->spec))
		c->take =
		    volume_take_start(c->k, c->room, c->spec, taken_cb, c);
	else
		create_write(c, false);
}

static void
create_begin(struct backend_create *c)
{
	struct err e;
	int rc = pod_room_check(c->room, &e);

	c->is_held = rc == 1;
	if (rc < 0)
		create_fail_later(c, rc, e.msg);
	else if (rc == 0)
		create_go(c);
}

/* ---- public */

struct backend_create *
pod_create(struct backend *b, const struct backend_spec *spec,
    backend_created_cb cb, void *arg)
{
	struct kubernetes *k = (struct kubernetes *)b;
	struct backend_create *c = xcalloc(1, sizeof(*c));
	struct err e;

	c->k = k;
	c->cb = cb;
	c->arg = arg;
	c->again = timer_new(k->base, create_look, c);
	c->spec = spec;
	TAILQ_INSERT_TAIL(&k->creates, c, link);
	c->room = pod_rooms_of(&k->rooms, spec->identity.tenant, &e);
	if (c->room == NULL) {
		create_fail_later(c, e.code, e.msg);
		return c;
	}
	pod_name(spec->name, c->name);
	create_begin(c);
	return c;
}

void
pod_creates_resume(struct kubernetes *k)
{
	struct backend_create *c;

	TAILQ_FOREACH (c, &k->creates, link)
		if (c->is_held && !c->is_over)
			create_begin(c);
}

void
pod_create_abandon(struct backend *b, struct backend_create *c)
{
	(void)b;
	if (c->take != NULL)
		volume_take_abandon(c->take);
	else if (c->call == NULL && !c->is_over) /* else the answer comes */
		create_fail_later(
		    c, ERR_WRONG_STATE, "the sandbox is not wanted any more");
}

/* Those that wait for no answer; the others were told by cluster_free. */
void
pod_creates_clear(struct kubernetes *k)
{
	struct backend_create *c;

	while ((c = TAILQ_FIRST(&k->creates)) != NULL) {
		c->rc =
		    err_set(&c->why, ERR_WRONG_STATE, "the worker is ending");
		create_end(c, NULL);
	}
}
