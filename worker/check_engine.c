/*
 *	settings -> programs -> the engine comes or does not (on_state)
 *	-> one image after another (looked_cb)
 *
 * A runtime that the engine has not ends the process as it ends a worker.
 */
#include "worker/check_engine.h"

#include <event2/event.h>

#include "common/conf.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/place.h"
#include "common/xmalloc.h"
#include "worker/backends.h"
#include "worker/ceilings.h"
#include "worker/link/linkdir.h"

struct engine_check {
	struct event_base *base;
	struct conf *conf;
	struct policy policy;
	struct backend *backend;
	bool is_asked;
	size_t next; /* of the images that are allowed; 0: SANDBOX_IMAGE */
};

static void look_next(struct engine_check *c);

static void
looked_cb(int rc, const struct err *why, void *arg)
{
	struct engine_check *c = arg;

	if (rc != 0)
		log_warn("%s", why->msg);
	c->next++;
	look_next(c);
}

static void
look_next(struct engine_check *c)
{
	const char *ref =
	    c->next == 0 ? c->policy.image : c->policy.images[c->next - 1];

	if (ref == NULL || !backend_can(c->backend, BACKEND_CAN_LOOK_IMAGE))
		(void)event_base_loopbreak(c->base);
	else
		c->backend->ops->look_image(c->backend, ref, looked_cb, c);
}

static void
on_state(bool up, const char *detail, void *arg)
{
	struct engine_check *c = arg;

	if (c->is_asked)
		return;
	c->is_asked = true;
	/* What there is to say, the backend has said in the log. */
	(void)detail;
	if (up)
		look_next(c);
	else
		(void)event_base_loopbreak(c->base);
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

/* What a worker does at its start, in its order, but for what it makes. */
static int
check_settings(struct engine_check *c, struct err *e)
{
	static const struct backend_watch watch = {
	    .on_state = on_state, .on_change = on_change};
	const char *instance;
	const struct backend_start start = {.base = c->base,
	    .instance_id = "",
	    .policy = &c->policy,
	    .watch = &watch,
	    .arg = c};

	if (conf_load_env(c->conf, e) != 0 ||
	    policy_init(&c->policy, c->conf, e) != 0 ||
	    ceilings_check_conf(c->conf, e) != 0)
		return e->code;
	instance = conf_str(c->conf, CONF_INSTANCE);
	if ((instance[0] != '\0' && policy_check_instance(instance, e) != 0) ||
	    check_paths(c->conf, e) != 0)
		return e->code;
	return backend_open_configured(c->conf, &start, &c->backend, e);
}

int
check_engine_main(void)
{
	struct engine_check c = {.next = 0};
	int status = 0;
	struct err e;

	log_init("worker");
	log_set_level(LOG_WARN);
	c.base = event_base_new();
	if (c.base == NULL)
		fatal(EXIT_MEMORY, "no event base");
	c.conf = conf_new();
	if (check_settings(&c, &e) != 0 || c.backend == NULL) {
		log_error("%s", e.msg);
		status = EXIT_CONFIG;
	} else {
		(void)event_base_dispatch(c.base);
		c.backend->ops->free(c.backend);
		/* What it freed is freed after the turn (later.h). */
		(void)event_base_loop(c.base, EVLOOP_NONBLOCK);
	}
	policy_clear(&c.policy);
	conf_free(c.conf);
	event_base_free(c.base);
	return status;
}
