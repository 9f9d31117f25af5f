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
#include "worker/link/door.h"
#include "worker/link/linkdir.h"
#include "worker/visit.h"
#include "worker/worker.h"

#define INDEX_MAX 63
#define GATES_MAX 8
#define DRAIN_LOOK_MS 20
#define FIGURES_MS 1000

struct worker_process {
	struct worker w;
	struct child *child;
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

	if (p->front_gone && !boxes_is_busy(p->w.boxes))
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

static int
check_needs(unsigned int needs, const struct backend *b, const char *name,
    struct err *e)
{
	if ((needs & ~b->ops->can) == 0)
		return 0;
	return err_set(
	    e, ERR_INVAL, "the engine cannot do what the link %s needs", name);
}

/* The carrier and the delivery there are. */
static int
open_link(struct worker *w, const struct conf *conf, struct err *e)
{
	AUTO(auto_free) char *agent = NULL;
	struct box_host *h = &w->box_host;
	struct linkdirs *dirs; /* the process's, to its end */
	int rc;

	if (linkdirs_find_agent(&agent, e) != 0)
		return EXIT_CONFIG;
	rc = linkdirs_open(conf_str(conf, CONF_DATA_DIR), &dirs, e);
	if (rc == 0)
		rc = delivery_mount_new(dirs, agent, &h->delivery, e);
	/* A full disk may have room again; a wrong path will not mend. */
	if (rc != 0)
		return rc == ERR_INVAL ? EXIT_CONFIG : EXIT_BUG;
	h->carrier = door_carrier_new(w->base, dirs);
	if (check_needs(h->carrier->ops->needs, h->backend,
		h->carrier->ops->name, e) != 0 ||
	    check_needs(h->delivery->ops->needs, h->backend,
		h->delivery->ops->name, e) != 0)
		return EXIT_CONFIG;
	return 0;
}

static int
open_backend(struct worker *w, const struct conf *conf, struct err *e)
{
	const struct backend_start start = {.base = w->base,
	    .instance_id = child_instance(w->child),
	    .policy = &w->policy,
	    .watch = &worker_watch,
	    .arg = w};

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

/* The link directories, and what the backend reads.  The engine's socket needs
 * no gate: Landlock does not stand before those that have a path. */
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
	return fence_raise(gates, n, e);
}

static int
on_config(struct child *c, const struct conf *conf, void *arg, struct err *e)
{
	struct worker_process *p = arg;
	struct event_base *base = p->w.base;
	int status;

	p->child = c;
	if (worker_init(&p->w, base, conf, e) != 0)
		return EXIT_CONFIG;
	p->w.child = c;
	if (ceilings_settle(p->ceilings, conf, e) != 0)
		return EXIT_CONFIG;
	p->w.box_host.ceilings = p->ceilings;
	status = open_backend(&p->w, conf, e);
	if (status == 0)
		status = open_link(&p->w, conf, e);
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
	uint32_t index;

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
	index = parse_index(argc, argv);
	base = event_base_new();
	if (base == NULL)
		fatal(EXIT_MEMORY, "no event base");
	process.w.base = base;
	process.ceilings = ceilings_new();
	process.drain_look = timer_new(base, drain_look_cb, &process);
	process.figures = timer_new(base, figures_cb, &process);
	process.drain_end = timer_new(base, drain_end_cb, &process);
	(void)child_start(base, MSG_ROLE_WORKER, index, &child_ops, &process);
	(void)!turns_run(base);
	fatal(EXIT_BUG, "the loop has ended");
}
