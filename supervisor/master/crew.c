#include "supervisor/master/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <event2/event.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/master/crew_int.h"

void
crew_timer_set(struct event *timer, uint32_t ms)
{
	struct timeval tv = {.tv_sec = (time_t)(ms / 1000),
	    .tv_usec = (suseconds_t)(ms % 1000) * 1000};

	if (event_add(timer, &tv) == -1)
		fatal(71, "no timer");
}

bool
role_is_throttled(const struct role *r)
{
	return evtimer_pending(r->timer, NULL);
}

void
slot_schedule(struct slot *s, uint32_t ms)
{
	s->due_ms = clock_mono_ms() + ms;
	crew_timer_set(s->timer, ms);
}

/* How long until the slot's next start, as the front is told. */
static uint32_t
slot_delay_ms(struct slot *s)
{
	const struct role *r = slot_role(s);
	uint64_t now_ms = clock_mono_ms();
	uint64_t due_ms = 0;

	if (role_is_throttled(r))
		due_ms = r->until_ms;
	else if (evtimer_pending(s->timer, NULL))
		due_ms = s->due_ms;
	return due_ms > now_ms ? (uint32_t)(due_ms - now_ms) : 0;
}

void
slot_tell_gone(struct slot *s)
{
	struct crew *c = s->crew;

	if (slot_front(c)->proc.state != PROC_READY)
		return;
	msg_send_peer_gone(slot_front(c)->proc.chan,
	    &(struct msg_peer_gone){.index = s->proc.index,
		.generation = s->peer_generation,
		.delay_ms = slot_delay_ms(s),
		.throttled = role_is_throttled(slot_role(s)) ||
		    s->use == SLOT_REFUSED || c->state != CREW_RUNNING});
}

/* Starting */

static void
slot_start(struct slot *s)
{
	const struct crew_setup *setup = s->crew->setup;
	struct privdrop_user user;
	struct spawn spawn = {.path = s->proc.role == MSG_ROLE_FRONT ?
		setup->front_path :
		setup->worker_path};
	struct err e;

	if (users_find(setup->users, s->proc.role, &user) == USERS_CHANGE)
		spawn.user = &user;
	s->note = SLOT_NONE;
	s->channel = SLOT_ALONE;
	s->restart.ready_ms = 0;
	if (proc_start(&s->proc, &spawn, &e) != 0)
		slot_died(s, e.msg);
}

static void
slot_cb(evutil_socket_t fd, short what, void *arg)
{
	struct slot *s = arg;

	(void)fd;
	(void)what;
	/* It left with 0, and its front lives on: that was no reason. */
	if (s->note == SLOT_UNEXPLAINED) {
		s->note = SLOT_NONE;
		slot_died(s, "exit status 0 without a reason");
		return;
	}
	if (role_is_throttled(slot_role(s)))
		slot_tell_gone(s); /* the role's timer starts it */
	else
		slot_start(s);
}

/* Pairing */

static void
pair(struct slot *worker)
{
	struct crew *c = worker->crew;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1) {
		log_error("%s: no job channel: %s", worker->proc.name,
		    strerror(errno));
		proc_kill(&worker->proc); /* its next life tries again */
		return;
	}
	worker->channel = SLOT_PAIRED;
	worker->peer_generation = ++c->peer_generation;
	msg_send_peer(slot_front(c)->proc.chan,
	    &(struct msg_peer){.index = worker->proc.index,
		.generation = worker->peer_generation,
		.channel = fds[0]});
	msg_send_peer(worker->proc.chan,
	    &(struct msg_peer){.index = 0,
		.generation = worker->peer_generation,
		.channel = fds[1]});
	log_debug("front and %s have channel %u", worker->proc.name,
	    worker->peer_generation);
}

/* A worker that still waits to die of an earlier front gets no new one. */
static void
pair_if_ready(struct slot *worker)
{
	if (slot_front(worker->crew)->proc.state == PROC_READY &&
	    worker->proc.state == PROC_READY && worker->note == SLOT_NONE &&
	    worker->channel == SLOT_ALONE)
		pair(worker);
}

static void
check_all_ready(struct crew *c)
{
	if (c->was_ready == CREW_WAS_READY)
		return;
	for (uint32_t i = 0; i < c->nslots; i++)
		if (c->slots[i].proc.state != PROC_READY)
			return;
	c->was_ready = CREW_WAS_READY;
	c->ops->on_ready(c->arg);
}

