#include "common/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "common/log.h"
#include "common/xmalloc.h"

#define CHILD_WORKERS_MAX 64 /* WORKERS in schema/config.txt */
#define CHILD_ADDRESS_MAX 256
#define CHILD_COUNTS_S 5
#define CHILD_REASON_MAX 400
#define CHILD_EXIT_USAGE 64

enum child_state {
	CHILD_STARTING = 1,
	CHILD_READY = 2
};

struct child {
	struct ipc_chan *chan;
	struct event *counts_timer;
	const struct child_ops *ops;
	void *arg;
	enum child_state state;
	char role_name[24];
	struct conf *conf;    /* what the callbacks see; never replaced */
	struct conf *pending; /* a reload that has not come to its end */
	/* Newest generation per peer: a PEER_GONE about an older one is late.
	 */
	uint32_t generations[CHILD_WORKERS_MAX];
	uint32_t done, active;
	uint32_t sent_done, sent_active;
};

static void
send_last_words(struct child *c, int status, const char *reason)
{
	struct ipc_out o;

	ipc_out_init(&o, IPC_LAST_WORDS, 0);
	wire_put_u32(&o.b, (uint32_t)status);
	wire_put_str(&o.b, reason);
	ipc_send(c->chan, &o);
}

/* _exit, not exit: other threads may be at work, and what atexit handlers
 * would tear down under them is the kernel's business now. */
static NORETURN void
die(struct child *c, int status, const char *reason)
{
	log_error("%s; exit status %d", reason, status);
	send_last_words(c, status, reason);
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

static void
apply_log_settings(const struct conf *conf)
{
	int level = log_parse_level(conf_str(conf, CONF_LOG_LEVEL));

	if (level >= 0)
		log_set_level((enum log_level)level);
	log_set_format(strcmp(conf_str(conf, CONF_LOG_FORMAT), "json") == 0 ?
		LOG_FORMAT_JSON :
		LOG_FORMAT_TEXT);
}

static int
on_config(void *arg, struct ipc_msg *m, struct err *e)
{
	struct child *c = arg;
	AUTO(auto_free) char *key = wire_get_str(&m->in, CHILD_KEY_MAX);
	AUTO(auto_free) char *value = wire_get_str(&m->in, CHILD_VALUE_MAX);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (c->pending == NULL)
		c->pending = conf_new();
	/* The supervisor took it: the two programs do not belong together. */
	if (conf_set(c->pending, key, value, e) != 0)
		return err_set(e, ERR_PROTO, "%s", e->msg);
	return 0;
}

static void
first_config(struct child *c)
{
	struct err e = {0};
	struct ipc_out o;
	int status;

	c->conf = c->pending;
	c->pending = NULL;
	apply_log_settings(c->conf);
	status = c->ops->on_config(c, c->conf, c->arg, &e);
	if (status != 0)
		die(c, status > 0 && status < 126 ? status : CHILD_EXIT_BUG,
		    e.msg);
	c->state = CHILD_READY;
	ipc_out_init(&o, IPC_READY, 0);
	ipc_send(c->chan, &o);
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
	apply_log_settings(c->conf);
	if (c->ops->on_reload != NULL)
		c->ops->on_reload(c->conf, c->arg);
}

static int
on_config_end(void *arg, struct ipc_msg *m, struct err *e)
{
	struct child *c = arg;
	uint32_t generation = wire_get_u32(&m->in);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	log_debug("configuration %u is complete", generation);
	if (c->pending == NULL)
		c->pending = conf_new();
	if (c->state == CHILD_STARTING)
		first_config(c);
	else
		later_config(c);
	return 0;
}

static int
on_listen(void *arg, struct ipc_msg *m, struct err *e)
{
	struct child *c = arg;
	AUTO(auto_free) char *address = wire_get_str(&m->in, CHILD_ADDRESS_MAX);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (m->nfds != 1 || c->ops->on_listen == NULL)
		return err_set(e, ERR_PROTO, "LISTEN that is not for us");
	c->ops->on_listen(ipc_msg_take_fd(m), address, c->arg);
	return 0;
}

static int
on_peer(void *arg, struct ipc_msg *m, struct err *e)
{
	struct child *c = arg;
	uint32_t index = wire_get_u32(&m->in);
	uint32_t generation = wire_get_u32(&m->in);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (m->nfds != 1 || index >= CHILD_WORKERS_MAX)
		return err_set(e, ERR_PROTO, "PEER %u with %u descriptors",
		    index, m->nfds);
	c->generations[index] = generation;
	c->ops->on_peer(index, generation, ipc_msg_take_fd(m), c->arg);
	return 0;
}

static int
on_peer_gone(void *arg, struct ipc_msg *m, struct err *e)
{
	struct child *c = arg;
	uint32_t index = wire_get_u32(&m->in);
	uint32_t generation = wire_get_u32(&m->in);
	uint32_t delay_ms = wire_get_u32(&m->in);
	uint8_t throttled = wire_get_u8(&m->in);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (index >= CHILD_WORKERS_MAX || throttled > 1)
		return err_set(e, ERR_PROTO, "PEER_GONE %u, throttled %u",
		    index, throttled);
	if (c->generations[index] != generation) {
		log_debug("late PEER_GONE of %u/%u", index, generation);
		return 0;
	}
	if (c->ops->on_peer_gone != NULL)
		c->ops->on_peer_gone(index, delay_ms, throttled != 0, c->arg);
	return 0;
}

static int
on_ping(void *arg, struct ipc_msg *m, struct err *e)
{
	struct child *c = arg;
	uint64_t mono_ms = wire_get_u64(&m->in);
	struct ipc_out o;

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	ipc_out_init(&o, IPC_PONG, 0);
	wire_put_u64(&o.b, mono_ms);
	ipc_send(c->chan, &o);
	return 0;
}

static int
on_log_level(void *arg, struct ipc_msg *m, struct err *e)
{
	uint32_t level = wire_get_u32(&m->in);

	(void)arg;
	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (level > LOG_DEBUG)
		return err_set(e, ERR_PROTO, "log level %u", level);
	log_set_level((enum log_level)level);
	return 0;
}

static int
on_drain(void *arg, struct ipc_msg *m, struct err *e)
{
	struct child *c = arg;
	uint32_t left_ms = wire_get_u32(&m->in);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (c->state == CHILD_STARTING) /* nothing to finish */
		_exit(0);
	c->ops->on_drain(left_ms, c->arg);
	return 0;
}

static const struct ipc_route routes[] = {
    {IPC_CONFIG, CHILD_STARTING | CHILD_READY, 0, on_config},
    {IPC_CONFIG_END, CHILD_STARTING | CHILD_READY, 0, on_config_end},
    {IPC_LISTEN, CHILD_READY, 1, on_listen},
    {IPC_PEER, CHILD_READY, 1, on_peer},
    {IPC_PEER_GONE, CHILD_READY, 0, on_peer_gone},
    {IPC_PING, CHILD_STARTING | CHILD_READY, 0, on_ping},
    {IPC_LOG_LEVEL, CHILD_STARTING | CHILD_READY, 0, on_log_level},
    {IPC_DRAIN, CHILD_STARTING | CHILD_READY, 0, on_drain},
    {IPC_NONE, 0, 0, NULL},
};

static int
on_message(struct ipc_chan *chan, struct ipc_msg *m, void *arg, struct err *e)
{
	struct child *c = arg;

	(void)chan;
	return ipc_dispatch(routes, (unsigned int)c->state, m, c, e);
}

static void
on_close(struct ipc_chan *chan, const struct err *why, void *arg)
{
	(void)chan;
	(void)arg;
	if (why->code != 0 && why->code != ERR_SYS) {
		log_error("%s", why->msg);
		_exit(CHILD_EXIT_PROTO);
	}
	log_info("the supervisor is gone; exit");
	_exit(0);
}

static const struct ipc_ops chan_ops = {
    .on_message = on_message, .on_close = on_close};

static void
send_counts(struct child *c)
{
	struct ipc_out o;

	if (c->done == c->sent_done && c->active == c->sent_active)
		return;
	c->sent_done = c->done;
	c->sent_active = c->active;
	ipc_out_init(&o, IPC_COUNTS, 0);
	wire_put_u32(&o.b, c->done);
	wire_put_u32(&o.b, c->active);
	ipc_send(c->chan, &o);
}

static void
counts_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	send_counts(arg);
}

