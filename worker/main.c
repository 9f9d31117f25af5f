/*
 * mcp-sandboxd-worker - the only process that reaches the engine
 *
 * Started by mcp-sandboxd with its number as the one argument.  It ends when
 * the front's channel ends, or the supervisor's; sandboxes go on and the next
 * worker takes them over.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include <event2/event.h>

#include "common/buf.h"
#include "common/child.h"
#include "common/confine.h"
#include "common/exit.h"
#include "common/fence.h"
#include "common/layout.h"
#include "common/log.h"
#include "common/metric.h"
#include "common/turns.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/backends.h"
#include "worker/ceilings.h"
#include "worker/doctor/doctor.h"
#include "worker/link/bridge_door.h"
#include "worker/link/delivery_image.h"
#include "worker/link/door.h"
#include "worker/link/linkdir.h"
#include "worker/trial.h"
#include "worker/visit.h"
#include "worker/worker.h"

#define INDEX_MAX 63
#define GATES_MAX 8
#define DRAIN_LOOK_MS 20
#define FIGURES_MS 1000

struct worker_process {
	struct worker w;
	struct child *child;
	uint32_t index;       /* of this worker */
	const char *instance; /* the setting's */
	struct ceilings *ceilings;
	struct timer *figures;
	struct timer *drain_look;
	struct timer *drain_end;
	bool draining;
	bool front_gone;
};

/* ---- the end */

static NORETURN void
leave(void)
{
	log_info("exit; sandboxes go on");
	_exit(0);
}

/* A container half made or half removed would be a leftover: see those few
 * through, they have the drain's time. */
static void
drain_look_cb(void *arg)
{
	struct worker_process *p = arg;

	if (p->front_gone && !boxes_is_busy(p->w.boxes) &&
	    (p->w.trial == NULL || !trial_is_busy(p->w.trial)))
		leave();
	timer_set_ms(p->drain_look, DRAIN_LOOK_MS);
}

static void
drain_end_cb(void *arg)
{
	(void)arg;
	leave();
}

static void
front_closed(struct worker *w, const struct err *why)
{
	struct worker_process *p = CONTAINER_OF(w, struct worker_process, w);

	if (why != NULL && why->code == ERR_PROTO)
		child_die(p->child, EXIT_PROTO, "front: %s", why->msg);
	if (!p->draining)
		leave();
	p->front_gone = true;
	worker_detach(w);
}

/* The front still ends its calls: go on until it closes, or time is up. */
static void
on_drain(uint32_t left_ms, void *arg)
{
	struct worker_process *p = arg;

	if (p->draining)
		return;
	p->draining = true;
	p->front_gone = p->w.front == NULL;
	timer_set_ms(p->drain_end, left_ms);
	drain_look_cb(p);
}

/* ---- starting */

static bool
way_can(const struct way *way, const struct backend *b)
{
	unsigned int needs =
	    way->carrier->ops->needs | way->delivery->ops->needs;

	return (needs & ~b->ops->can) == 0;
}

/* By which a trial knows one of an earlier start of this worker again. */
static struct trial *
open_trial(
    struct worker_process *p, const struct way *first, const struct way *other)
{
	AUTO(auto_free)
	char *name = xasprintf("%.24s-trial-%.8s-%u", p->instance,
	    child_instance(p->child), p->index);

	return trial_new(&(struct trial_of){.base = p->w.base,
	    .backend = p->w.box_host.backend,
	    .policy = &p->w.policy,
	    .ways = &p->w.ways,
	    .first = first,
	    .other = other,
	    .name = name});
}

/* All ways there are, for boxes that were made for them; and that of new ones,
 * or who finds it out. */
static int
choose_way(struct worker_process *p, const struct way *by_mount,
    const struct way *by_exec, const char *word, struct err *e)
{
	const struct backend *b = p->w.box_host.backend;
	const struct way *only = strcmp(word, "unix") == 0 ? by_mount : by_exec;
	bool is_set = strcmp(word, "auto") != 0;

	if (is_set && !way_can(only, b))
		return err_set(e, ERR_INVAL,
		    "CARRIER=%s: this engine cannot do what it needs", word);
	if (is_set)
		ways_choose(&p->w.ways, only, "set by CARRIER");
	else if (!way_can(by_mount, b))
		ways_choose(&p->w.ways, by_exec, "the engine mounts nothing");
	else if (!way_can(by_exec, b))
		ways_choose(&p->w.ways, by_mount,
		    "the engine starts no programs in sandboxes");
	else
		p->w.trial = open_trial(p, by_mount, by_exec);
	if (!is_set && way_can(by_exec, b))
		ways_set_own_kernel(&p->w.ways, by_exec);
	return 0;
}

