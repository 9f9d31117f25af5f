/*
 * life.c - one life of one child
 *
 *	DOWN		nothing is there; life_start forks
 *	STARTED		HELLO is awaited; then on_hello configures it
 *	CONFIGURED	READY is awaited
 *	READY		pinged; an answer that does not come ends it
 *
 * One deadline timer stands for whatever is awaited (enum life_wait): a child
 * that is late gets a second look, then SIGABRT, then SIGKILL.  The life is
 * over when the process is reaped and its channel is read to the end, in
 * either order: last words may still lie in the socket.
 */
#include "supervisor/master/life.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/timer.h"
#include "supervisor/master/figures.h"
#include "supervisor/master/users.h"

#define LIFE_CLOSE_MS 500
#define LIFE_SECOND_LOOK_MS 1000 /* the last part of a long wait */

static void
wait_for(struct life *p, enum life_wait what, uint32_t ms)
{
	p->wait = what;
	timer_set_ms(p->deadline, ms);
}

static uint32_t
second_look_ms(uint32_t ms)
{
	return ms / 4 < LIFE_SECOND_LOOK_MS ? ms / 4 : LIFE_SECOND_LOOK_MS;
}

/*
 * For what a child owes us.  The time is over only after a second look: when
 * we, or the whole machine, stood still for a while, the timer is due before
 * the answer that lies in the socket was read.
 */
static void
wait_for_child(struct life *p, enum life_wait what, uint32_t ms)
{
	p->looks = 1;
	p->wait_ms = ms;
	wait_for(p, what, ms - second_look_ms(ms));
}

static void
wait_no_more(struct life *p)
{
	p->wait = LIFE_WAIT_NONE;
	timer_stop(p->deadline);
}

static void
send_signal(struct life *p, int sig)
{
	/* Not reaped, so the pid is still this process's. */
	if (p->pid > 0 && kill(p->pid, sig) == -1)
		log_warn(
		    "%s[%d]: kill: %s", p->name, (int)p->pid, strerror(errno));
}

/* Reaped and read to the end: the life is over. */
static void
finish(struct life *p)
{
	wait_no_more(p);
	timer_stop(p->ping);
	ipc_chan_free(p->chan);
	p->chan = NULL;
	p->state = LIFE_DOWN;
	p->started_wall_ms = 0;
	p->ops->on_exit(p, p->wait_status, p->arg);
}

/* SIGABRT first: a core file says where it hung. */
static void
look_again(struct life *p, const char *why)
{
	if (p->looks-- > 0) {
		wait_for(p, p->wait, second_look_ms(p->wait_ms));
		return;
	}
	log_error("%s[%d] %s in %u ms: SIGABRT", p->name, (int)p->pid, why,
	    p->wait_ms);
	send_signal(p, SIGABRT);
	wait_for(p, LIFE_WAIT_ABORT, p->tuning->abort_ms);
}

static void
deadline_cb(void *arg)
{
	struct life *p = arg;

	switch (p->wait) {
	case LIFE_WAIT_READY:
		look_again(p, "was not ready");
		break;
	case LIFE_WAIT_PONG:
		look_again(p, "answered no ping");
		break;
	case LIFE_WAIT_ABORT:
	case LIFE_WAIT_LEAVE:
		log_warn(
		    "%s[%d] is still there: SIGKILL", p->name, (int)p->pid);
		life_kill(p);
		break;
	case LIFE_WAIT_CLOSE:
		finish(p);
		break;
	case LIFE_WAIT_NONE:
	case LIFE_WAIT_KILL:
		break;
	}
}

static void
say_quiet(struct life *p, bool quiet)
{
	if (p->quiet == quiet)
		return;
	p->quiet = quiet;
	p->ops->on_quiet(p, quiet, p->arg);
}

/* Silence is counted from the oldest unanswered ping, not from the last
 * answer: time in which we asked nothing is not the child's. */