static void
on_ready(struct proc *p, void *arg)
{
	struct slot *s = arg;
	struct crew *c = s->crew;

	s->restart.ready_ms = clock_mono_ms();
	log_info("%s[%d] is ready", p->name, (int)p->pid);
	if (c->state != CREW_RUNNING)
		return;
	for (uint32_t i = 1; i < c->nslots; i++) {
		if (s != slot_front(c) && s != &c->slots[i])
			continue;
		pair_if_ready(&c->slots[i]);
		if (c->slots[i].proc.state == PROC_DOWN)
			slot_tell_gone(&c->slots[i]);
	}
	check_all_ready(c);
}

static void
on_hello(struct proc *p, void *arg)
{
	struct slot *s = arg;
	struct crew *c = s->crew;
	int fd;

	proc_configure(p, c->conf);
	if (p->role != MSG_ROLE_FRONT || c->setup->listener->fd < 0)
		return;
	fd = fcntl(c->setup->listener->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (fd == -1) {
		log_error("listening socket: %s", strerror(errno));
		proc_kill(p);
		return;
	}
	msg_send_listen(p->chan,
	    &(struct msg_listen){
		.address = c->setup->listener->address, .socket = fd});
}

static void
on_exit_of(struct proc *p, int wait_status, void *arg)
{
	(void)p;
	slot_on_exit(arg, wait_status);
}

static const struct proc_ops slot_ops = {
    .on_hello = on_hello, .on_ready = on_ready, .on_exit = on_exit_of};

static struct slot *
find_pid(struct crew *c, pid_t pid)
{
	for (uint32_t i = 0; i < c->nslots; i++)
		if (c->slots[i].proc.pid == pid)
			return &c->slots[i];
	return NULL;
}

void
crew_reap(struct crew *c)
{
	int wait_status;
	pid_t pid;

	while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
		struct slot *s = find_pid(c, pid);

		/* As PID 1 of a container we inherit strangers, too. */
		if (s != NULL)
			proc_on_reaped(&s->proc, wait_status);
	}
}

/* Life of the crew */

static void
role_init(struct crew *c, size_t at, enum msg_role role, const char *name,
    const struct restart_policy *policy)
{
	struct role *r = &c->roles[at];

	r->crew = c;
	r->role = role;
	r->name = name;
	r->policy = policy;
	r->timer = evtimer_new(c->base, crew_role_cb, r);
	if (r->timer == NULL)
		fatal(71, "no timer");
}

static void
slot_init(struct crew *c, uint32_t at)
{
	struct slot *s = &c->slots[at];

	s->crew = c;
	s->use = SLOT_USED;
	s->note = SLOT_NONE;
	s->timer = evtimer_new(c->base, slot_cb, s);
	if (s->timer == NULL)
		fatal(71, "no timer");
	proc_init(&s->proc, c->base, at == 0 ? MSG_ROLE_FRONT : MSG_ROLE_WORKER,
	    at == 0 ? 0 : at - 1, c->setup->tuning, &slot_ops, s);
}

struct crew *
crew_new(struct event_base *base, const struct crew_setup *setup,
    const struct crew_ops *ops, void *arg)
{
	struct crew *c = xcalloc(1, sizeof(*c));

	c->base = base;
	c->setup = setup;
	c->ops = ops;
	c->arg = arg;
	c->state = CREW_RUNNING;
	c->nslots = setup->workers + 1;
	role_init(c, 0, MSG_ROLE_FRONT, "front", &setup->tuning->front);
	role_init(c, 1, MSG_ROLE_WORKER, "workers", &setup->tuning->worker);
	c->stop_timer = evtimer_new(base, crew_stop_cb, c);
	if (c->stop_timer == NULL)
		fatal(71, "no timer");
	for (uint32_t i = 0; i < c->nslots; i++)
		slot_init(c, i);
	return c;
}

void
crew_free(struct crew *c)
{
	if (c == NULL)
		return;
	for (uint32_t i = 0; i < c->nslots; i++) {
		proc_kill(&c->slots[i].proc);
		proc_clear(&c->slots[i].proc);
		event_free(c->slots[i].timer);
	}
	for (size_t i = 0; i < ARRAY_LEN(c->roles); i++)
		event_free(c->roles[i].timer);
	event_free(c->stop_timer);
	free(c);
}

void
crew_configure(struct crew *c, const struct conf *conf)
{
	c->conf = conf;
	for (uint32_t i = 0; i < c->nslots; i++) {
		struct proc *p = &c->slots[i].proc;

		if (p->state == PROC_CONFIGURED || p->state == PROC_READY)
			proc_configure(p, conf);
	}
}

void
crew_set_log_level(struct crew *c, unsigned int level)
{
	for (uint32_t i = 0; i < c->nslots; i++)
		msg_send_log_level(c->slots[i].proc.chan,
		    &(struct msg_log_level){.level = level});
}

void
crew_start(struct crew *c)
{
	for (uint32_t i = 0; i < c->nslots; i++)
		slot_start(&c->slots[i]);
}
