/*
 * The room's top: what a backend is made of.
 *
 *	docker.c	composes; what follows when the engine comes, goes, or
 *			tells of an event
 *	create.c	a box that is to be: image, create
 *	container.c	boxes that are there
 *	exec.c		a program in one, and its streams
 *	image.c		the image's id
 *	prepared.c	the id of the image with the agent's program in it
 *	prepared_tidy.c	what that has left
 *	engine.c	which it is, whether
 *	sites.c		where it may be
 *	owner.c		who may open its socket
 *	facts.c		what it says of itself, for the doctor
 *	ask.c		an API call (worker/http/api.h)
 *	body.c		JSON for it		answer.c	JSON from it
 *
 * Each calls only those below it.
 */
#include "worker/docker/docker_int.h"

#include <stdio.h>

#include "common/conf.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/backends.h"
#include "worker/docker/body.h"
#include "worker/docker/owner.h"

/* ---- the engine's events */

static void
line_cb(const char *line, size_t n, void *arg)
{
	static struct log_limit limit;
	struct docker *d = arg;
	struct answer_event ev;
	struct err e;
	int rc = answer_event(line, n, &ev, &e);

	if (rc < 0)
		log_warn_limited(&limit, "engine's events: %s", e.msg);
	else if (rc > 0)
		d->user->on_change(&ev.handle, ev.what, d->user_arg);
}

/* The stream ended: the next good ping asks for it again.  What it would have
 * said meanwhile is found out by the links that close.  An engine that was
 * restarted between two pings may be a newer one. */
static void
events_done_cb(const struct api_answer *a, void *arg)
{
	struct docker *d = arg;
	struct err e;

	d->events = NULL;
	if (d->freeing)
		return;
	(void)docker_fail(a, "events", &e);
	log_debug("engine's events ended: %s", e.msg);
	engine_doubt(d);
}

static void
watch_start(struct docker *d)
{
	AUTO(auto_free) char *filters = NULL;

	if (d->events != NULL)
		return;
	filters = body_filters_events(d->id);
	d->events = docker_ask(d,
	    &(struct api_ask){.method = "GET",
		.on_line = line_cb,
		.on_done = events_done_cb,
		.arg = d},
	    "/events?filters=%s", filters);
}

static void
watch_stop(struct docker *d)
{
	if (d->events != NULL)
		api_cancel(d->events);
	d->events = NULL;
}

static void
docker_free(struct backend *b)
{
	struct docker *d = (struct docker *)b;

	d->freeing = true;
	watch_stop(d);
	engine_clear(d);
	exec_clear(d);
	api_free(d->api);
	create_clear(d);
	prepared_images_clear(d);
	image_clear(d);
	free(d->instance);
	free(d->id);
	free(d->dockerfile);
	free(d);
}

/* ---- what follows from what the engine does */

static void
set_lack(struct docker *d, const char *text)
{
	if (strcmp(d->lack, text) == 0)
		return;
	(void)snprintf(d->lack, sizeof(d->lack), "%s", text);
	d->user->on_lack(d->lack, d->user_arg);
}

/* One that its first use builds or pulls is no lack: nobody would come to use
 * it where a balancer waits for readiness. */
static void
looked_cb(int rc, const struct err *why, void *arg)
{
	struct docker *d = arg;

	d->looks = false;
	if (d->freeing || (rc == ERR_BACKEND && d->has_looked))
		return;
	if (rc == ERR_NOTFOUND && strcmp(d->lack, why->msg) != 0)
		log_warn("%s", why->msg);
	d->has_looked = true;
	set_lack(d, rc == ERR_NOTFOUND ? why->msg : "");
}

static void
look(struct docker *d)
{
	char text[ERR_TEXT_MAX];

	if (d->user->on_lack == NULL || d->looks)
		return;
	d->looks = true;
	if (!d->has_looked) {
		(void)snprintf(text, sizeof(text), "image %s is looked for",
		    d->policy->image);
		set_lack(d, text);
	}
	docker_look_image(&d->b, d->policy->image, looked_cb, d);
}

static void
on_alive(struct docker *d)
{
	watch_start(d);
	look(d);
	prepared_tidy(d);
}

static void
on_gone(struct docker *d)
{
	watch_stop(d);
	d->has_looked = false;
}

static void
on_news(struct docker *d)
{
	const struct engine *en = &d->engine;

	if (en->up && d->user->on_about != NULL)
		d->user->on_about(&en->is.about, d->user_arg);
	d->user->on_state(en->up, en->detail, d->user_arg);
	if (!en->up)
		create_engine_gone(d);
}

static const struct engine_hooks engine_hooks = {on_alive, on_gone, on_news};

/* ---- life */

static enum backend_users
docker_users(const struct backend *b)
{
	return ((const struct docker *)b)->engine.users;
}

static const char *const *
docker_files(const struct backend *b)
{
	return ((const struct docker *)b)->files;
}

static const struct backend_ops docker_ops = {.can = BACKEND_HAS_PID |
	BACKEND_HAS_MOUNTS | BACKEND_CAN_STOP | BACKEND_CAN_BOUND |
	BACKEND_CAN_LOOK_IMAGE | BACKEND_CAN_EXEC | BACKEND_CAN_PREPARE,
    .free = docker_free,
    .create = create_new,
    .abandon = create_abandon,
    .start = docker_start,
    .inspect = docker_inspect,
    .remove = docker_remove,
    .stop = docker_stop,
    .set_bounds = docker_set_bounds,
    .is_id = policy_is_id,
    .users = docker_users,
    .list = docker_list,
    .look_image = docker_look_image,
    .exec = exec_new,
    .exec_cancel = exec_cancel,
    .files = docker_files};

static int
open_prepares(
    struct docker *d, const struct backend_start *start, struct err *e)
{
	AUTO(auto_free)
	char *by = xasprintf("%s-%u", start->instance_id, start->index);

	return prepared_images_init(d, start->agent, by, e);
}

static void
list_files(struct docker *d)
{
	static const char installed[] = DOCKER_INSTALLED_FILE;
	const char *const files[DOCKER_FILES_MAX] = {installed, OWNER_USERS,
	    OWNER_GROUPS, d->engine.sites.directory,
	    d->dockerfile[0] != '\0' ? d->dockerfile : NULL};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (files[i] != NULL)
			d->files[n++] = files[i];
}

int
docker_open(const struct conf *conf, const struct backend_start *start,
    struct backend **out, struct err *e)
{
	struct docker *d = xcalloc(1, sizeof(*d));

	d->b.ops = &docker_ops;
	d->base = start->base;
	d->policy = start->policy;
	d->instance = xstrdup(conf_str(conf, CONF_INSTANCE));
	d->id = xstrdup(start->instance_id);
	d->dockerfile = xstrdup(conf_str(conf, CONF_SANDBOX_DOCKERFILE_PATH));
	d->auto_build = conf_bool(conf, CONF_AUTO_BUILD_SANDBOX_IMAGE);
	d->user = start->watch;
	d->user_arg = start->arg;
	d->api = api_new(d->base, &docker_server);
	body_look_at_limits(&d->podman);
	image_init(d);
	TAILQ_INIT(&d->creates.all);
	TAILQ_INIT(&d->execs);
	if (open_prepares(d, start, e) != 0 ||
	    engine_init(d, conf, &engine_hooks, e) != 0) {
		docker_free(&d->b);
		return ERR_INVAL;
	}
	if (d->engine.sites.is_tcp)
		(void)snprintf(d->b.port, sizeof(d->b.port), "%u",
		    (unsigned int)d->engine.sites.port);
	list_files(d);
	*out = &d->b;
	return 0;
}