static void
ping_cb(void *arg)
{
	struct life *p = arg;

	timer_set_ms(p->ping, p->tuning->ping_ms);
	if (p->state != LIFE_READY)
		return;
	msg_send_ping(p->chan, &(struct msg_ping){0});
	if (p->wait == LIFE_WAIT_NONE) {
		p->asked_ms = clock_mono_ms();
		wait_for_child(p, LIFE_WAIT_PONG, p->tuning->silence_ms);
	} else if (p->wait == LIFE_WAIT_PONG &&
	    clock_mono_ms() - p->asked_ms >= p->tuning->quiet_ms) {
		say_quiet(p, true);
	}
}

static int
on_hello(void *arg, const struct msg_hello *m, struct err *e)
{
	struct life *p = arg;

	if (m->version != IPC_VERSION)
		return err_set(e, ERR_PROTO,
		    "its program speaks version %u, the supervisor %d: "
		    "restart the server",
		    m->version, IPC_VERSION);
	if (m->role != p->role || m->index != p->index ||
	    m->pid != (uint32_t)p->pid)
		return err_set(e, ERR_PROTO, "role %u, index %u, pid %u",
		    (unsigned int)m->role, m->index, m->pid);
	p->ops->on_hello(p, p->arg);
	return 0;
}

static int
on_ready(void *arg, const struct msg_ready *m, struct err *e)
{
	struct life *p = arg;

	(void)m;
	(void)e;
	p->state = LIFE_READY;
	if (p->wait == LIFE_WAIT_READY)
		wait_no_more(p);
	p->ops->on_ready(p, p->arg);
	return 0;
}

/* It said that it goes on: the wait begins anew, but not for ever. */
static int
on_still_starting(void *arg, const struct msg_still_starting *m, struct err *e)
{
	struct life *p = arg;

	(void)m;
	(void)e;
	if (p->wait == LIFE_WAIT_READY &&
	    clock_mono_ms() - p->began_ms < p->tuning->ready_max_ms)
		wait_for_child(p, LIFE_WAIT_READY, p->tuning->going_on_ms);
	return 0;
}

static int
on_pong(void *arg, const struct msg_pong *m, struct err *e)
{
	struct life *p = arg;

	(void)m;
	(void)e;
	if (p->wait == LIFE_WAIT_PONG)
		wait_no_more(p);
	say_quiet(p, false);
	return 0;
}

static int
on_counts(void *arg, const struct msg_counts *m, struct err *e)
{
	struct life *p = arg;

	(void)e;
	p->done = m->done;
	return 0;
}

static int
on_last_words(void *arg, const struct msg_last_words *m, struct err *e)
{
	struct life *p = arg;

	if (p->has_spoken)
		return err_set(e, ERR_PROTO, "said twice");
	p->has_spoken = true;
	log_error("%s[%d] ends with status %u: %s", p->name, (int)p->pid,
	    m->status, m->reason);
	if (p->pid > 0)
		life_expect_exit(p, p->tuning->leave_ms);
	return 0;
}

static int
on_tls_taken(void *arg, const struct msg_tls_taken *m, struct err *e)
{
	struct life *p = arg;

	if (p->role != MSG_ROLE_FRONT)
		return err_set(e, ERR_PROTO, "not for this program");
	p->ops->on_tls_taken(p, m->number, m->good, p->arg);
	return 0;
}

static const struct msg_child_to_master handlers = {
    .on_hello = on_hello,
    .on_ready = on_ready,
    .on_pong = on_pong,
    .on_counts = on_counts,
    .on_last_words = on_last_words,
    .on_tls_taken = on_tls_taken,
    .on_still_starting = on_still_starting,
};

static int
on_message(struct ipc_chan *chan, struct ipc_msg *m, void *arg, struct err *e)
{
	struct life *p = arg;

	(void)chan;
	return msg_dispatch_child_to_master(&handlers, p->state, m, p, e);
}