static int
open_link(struct worker_process *p, const struct conf *conf, struct err *e)
{
	AUTO(auto_free) char *agent = NULL;
	struct worker *w = &p->w;
	const struct way *by_mount, *by_exec;
	uint8_t key[LINKDIRS_KEY_BYTES];
	struct agent_delivery *mount;
	struct linkdirs *dirs; /* the process's, to its end */
	int rc;

	if (linkdirs_find_agent(&agent, e) != 0)
		return EXIT_CONFIG;
	rc = linkdirs_open(conf_str(conf, CONF_DATA_DIR), &dirs, e);
	if (rc == 0)
		rc = delivery_mount_new(dirs, agent, &mount, e);
	if (rc == 0)
		rc = linkdirs_key(dirs, key, e);
	/* A full disk may have room again; a wrong path will not mend. */
	if (rc != 0)
		return rc == ERR_INVAL ? EXIT_CONFIG : EXIT_BUG;
	by_mount = ways_add(&w->ways, door_carrier_new(w->base, dirs), mount);
	by_exec = ways_add(&w->ways,
	    bridge_carrier_new(w->base, w->box_host.backend, key),
	    delivery_image_new());
	explicit_bzero(key, sizeof(key));
	if (choose_way(p, by_mount, by_exec, conf_str(conf, CONF_CARRIER), e) !=
	    0)
		return EXIT_CONFIG;
	return 0;
}

static int
open_backend(struct worker_process *p, const struct conf *conf, struct err *e)
{
	AUTO(auto_free) char *agent = NULL;
	struct worker *w = &p->w;
	struct backend_start start = {.base = w->base,
	    .instance_id = child_instance(w->child),
	    .index = p->index,
	    .policy = &w->policy,
	    .watch = &worker_watch,
	    .arg = w};

	if (linkdirs_find_agent(&agent, e) != 0)
		return EXIT_CONFIG;
	start.agent = agent;
	if (policy_check_instance(conf_str(conf, CONF_INSTANCE), e) != 0)
		return EXIT_CONFIG;
	if (start.instance_id[0] == '\0') {
		(void)err_set(e, ERR_INVAL,
		    "the supervisor named no instance: restart the server");
		return EXIT_PROTO;
	}
	if (backend_open_configured(conf, &start, &w->box_host.backend, e) != 0)
		return EXIT_CONFIG;
	return 0;
}

/* The link directories, and what the backend reads.  The engine's Unix socket
 * needs no gate: Landlock does not stand before those that have a path.  Of a
 * TCP engine curl connects what is connected already (dialer.h), so the port
 * needs one. */
static int
raise_fence(const struct worker *w, const struct conf *conf, struct err *e)
{
	const struct backend *b = w->box_host.backend;
	AUTO(auto_free)
	char *links =
	    xasprintf("%s/" LAYOUT_LINKS, conf_str(conf, CONF_DATA_DIR));
	struct fence_gate gates[GATES_MAX] = {{links, FENCE_OWN}};
	size_t n = 1;

	for (const char *const *p = b->ops->files(b);
	     *p != NULL && n < ARRAY_LEN(gates); p++)
		gates[n++] = (struct fence_gate){*p, FENCE_READ};
	if (b->port[0] != '\0' && n < ARRAY_LEN(gates))
		gates[n++] = (struct fence_gate){b->port, FENCE_TCP_PORT};
	return fence_raise(gates, n, e);
}

