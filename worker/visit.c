/*
 *	settings -> the engine comes or does not (on_state)
 *	check:	one image after another (looked_cb)
 *	purge:	it lists what is ours (listed_cb), which is shown and agreed to
 *		-> removed one after another (removed_cb) -> link directories
 *
 * The loop ends when there is nothing more to do, and the process with it.  A
 * runtime that the engine has not ends the process as it ends a worker.
 */
#include "worker/visit.h"

#include <stdio.h>

#include <event2/event.h>

#include "common/conf.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/place.h"
#include "common/xmalloc.h"
#include "worker/backends.h"
#include "worker/ceilings.h"
#include "worker/link/linkdir.h"

struct engine_visit {
	struct event_base *base;
	struct conf *conf;
	struct policy policy;
	struct backend *backend;
	bool purges;
	const char *instance_id; /* to purge; "": none */
	bool is_asked;           /* the engine was */
	size_t next;             /* of all; of the images that are allowed, 0:
				  * SANDBOX_IMAGE */
	int status;

	enum purge_consent consent;
	struct backend_handle *all;
	size_t n;
	size_t failed;
};

static void
visit_end(struct engine_visit *v, int status)
{
	v->status = status;
	(void)event_base_loopbreak(v->base);
}

/* ---- looking at images */

static void look_next(struct engine_visit *v);

static void
looked_cb(int rc, const struct err *why, void *arg)
{
	struct engine_visit *v = arg;

	if (rc != 0)
		log_warn("%s", why->msg);
	v->next++;
	look_next(v);
}

static void
look_next(struct engine_visit *v)
{
	const char *ref =
	    v->next == 0 ? v->policy.image : v->policy.images[v->next - 1];

	if (ref == NULL || !backend_can(v->backend, BACKEND_CAN_LOOK_IMAGE))
		visit_end(v, 0);
	else
		v->backend->ops->look_image(v->backend, ref, looked_cb, v);
}

/* ---- purging */

static bool
keep_none(const struct uuid *u, void *arg)
{
	(void)u;
	(void)arg;
	return false;
}

/* Where no server ran there are none; the rest is said there. */
static void
remove_links(struct engine_visit *v)
{
	struct linkdirs *dirs;
	struct err e;

	if (linkdirs_open(conf_str(v->conf, CONF_DATA_DIR), &dirs, &e) != 0) {
		log_warn("link directories: %s", e.msg);
		return;
	}
	(void)printf("%u link directories removed\n",
	    linkdirs_sweep(dirs, INT64_MAX, keep_none, NULL));
	linkdirs_close(dirs);
}

static void
purge_end(struct engine_visit *v)
{
	(void)printf("%zu sandboxes removed\n", v->n - v->failed);
	if (v->failed == 0)
		remove_links(v);
	visit_end(v, v->failed == 0 ? 0 : 1);
}

static void
swept_cb(int rc, const struct err *why, void *arg)
{
	struct engine_visit *v = arg;

	if (rc != 0) {
		log_error("volumes of sandboxes: %s", why->msg);
		v->failed++;
	}
	purge_end(v);
}

static void remove_next(struct engine_visit *v);

static void
removed_cb(int rc, const struct err *why, void *arg)
{
	struct engine_visit *v = arg;

	if (rc != 0) {
		log_error(
		    "%s: %s", backend_handle_text(&v->all[v->next]), why->msg);
		v->failed++;
	}
	v->next++;
	remove_next(v);
}

static void
remove_next(struct engine_visit *v)
{
	if (v->next < v->n) {
		v->backend->ops->remove(
		    v->backend, &v->all[v->next], removed_cb, v);
		return;
	}
	if (v->backend->ops->sweep_files != NULL)
		v->backend->ops->sweep_files(
		    v->backend, &(struct backend_sweep){0}, swept_cb, v);
	else
		purge_end(v);
}

static bool
is_agreed(const struct engine_visit *v)
{
	char line[16];

	if (v->consent == PURGE_YES ||
	    (v->n == 0 && v->backend->ops->sweep_files == NULL))
		return true;
	(void)printf(
	    "remove these %zu sandboxes and all files in them? [y/N] ", v->n);
	(void)fflush(stdout);
	if (fgets(line, sizeof(line), stdin) != NULL &&
	    (line[0] == 'y' || line[0] == 'Y'))
		return true;
	(void)puts("nothing was removed (--yes agrees)");
	return false;
}

