/*
 * child.c - a child's control channel, from child_start to the end of the
 *process
 *
 *	STARTED		HELLO is said; CONFIG lines are collected
 *	READY		at CONFIG_END on_config ran and READY was said; from
 *			now on LISTEN, PEER and PEER_GONE may come, and a
 *			second CONFIG...CONFIG_END is a reload
 *
 * What comes when is checked by the list (schema/ipc.txt) before a handler
 * here is called.  Whatever ends the channel ends the process: end of file is
 * the supervisor's death, anything else is a program that does not belong to
 * it.
 */
#include "common/child.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/metric.h"
#include "common/timer.h"
#include "common/turns.h"
#include "common/xmalloc.h"

#define CHILD_COUNTS_MS 5000
#define CHILD_REASON_MAX 1000

struct child {
	struct ipc_chan *chan;
	struct timer *counts_timer;
	const struct child_ops *ops;
	void *arg;
	enum msg_control_state state;
	char role_name[CHILD_NAME_MAX];
	struct conf *conf;    /* what the callbacks see; never replaced */
	struct conf *pending; /* a reload that has not come to its end */
	char instance[MSG_INSTANCE_INSTANCE_MAX + 1];
	/* Newest generation per peer: a PEER_GONE about an older one is late.
	 */
	uint32_t generations[CHILD_PEERS];
	uint32_t done, sent_done;
};

/* _exit, not exit: other threads may be at work, and what atexit handlers
 * would tear down under them is the kernel's business now. */
static NORETURN void
die(struct child *c, int status, const char *reason)
{
	log_error("%s; exit status %d", reason, status);
	msg_send_last_words(c->chan,
	    &(struct msg_last_words){
		.status = (uint32_t)status, .reason = reason});
	_exit(status);
}