static int
on_config(struct child *c, const struct conf *conf, void *arg, struct err *e)
{
	struct worker_process *p = arg;
	struct event_base *base = p->w.base;
	int status;

	p->child = c;
	p->instance = conf_str(conf, CONF_INSTANCE);
	if (worker_init(&p->w, base, conf, e) != 0)
		return EXIT_CONFIG;
	p->w.child = c;
	if (ceilings_settle(p->ceilings, conf, e) != 0)
		return EXIT_CONFIG;
	p->w.box_host.ceilings = p->ceilings;
	status = open_backend(p, conf, e);
	if (status == 0)
		status = open_link(p, conf, e);
	if (status != 0)
		return status;
	if (raise_fence(&p->w, conf, e) != 0 || confine(CONFINE_WORKER, e) != 0)
		return EXIT_PRIVILEGE;
	return 0;
}

_Static_assert(
    (METRIC_WORKERS_END - METRIC_WORKERS_FIRST) * METRIC_NEWS_ENTRY_BYTES <=
	MSG_WORKER_FIGURES_ADDITIONS_MAX,
    "all that may be added in one message");

/* What was counted goes to the front, which outlives this process. */
static void
figures_cb(void *arg)
{
	struct worker_process *p = arg;
	struct buf b;

	if (p->w.front == NULL)
		return;
	timer_set_ms(p->figures, FIGURES_MS);
	buf_init(&b, MSG_WORKER_FIGURES_ADDITIONS_MAX);
	metric_news_write(&b);
	if (buf_len(&b) > 0)
		msg_send_worker_figures(p->w.front,
		    &(struct msg_worker_figures){
			.additions = {buf_data(&b), buf_len(&b)}});
	buf_clear(&b);
}

static void
on_peer(uint32_t index, uint32_t generation, int fd, void *arg)
{
	struct worker_process *p = arg;

	log_debug("front %u, generation %u", index, generation);
	if (p->w.front != NULL) /* our sandboxes belong to the one before */
		child_die(
		    p->child, EXIT_PROTO, "a second channel to the front");
	worker_attach(&p->w, fd, front_closed);
	timer_set_ms(p->figures, FIGURES_MS);
}

static int
on_ceiling(const char *tenant, const char *word, void *arg, struct err *e)
{
	const struct worker_process *p = arg;

	return ceilings_say(p->ceilings, tenant, word, e);
}

static const struct child_ops child_ops = {.on_ceiling = on_ceiling,
    .on_config = on_config,
    .on_peer = on_peer,
    .on_drain = on_drain};

static bool
is_command(int argc, char **argv, const char *name, int arguments)
{
	return argc == 2 + arguments && strcmp(argv[1], name) == 0;
}

static uint32_t
parse_index(int argc, char **argv)
{
	unsigned long n;
	char *end;

	if (argc != 2)
		fatal(EXIT_USAGE,
		    "usage: mcp-sandboxd-worker NUMBER; it is started "
		    "by mcp-sandboxd");
	errno = 0;
	n = strtoul(argv[1], &end, 10);
	if (errno != 0 || end == argv[1] || *end != '\0' || n > INDEX_MAX)
		fatal(
		    EXIT_USAGE, "\"%.20s\" is no number of a worker", argv[1]);
	return (uint32_t)n;
}

int
main(int argc, char **argv)
{
	static struct worker_process process;
	struct event_base *base;

	/* doctor table|json apart|together; purge ID ask|yes; check */
	if (is_command(argc, argv, "doctor", 2))
		return doctor_main(
		    strcmp(argv[2], "json") == 0 ? DOCTOR_JSON : DOCTOR_TABLE,
		    strcmp(argv[3], "apart") == 0 ? DOCTOR_USERS_APART :
						    DOCTOR_USERS_TOGETHER);
	if (is_command(argc, argv, "purge", 2))
		return visit_purge_main(argv[2],
		    strcmp(argv[3], "yes") == 0 ? PURGE_YES : PURGE_ASK);
	if (is_command(argc, argv, "check", 0))
		return visit_check_main();
	process.index = parse_index(argc, argv);
	base = event_base_new();
	if (base == NULL)
		fatal(EXIT_MEMORY, "no event base");
	process.w.base = base;
	process.ceilings = ceilings_new();
	process.drain_look = timer_new(base, drain_look_cb, &process);
	process.figures = timer_new(base, figures_cb, &process);
	process.drain_end = timer_new(base, drain_end_cb, &process);
	(void)child_start(
	    base, MSG_ROLE_WORKER, process.index, &child_ops, &process);
	(void)!turns_run(base);
	fatal(EXIT_BUG, "the loop has ended");
}
