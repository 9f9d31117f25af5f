/*
 * process.c - the channel kind "process"
 *
 *	on_open -> LIVE -> EXITED is sent -> ENDED -> all output sent -> CLOSE
 *	             \-> closed or lost -> UNWANTED -> its tree is dead
 *
 * The object lives as long as its channel and its process, which has pointers
 * into its specification.  An UNWANTED one reads on and drops the output, so
 * that no program stays blocked on a pipe.
 */
#include "images/agent/process.h"

#include <errno.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/runlog.h"
#include "common/xmalloc.h"
#include "images/agent/owners.h"

enum process_state {
	PROCESS_LIVE,
	PROCESS_ENDED,
	PROCESS_UNWANTED
};

struct process {
	struct chan chan;
	struct processes *all;
	enum process_state state;
	struct runspec spec;
	struct proc_spec proc_spec;
	struct proc *proc;
	struct flow out[2]; /* stdout, stderr */
	uint8_t stop;       /* reason of a cancel, or 0 */
	TAILQ_ENTRY(process) link;
};

void
processes_init(struct processes *ps, struct mux *mux, struct procs *procs)
{
	memset(ps, 0, sizeof(*ps));
	ps->mux = mux;
	ps->procs = procs;
	TAILQ_INIT(&ps->list);
}

static struct uplink *
uplink_of(const struct process *p)
{
	return p->all->mux->uplink;
}

static struct process *
process_of(struct chan *c)
{
	return HASH_OF(&c->by_number, struct process, chan.by_number);
}

static void
process_free(struct process *p)
{
	for (size_t i = 0; i < ARRAY_LEN(p->out); i++) {
		uplink_drop(uplink_of(p), &p->out[i]);
		flow_clear(&p->out[i]);
	}
	TAILQ_REMOVE(&p->all->list, p, link);
	p->all->count--;
	runspec_clear(&p->spec);
	free(p);
}

/* ---- from the process */

static size_t
on_room(void *arg, unsigned int stream)
{
	const struct process *p = arg;

	return ring_room(&p->out[stream].ring);
}

static int
on_space(void *arg, unsigned int stream, size_t n, struct iovec iov[2])
{
	struct process *p = arg;
	struct ring *r = &p->out[stream].ring;

	return ring_view(r, r->end, n, iov);
}

static void
on_taken(void *arg, unsigned int stream, size_t n)
{
	struct process *p = arg;
	struct flow *f = &p->out[stream];

	ring_commit(&f->ring, n);
	if (p->state == PROCESS_UNWANTED)
		ring_release(&f->ring, f->ring.end);
	uplink_kick(uplink_of(p), f);
}

static void
process_send_exited(struct process *p, const struct proc_end *end)
{
	char text[FRAME_EXITED_TEXT_MAX + 1];
	struct frame_exited m = {.chan = p->chan.number,
	    .reason = (uint8_t)proc_end_reason(end->why),
	    .exit_code = end->exit_code,
	    .signal = end->signal,
	    .wall_us = end->wall_us,
	    .cpu_us = end->cpu_us,
	    .text = text};
	struct uplink *u = uplink_of(p);

	if (end->why == PROC_KILLED && p->stop != 0)
		m.reason = p->stop;
	proc_end_text(end, &p->proc_spec, text, sizeof(text));
	uplink_put(u, frame_put_exited(&u->out, &m));
	uplink_urgent(u);
}

static void
on_end(const struct proc_end *end, void *arg)
{
	struct process *p = arg;

	p->proc = NULL;
	if (p->state == PROCESS_UNWANTED) {
		process_free(p);
		return;
	}
	p->state = PROCESS_ENDED;
	process_send_exited(p, end);
}

static const struct proc_ops process_proc_ops = {
    {on_room, on_space, on_taken}, on_end};

/* ---- from the worker */

static int
on_credit(struct chan *c, const struct frame_credit *m, struct err *e)
{
	struct process *p = process_of(c);
	unsigned int i = m->stream - PROCESS_STREAM_OUT;

	if (i >= ARRAY_LEN(p->out))
		return err_set(e, ERR_PROTO, "stream %u", m->stream);
	if (flow_grant(&p->out[i], m->taken, m->limit, e) != 0)
		return ERR_PROTO;
	uplink_kick(uplink_of(p), &p->out[i]);
	if (p->proc != NULL)
		procs_resume(p->all->procs, p->proc);
	return 0;
}

static void
process_cancel(struct process *p, enum runlog_reason reason)
{
	if (p->proc == NULL || p->stop != 0)
		return;
	p->stop = (uint8_t)reason;
	procs_kill(p->proc, PROC_KILLED);
}