void
child_die(struct child *c, int status, const char *fmt, ...)
{
	char reason[CHILD_REASON_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	die(c, status, reason);
}

static int
on_config(void *arg, const struct msg_config *m, struct err *e)
{
	struct child *c = arg;

	if (c->pending == NULL)
		c->pending = conf_new();
	/* The supervisor took it: the two programs do not belong together. */
	if (conf_set(c->pending, m->key, m->value, e) != 0)
		return err_set(e, ERR_PROTO, "%s", e->msg);
	return 0;
}

static void
first_config(struct child *c)
{
	struct err e = {0};
	int status;

	c->conf = c->pending;
	c->pending = NULL;
	conf_apply_log(c->conf);
	turns_excuse(); /* opens all that the program has */
	status = c->ops->on_config(c, c->conf, c->arg, &e);
	if (status != 0)
		die(c, status > 0 && status < 126 ? status : EXIT_BUG, e.msg);
	c->state = MSG_CONTROL_READY;
	msg_send_ready(c->chan, &(struct msg_ready){0});
}

/* Values that the program keeps pointers to must stay where they are, so
 * only what may change is taken over. */
static void
later_config(struct child *c)
{
	const char *first = NULL;

	(void)conf_take_reload(c->conf, c->pending, &first);
	conf_free(c->pending);
	c->pending = NULL;
	conf_apply_log(c->conf);
	if (c->ops->on_reload != NULL)
		c->ops->on_reload(c->conf, c->arg);
}

static int
on_config_end(void *arg, const struct msg_config_end *m, struct err *e)
{
	struct child *c = arg;

	(void)m;
	(void)e;
	if (c->pending == NULL)
		c->pending = conf_new();
	if (c->state == MSG_CONTROL_STARTED)
		first_config(c);
	else
		later_config(c);
	return 0;
}

static int
on_instance(void *arg, const struct msg_instance *m, struct err *e)
{
	struct child *c = arg;

	(void)e;
	(void)snprintf(c->instance, sizeof(c->instance), "%s", m->instance);
	return 0;
}

static int
on_listen(void *arg, struct msg_listen *m, struct err *e)
{
	struct child *c = arg;

	if (c->ops->on_listen == NULL)
		return err_set(e, ERR_PROTO, "not for this program");
	c->ops->on_listen(msg_take_fd(&m->socket), m->address, c->arg);
	return 0;
}

static int
on_ceiling(void *arg, const struct msg_ceiling *m, struct err *e)
{
	struct child *c = arg;

	if (c->ops->on_ceiling == NULL)
		return err_set(e, ERR_PROTO, "not for this program");
	return c->ops->on_ceiling(m->tenant, m->word, c->arg, e);
}

static int
on_tls_file(void *arg, struct msg_tls_file *m, struct err *e)
{
	struct child *c = arg;

	if (c->ops->on_tls_file == NULL)
		return err_set(e, ERR_PROTO, "not for this program");
	c->ops->on_tls_file(m->part, msg_take_fd(&m->file), c->arg);
	return 0;
}

static int
on_tls_end(void *arg, const struct msg_tls_end *m, struct err *e)
{
	struct child *c = arg;

	if (c->ops->on_tls_end == NULL)
		return err_set(e, ERR_PROTO, "not for this program");
	if (c->state == MSG_CONTROL_STARTED) /* with the configuration */
		return 0;
	msg_send_tls_taken(c->chan,
	    &(struct msg_tls_taken){
		.number = m->number, .good = c->ops->on_tls_end(c->arg) == 0});
	return 0;
}

static int
on_secrets_key(void *arg, struct msg_secrets_key *m, struct err *e)
{
	struct child *c = arg;
	int fd = msg_take_fd(&m->file);

	(void)e;
	if (c->ops->on_secrets_key != NULL)
		c->ops->on_secrets_key(fd, c->arg);
	else
		(void)close(fd);
	return 0;
}

/* Without it counters begin anew with this process. */
static int
on_metrics_memory(void *arg, struct msg_metrics_memory *m, struct err *e)
{
	int fd = msg_take_fd(&m->memory);

	(void)arg;
	if (metric_adopt(fd, e) != 0)
		log_warn("%s", e->msg);
	(void)close(fd);
	return 0;
}

static int
on_peer(void *arg, struct msg_peer *m, struct err *e)
{
	struct child *c = arg;

	(void)e;
	c->generations[m->index] = m->generation;
	c->ops->on_peer(
	    m->index, m->generation, msg_take_fd(&m->channel), c->arg);
	return 0;
}

static int
on_peer_gone(void *arg, const struct msg_peer_gone *m, struct err *e)
{
	struct child *c = arg;

	(void)e;
	if (c->generations[m->index] != m->generation) {
		log_debug("late PEER_GONE of %u/%u", m->index, m->generation);
		return 0;
	}
	if (c->ops->on_peer_gone != NULL)
		c->ops->on_peer_gone(
		    m->index, m->delay_ms, m->throttled, c->arg);
	return 0;
}

static int
on_peer_quiet(void *arg, const struct msg_peer_quiet *m, struct err *e)
{
	struct child *c = arg;

	(void)e;
	if (c->generations[m->index] == m->generation &&
	    c->ops->on_peer_quiet != NULL)
		c->ops->on_peer_quiet(m->index, m->quiet, c->arg);
	return 0;
}

static int
on_crew_member(void *arg, const struct msg_crew_member *m, struct err *e)
{
	struct child *c = arg;

	(void)e;
	if (c->ops->on_crew_member != NULL)
		c->ops->on_crew_member(m, c->arg);
	return 0;
}

static int
on_ping(void *arg, const struct msg_ping *m, struct err *e)
{
	struct child *c = arg;

	(void)m;
	(void)e;
	msg_send_pong(c->chan, &(struct msg_pong){0});
	return 0;
}

static int
on_log_level(void *arg, const struct msg_log_level *m, struct err *e)
{
	(void)arg;
	(void)e;
	log_set_level((enum log_level)m->level);
	return 0;
}

static int
on_drain(void *arg, const struct msg_drain *m, struct err *e)
{
	struct child *c = arg;

	(void)e;
	if (c->state == MSG_CONTROL_STARTED) /* nothing to finish */
		_exit(0);
	c->ops->on_drain(m->left_ms, c->arg);
	return 0;
}

static const struct msg_master_to_child handlers = {
    .on_config = on_config,
    .on_config_end = on_config_end,
    .on_listen = on_listen,
    .on_peer = on_peer,
    .on_peer_gone = on_peer_gone,
    .on_peer_quiet = on_peer_quiet,
    .on_crew_member = on_crew_member,
    .on_ping = on_ping,
    .on_log_level = on_log_level,
    .on_drain = on_drain,
    .on_instance = on_instance,
    .on_ceiling = on_ceiling,
    .on_tls_file = on_tls_file,
    .on_tls_end = on_tls_end,
    .on_secrets_key = on_secrets_key,
    .on_metrics_memory = on_metrics_memory,
};

static int
on_message(struct ipc_chan *chan, struct ipc_msg *m, void *arg, struct err *e)
{
	struct child *c = arg;

	(void)chan;
	return msg_dispatch_master_to_child(&handlers, c->state, m, c, e);
}

static void
on_close(struct ipc_chan *chan, const struct err *why, void *arg)
{
	(void)chan;
	(void)arg;
	if (why->code != 0 && why->code != ERR_SYS) {
		log_error("%s", why->msg);
		_exit(EXIT_PROTO);
	}
	log_info("the supervisor is gone; exit");
	_exit(0);
}

static const struct ipc_ops chan_ops = {
    .on_message = on_message, .on_close = on_close};

static void
send_counts(struct child *c)
{
	if (c->done == c->sent_done)
		return;
	c->sent_done = c->done;
	msg_send_counts(c->chan, &(struct msg_counts){.done = c->done});
}

static void
counts_cb(void *arg)
{
	struct child *c = arg;

	send_counts(c);
	timer_set_ms(c->counts_timer, CHILD_COUNTS_MS);
	/* malloc keeps what a burst of work took, hundreds of megabytes, while
	 * a block beside it is in use: give whole free pages to the kernel. */
	(void)malloc_trim(0);
}

void
child_counts(struct child *c, uint32_t done)
{
	c->done = done;
	/* The first finished work decides how a death is judged: say it now. */
	if (done > 0 && c->sent_done == 0)
		send_counts(c);
}

void
child_still_starting(struct child *c)
{
	msg_send_still_starting(c->chan, &(struct msg_still_starting){0});
}

const char *
child_instance(const struct child *c)
{
	return c->instance;
}

/* Started by hand, there is no channel: say what to start instead. */
static void
check_channel(const char *role_name)
{
	int type = 0;
	socklen_t len = sizeof(type);

	if (getsockopt(CHILD_CTL_FD, SOL_SOCKET, SO_TYPE, &type, &len) == -1 ||
	    type != SOCK_SEQPACKET)
		fatal(EXIT_USAGE, "%s is started by mcp-sandboxd: start that",
		    role_name);
	(void)fcntl(CHILD_CTL_FD, F_SETFD, FD_CLOEXEC);
}

void
child_name(enum msg_role role, uint32_t index, char out[CHILD_NAME_MAX])
{
	static const char *const names[CHILD_ROLES] = {
	    [MSG_ROLE_FRONT] = "front",
	    [MSG_ROLE_KEYS] = "keys",
	    [MSG_ROLE_COURIER] = "courier"};

	if (names[role] != NULL)
		(void)snprintf(out, CHILD_NAME_MAX, "%s", names[role]);
	else
		(void)snprintf(out, CHILD_NAME_MAX, "worker/%u", index);
}

struct child *
child_start(struct event_base *base, enum msg_role role, uint32_t index,
    const struct child_ops *ops, void *arg)
{
	struct child *c = xcalloc(1, sizeof(*c));

	c->ops = ops;
	c->arg = arg;
	c->state = MSG_CONTROL_STARTED;
	child_name(role, index, c->role_name);
	log_init(c->role_name);
	/* A write to a peer that is gone is an error to handle, no death. */
	(void)signal(SIGPIPE, SIG_IGN);

	check_channel(c->role_name);
	c->chan = ipc_chan_new(base, CHILD_CTL_FD, "supervisor", &chan_ops, c);
	c->counts_timer = timer_new(base, counts_cb, c);
	timer_set_ms(c->counts_timer, CHILD_COUNTS_MS);
	msg_send_hello(c->chan,
	    &(struct msg_hello){.version = IPC_VERSION,
		.role = role,
		.index = index,
		.pid = (uint32_t)getpid()});
	return c;
}
