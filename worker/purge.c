/*
 *	on_state	the engine is up: it lists what is ours
 *	listed_cb	shown, and agreed to
 *	removed_cb	one after another; then the link directories
 *
 * The loop ends when there is nothing more to do, and the process with it.
 */
#include "worker/purge.h"

#include <stdio.h>

#include <event2/event.h>

#include "common/conf.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/backends.h"
#include "worker/link/linkdir.h"

struct purge {
	struct event_base *base;
	struct conf *conf;
	struct policy policy;
	struct backend *backend;
	enum purge_consent consent;
	bool is_asked; /* the engine was */
	struct backend_handle *all;
	size_t n;
	size_t next;
	unsigned int failed;
	int status;
};

static void
purge_end(struct purge *p, int status)
{
	p->status = status;
	(void)event_base_loopbreak(p->base);
}

static bool
keep_none(const struct uuid *u, void *arg)
{
	(void)u;
	(void)arg;
	return false;
}

/* Where no server ran there are none; the rest is said there. */
static void
remove_links(struct purge *p)
{
	struct linkdirs *dirs;
	struct err e;

	if (linkdirs_open(conf_str(p->conf, CONF_DATA_DIR), &dirs, &e) != 0) {
		log_warn("link directories: %s", e.msg);
		return;
	}
	(void)printf("%u link directories removed\n",
	    linkdirs_sweep(dirs, INT64_MAX, keep_none, NULL));
	linkdirs_close(dirs);
}

static void remove_next(struct purge *p);

static void
removed_cb(int rc, const struct err *why, void *arg)
{
	struct purge *p = arg;

	if (rc != 0) {
		log_error(
		    "%s: %s", backend_handle_text(&p->all[p->next]), why->msg);
		p->failed++;
	}
	p->next++;
	remove_next(p);
}

static void
remove_next(struct purge *p)
{
	if (p->next < p->n) {
		p->backend->ops->remove(
		    p->backend, &p->all[p->next], removed_cb, p);
		return;
	}
	(void)printf("%zu sandboxes removed\n", p->n - p->failed);
	if (p->failed == 0)
		remove_links(p);
	purge_end(p, p->failed == 0 ? 0 : 1);
}

static bool
is_agreed(const struct purge *p)
{
	char line[16];

	if (p->consent == PURGE_YES || p->n == 0)
		return true;
	(void)printf(
	    "remove these %zu sandboxes and all files in them? [y/N] ", p->n);
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
	struct purge *p = arg;

	if (rc != 0) {
		log_error("%s", why->msg);
		purge_end(p, 1);
		return;
	}
	p->all = xcalloc(n + 1, sizeof(*p->all));
	for (size_t i = 0; i < n; i++) {
		if (!list[i].is_ours)
			continue;
		p->all[p->n++] = list[i].handle;
		(void)printf("%.12s %s\n", backend_handle_text(&list[i].handle),
		    list[i].running ? "runs" : "rests");
	}
	if (is_agreed(p))
		remove_next(p);
	else
		purge_end(p, 1);
}

static void
on_state(bool up, const char *detail, void *arg)
{
	struct purge *p = arg;

	if (p->is_asked)
		return;
	if (!up) {
		log_error("%s", detail);
		purge_end(p, 1);
		return;
	}
	p->is_asked = true;
	p->backend->ops->list(p->backend, listed_cb, p);
}

static void
on_change(const struct backend_handle *h, enum backend_change what, void *arg)
{
	(void)h;
	(void)what;
	(void)arg;
}

static int
open_engine(struct purge *p, const char *id, struct err *e)
{
	static const struct backend_watch watch = {
	    .on_state = on_state, .on_change = on_change};
	const struct backend_start start = {.base = p->base,
	    .instance_id = id,
	    .policy = &p->policy,
	    .watch = &watch,
	    .arg = p};

	if (conf_load_env(p->conf, e) != 0 ||
	    policy_init(&p->policy, p->conf, e) != 0)
		return e->code;
	return backend_open_configured(p->conf, &start, &p->backend, e);
}

int
purge_main(const char *id, enum purge_consent consent)
{
	struct purge p = {.consent = consent};
	struct err e;

	log_init("purge");
	log_set_level(LOG_ERROR);
	p.base = event_base_new();
	if (p.base == NULL)
		fatal(EXIT_MEMORY, "no event base");
	p.conf = conf_new();
	if (open_engine(&p, id, &e) != 0 || p.backend == NULL) {
		log_error("%s", e.msg);
		p.status = EXIT_CONFIG;
	} else {
		(void)event_base_dispatch(p.base);
		p.backend->ops->free(p.backend);
		/* What it freed is freed after the turn (later.h). */
		(void)event_base_loop(p.base, EVLOOP_NONBLOCK);
	}
	policy_clear(&p.policy);
	free(p.all);
	conf_free(p.conf);
	event_base_free(p.base);
	return p.status;
}