static int
on_cancel(struct chan *c, const struct frame_cancel *m, struct err *e)
{
	(void)e;
	process_cancel(process_of(c), (enum runlog_reason)m->reason);
	return 0;
}

void
processes_cancel_all(struct processes *ps, enum runlog_reason reason)
{
	struct process *p;

	TAILQ_FOREACH (p, &ps->list, link)
		process_cancel(p, reason);
}

static void
on_gone(struct chan *c, enum chan_gone how)
{
	struct process *p = process_of(c);

	(void)how; /* it dies either way */
	if (p->proc == NULL) {
		process_free(p);
		return;
	}
	p->state = PROCESS_UNWANTED;
	for (size_t i = 0; i < ARRAY_LEN(p->out); i++) {
		uplink_drop(uplink_of(p), &p->out[i]);
		flow_close(&p->out[i]);
		ring_release(&p->out[i].ring, p->out[i].ring.end);
	}
	procs_kill(p->proc, PROC_KILLED);
	procs_resume(p->all->procs, p->proc);
}

static const struct chan_ops process_chan_ops = {
    .on_credit = on_credit, .on_cancel = on_cancel, .on_gone = on_gone};

/* ---- open */

static struct process *
process_new(struct processes *ps, const struct frame_open_process *m,
    struct runspec *spec)
{
	struct process *p = xcalloc(1, sizeof(*p));
	struct err e;

	p->all = ps;
	p->spec = *spec;
	memset(spec, 0, sizeof(*spec));
	p->proc_spec = proc_spec_of(&p->spec.commands[0], p->spec.user);
	for (unsigned int i = 0; i < ARRAY_LEN(p->out); i++) {
		flow_init(&p->out[i], (uint8_t)(PROCESS_STREAM_OUT + i),
		    FRAME_WINDOW_BYTES);
		if (flow_open(&p->out[i], m->chan, 0, m->limit, &e) != 0)
			fatal(EXIT_BUG, "new process: %s", e.msg);
	}
	TAILQ_INSERT_TAIL(&ps->list, p, link);
	ps->count++;
	mux_add(ps->mux, &p->chan, m->chan, &process_chan_ops, NULL);
	return p;
}

static void
process_start(struct process *p)
{
	struct proc_end end = {0};

	p->proc =
	    procs_start(p->all->procs, &p->proc_spec, &process_proc_ops, p);
	if (p->proc != NULL)
		return;
	proc_end_unstarted(&end, KEEPER_FORK, errno);
	on_end(&end, p);
}

/* Why spec is not a single process; NULL: it is. */
static const char *
why_not(const struct runspec *spec)
{
	if (spec->ncommands != 1 || spec->nfiles != 0)
		return "a process is one command without files";
	if ((spec->commands[0].flags & (RUNSPEC_DENIED | RUNSPEC_NO_SECRET)) !=
	    0)
		return "the command is denied";
	return owners_lack(spec->user);
}

int
process_on_open(
    struct processes *ps, const struct frame_open_process *m, struct err *e)
{
	struct runspec spec;
	const char *why;

	if (mux_claim(ps->mux, m->chan, e) != 0)
		return ERR_PROTO;
	if (ps->count >= PROCESSES_MAX) {
		mux_refuse(ps->mux, m->chan, EAGAIN,
		    "too many processes in this sandbox");
		return 0;
	}
	if (runspec_decode(m->spec.p, m->spec.n, &spec, e) != 0) {
		mux_refuse(ps->mux, m->chan, EINVAL, e->msg);
		return 0;
	}
	why = why_not(&spec);
	if (why == NULL)
		process_start(process_new(ps, m, &spec));
	else
		mux_refuse(ps->mux, m->chan, EINVAL, why);
	runspec_clear(&spec);
	return 0;
}

/* ---- the loop */

static bool
is_done(const struct process *p)
{
	return p->state == PROCESS_ENDED && flow_is_sent(&p->out[0]) &&
	    flow_is_sent(&p->out[1]);
}

void
processes_tick(struct processes *ps)
{
	struct process *p, *next;

	for (p = TAILQ_FIRST(&ps->list); p != NULL; p = next) {
		next = TAILQ_NEXT(p, link);
		if (!is_done(p))
			continue;
		mux_close(ps->mux, &p->chan, 0, "");
		process_free(p);
	}
}

bool
processes_is_busy(const struct processes *ps)
{
	const struct process *p;

	TAILQ_FOREACH (p, &ps->list, link)
		if (is_done(p))
			return true;
	return false;
}