/* The channel stays until finish: it drops what is sent from now on. */
static void
on_close(struct ipc_chan *chan, const struct err *why, void *arg)
{
	struct life *p = arg;

	(void)chan;
	p->is_closed = true;
	if (p->pid == 0) {
		finish(p);
		return;
	}
	if (why->code != 0 && why->code != ERR_SYS) {
		log_error(
		    "%s[%d]: %s: SIGKILL", p->name, (int)p->pid, why->msg);
		life_kill(p);
		return;
	}
	if (p->wait != LIFE_WAIT_KILL && p->wait != LIFE_WAIT_ABORT)
		life_expect_exit(p, p->tuning->leave_ms);
}

static const struct ipc_ops chan_ops = {
    .on_message = on_message, .on_close = on_close};

void
life_init(struct life *p, struct event_base *base, enum msg_role role,
    uint32_t index, const struct tuning *tuning, const struct life_ops *ops,
    void *arg)
{
	memset(p, 0, sizeof(*p));
	p->role = role;
	p->index = index;
	p->base = base;
	p->tuning = tuning;
	p->ops = ops;
	p->arg = arg;
	child_name(role, index, p->name);
	p->deadline = timer_new(base, deadline_cb, p);
	p->ping = timer_new(base, ping_cb, p);
}

void
life_clear(struct life *p)
{
	timer_free(p->deadline);
	timer_free(p->ping);
	ipc_chan_free(p->chan);
	memset(p, 0, sizeof(*p));
}

int
life_start(struct life *p, struct spawn *s, struct err *e)
{
	AUTO(auto_close) int theirs = -1;
	AUTO(auto_close) int ours = -1;
	char arg[16];
	int fds[2];
	int rc;

	p->done = 0;
	p->quiet = false;
	p->has_spoken = false;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1)
		return err_errno(e, "%s: socketpair", p->name);
	ours = fds[0];
	theirs = fds[1];
	(void)snprintf(arg, sizeof(arg), "%u", p->index);
	s->name = p->name;
	s->arg = p->role == MSG_ROLE_WORKER ? arg : NULL;
	rc = spawn_child(s, theirs, &p->pid, e);
	if (rc != 0)
		return rc;

	figures_born(
	    p->role, p->pid, p->has_lived ? FIGURES_AGAIN : FIGURES_FIRST);
	p->has_lived = true;
	p->state = LIFE_STARTED;
	p->starts++;
	p->started_wall_ms = clock_wall_ms();
	p->is_closed = false;
	p->chan = ipc_chan_new(p->base, ours, p->name, &chan_ops, p);
	ours = -1; /* the channel's */
	p->began_ms = clock_mono_ms();
	wait_for_child(p, LIFE_WAIT_READY, p->tuning->ready_ms);
	timer_set_ms(p->ping, p->tuning->ping_ms);
	log_debug("%s[%d] started", p->name, (int)p->pid);
	return 0;
}

static void
send_config_cb(const char *key, const char *value, void *arg)
{
	const struct life *p = arg;

	msg_send_config(
	    p->chan, &(struct msg_config){.key = key, .value = value});
}

void
life_configure(struct life *p, const struct conf *conf)
{
	if (p->chan == NULL)
		return;
	if (p->state == LIFE_STARTED)
		figures_send(p->chan, p->role);
	conf_each(conf, users_conf_of(p->role), send_config_cb, p);
	msg_send_config_end(p->chan, &(struct msg_config_end){0});
	if (p->state == LIFE_STARTED)
		p->state = LIFE_CONFIGURED;
}

void
life_expect_exit(struct life *p, uint32_t ms)
{
	if (p->pid > 0)
		wait_for(p, LIFE_WAIT_LEAVE, ms);
}

void
life_kill(struct life *p)
{
	if (p->pid == 0)
		return;
	wait_no_more(p);
	p->wait = LIFE_WAIT_KILL;
	send_signal(p, SIGKILL);
}

void
life_on_reaped(struct life *p, int wait_status)
{
	figures_died(p->pid);
	p->pid = 0;
	p->wait_status = wait_status;
	if (p->is_closed) {
		finish(p);
		return;
	}
	/* Its last words may still be in the channel: the end of it comes
	 * after them.  A little later is enough should it never come. */
	wait_for(p, LIFE_WAIT_CLOSE, LIFE_CLOSE_MS);
}
