/*
 * The room's top: what a backend is made of.
 *
 *	docker.c	composes; what follows when the engine comes and goes
 *	open.c		a box on its way: image, create, start, inspect
 *	container.c	boxes that are there
 *	image.c		the image's id
 *	watch.c		the engine's events
 *	engine.c	where it is, whether
 *	ask.c		an API call (worker/http/api.h)
 *	body.c		JSON for it		answer.c	JSON from it
 *
 * Each calls only those below it.
 */
#include "worker/docker/docker_int.h"

#include <stdio.h>

#include "common/log.h"
#include "common/xmalloc.h"

static void
docker_free(struct backend *b)
{
	struct docker *d = (struct docker *)b;

	d->freeing = true;
	watch_stop(d);
	engine_clear(d);
	api_free(d->api);
	open_clear(d);
	image_clear(d);
	watch_clear(d);
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
		d->user->on_about(&en->about, d->user_arg);
	d->user->on_state(en->up, en->detail, d->user_arg);
	open_engine_changed(d);
}

static const struct engine_hooks engine_hooks = {on_alive, on_gone, on_news};

/* ---- life */

static enum backend_users
docker_users(const struct backend *b)
{
	return ((const struct docker *)b)->engine.users;
}

static const struct backend_ops docker_ops = {
    .can = BACKEND_HAS_PID | BACKEND_HAS_MOUNTS,
    .free = docker_free,
    .open = open_new,
    .abandon = open_abandon,
    .inspect = docker_inspect,
    .remove = docker_remove,
    .stop = docker_stop,
    .set_bounds = docker_set_bounds,
    .users = docker_users,
    .list = docker_list};

int
docker_new(struct event_base *base, const struct docker_settings *s,
    const struct backend_watch *watch, void *arg, struct backend **out,
    struct err *e)
{
	struct docker *d = xcalloc(1, sizeof(*d));

	d->b.ops = &docker_ops;
	d->base = base;
	d->policy = s->policy;
	d->instance = xstrdup(s->instance);
	d->id = xstrdup(s->id);
	d->dockerfile = xstrdup(s->dockerfile != NULL ? s->dockerfile : "");
	d->auto_build = s->auto_build;
	d->user = watch;
	d->user_arg = arg;
	d->api = api_new(base, &docker_server);
	image_init(d);
	open_init(d);
	watch_init(d);
	if (engine_init(d, s->host, &engine_hooks, e) != 0) {
		docker_free(&d->b);
		return ERR_INVAL;
	}
	*out = &d->b;
	return 0;
}