void
child_counts(struct child *c, uint32_t done, uint32_t active)
{
	c->done = done;
	c->active = active;
	/* The first finished work decides how a death is judged: say it now. */
	if (done > 0 && c->sent_done == 0)
		send_counts(c);
}

/* Started by hand, there is no channel: say what to start instead. */
static void
check_channel(const char *role_name)
{
	int type = 0;
	socklen_t len = sizeof(type);

	if (getsockopt(CHILD_CTL_FD, SOL_SOCKET, SO_TYPE, &type, &len) == -1 ||
	    type != SOCK_SEQPACKET)
		fatal(CHILD_EXIT_USAGE,
		    "%s is started by mcp-sandboxd: start that", role_name);
	(void)fcntl(CHILD_CTL_FD, F_SETFD, FD_CLOEXEC);
}

static void
send_hello(struct child *c, enum ipc_role role, uint32_t index)
{
	struct ipc_out o;

	ipc_out_init(&o, IPC_HELLO, 0);
	wire_put_u32(&o.b, IPC_VERSION);
	wire_put_u32(&o.b, (uint32_t)role);
	wire_put_u32(&o.b, index);
	wire_put_u32(&o.b, (uint32_t)getpid());
	ipc_send(c->chan, &o);
}

struct child *
child_start(struct event_base *base, enum ipc_role role, uint32_t index,
    const struct child_ops *ops, void *arg)
{
	static const struct timeval period = {.tv_sec = CHILD_COUNTS_S};
	struct child *c = xcalloc(1, sizeof(*c));

	c->ops = ops;
	c->arg = arg;
	c->state = CHILD_STARTING;
	if (role == IPC_ROLE_FRONT)
		(void)snprintf(c->role_name, sizeof(c->role_name), "front");
	else
		(void)snprintf(
		    c->role_name, sizeof(c->role_name), "worker/%u", index);
	log_init(c->role_name);
	/* A write to a peer that is gone is an error to handle, no death. */
	(void)signal(SIGPIPE, SIG_IGN);

	check_channel(c->role_name);
	c->chan = ipc_chan_new(base, CHILD_CTL_FD, "supervisor", &chan_ops, c);
	c->counts_timer = event_new(base, -1, EV_PERSIST, counts_cb, c);
	if (c->counts_timer == NULL ||
	    event_add(c->counts_timer, &period) == -1)
		fatal(CHILD_EXIT_MEMORY, "no timer");
	send_hello(c, role, index);
	return c;
}