static void
listed_cb(int rc, const struct backend_container *list, size_t n,
    const struct err *why, void *arg)
{
	struct engine_visit *v = arg;

	if (rc != 0) {
		log_error("%s", why->msg);
		visit_end(v, 1);
		return;
	}
	v->all = xcalloc(n + 1, sizeof(*v->all));
	for (size_t i = 0; i < n; i++) {
		if (!list[i].is_ours && !list[i].is_trial)
			continue;
		v->all[v->n++] = list[i].handle;
		(void)printf("%.12s %s\n", backend_handle_text(&list[i].handle),
		    list[i].running ? "runs" : "rests");
	}
	if (is_agreed(v))
		remove_next(v);
	else
		visit_end(v, 1);
}

/* Which tenants there are only the front knows. */
static void
purge(struct engine_visit *v)
{
	if (!v->backend->is_per_tenant) {
		v->backend->ops->list(v->backend, listed_cb, v);
		return;
	}
	log_error("each tenant's sandboxes are in a namespace of their own, "
		  "and a purge does not know which there are: kubectl delete "
		  "pods -n NAMESPACE -l %s/instance-id=%s",
	    conf_str(v->conf, CONF_KUBERNETES_SANDBOX_LABEL_PREFIX),
	    v->instance_id);
	visit_end(v, 1);
}

/* ---- the engine */

static void
on_state(bool up, const char *detail, void *arg)
{
	struct engine_visit *v = arg;

	if (v->is_asked)
		return;
	v->is_asked = true;
	if (up && v->purges)
		purge(v);
	else if (up)
		look_next(v);
	else if (v->purges)
		log_error("%s", detail); /* a warning is not shown */
	if (!up)
		visit_end(v, v->purges ? 1 : 0);
}

static void
on_change(const struct backend_handle *h, enum backend_change what, void *arg)
{
	(void)h;
	(void)what;
	(void)arg;
}

static int
check_paths(const struct conf *conf, struct err *e)
{
	AUTO(auto_free) char *agent = NULL;
	AUTO(auto_free) char *data = NULL;
	size_t above;

	data = place_resolve(conf_str(conf, CONF_DATA_DIR), &above, e);
	if (data == NULL || linkdirs_check(data, e) != 0)
		return e->code;
	return linkdirs_find_agent(&agent, e);
}

/* What else a worker checks at its start, but for what it makes. */
static int
check_settings(const struct conf *conf, struct err *e)
{
	const char *instance = conf_str(conf, CONF_INSTANCE);

	if (ceilings_check_conf(conf, e) != 0 ||
	    (instance[0] != '\0' && policy_check_instance(instance, e) != 0))
		return e->code;
	return check_paths(conf, e);
}

static int
open_engine(struct engine_visit *v, struct err *e)
{
	static const struct backend_watch watch = {
	    .on_state = on_state, .on_change = on_change};
	const struct backend_start start = {.base = v->base,
	    .instance_id = v->instance_id,
	    .policy = &v->policy,
	    .watch = &watch,
	    .arg = v};

	if (conf_load_env(v->conf, e) != 0 ||
	    policy_init(&v->policy, v->conf, e) != 0 ||
	    (!v->purges && check_settings(v->conf, e) != 0))
		return e->code;
	return backend_open_configured(v->conf, &start, &v->backend, e);
}

/* ---- the two programs */

static int
visit_run(struct engine_visit *v)
{
	struct err e;

	v->base = event_base_new();
	if (v->base == NULL)
		fatal(EXIT_MEMORY, "no event base");
	v->conf = conf_new();
	if (open_engine(v, &e) != 0 || v->backend == NULL) {
		log_error("%s", e.msg);
		v->status = EXIT_CONFIG;
	} else {
		(void)event_base_dispatch(v->base);
		v->backend->ops->free(v->backend);
		/* What it freed is freed after the turn (later.h). */
		(void)event_base_loop(v->base, EVLOOP_NONBLOCK);
	}
	policy_clear(&v->policy);
	free(v->all);
	conf_free(v->conf);
	event_base_free(v->base);
	return v->status;
}

int
visit_purge_main(const char *id, enum purge_consent consent)
{
	struct engine_visit v = {
	    .purges = true, .instance_id = id, .consent = consent};

	log_init("purge");
	log_set_level(LOG_ERROR);
	return visit_run(&v);
}

int
visit_check_main(void)
{
	struct engine_visit v = {.instance_id = ""};

	log_init("worker");
	log_set_level(LOG_WARN);
	return visit_run(&v);
}
