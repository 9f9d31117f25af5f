/*
 * mcp-sandboxd-keys - asks the authorization server for its keys
 *
 * Started by mcp-sandboxd where OAUTH_ISSUER is set.  The front makes no
 * socket, so what must connect to another server, and reads what that says, is
 * a process of its own: without data, without a way to the engine, with a user
 * of its own.  It hands the keys' text to the front, and ends with it.
 */
#include <errno.h>

#include <event2/event.h>
#include <jansson.h>

#include "common/child.h"
#include "common/confine.h"
#include "common/exit.h"
#include "common/fence.h"
#include "common/log.h"
#include "common/turns.h"
#include "common/xmalloc.h"
#include "supervisor/keys/issuer.h"

struct keys_process {
	struct event_base *base;
	struct child *child;
	struct issuer *issuer;
	struct ipc_chan *front; /* NULL: not yet */
	struct buf jwks;        /* the newest */
	uint32_t done;
	bool was_told; /* that they cannot be had */
};

static struct keys_process process;

/* ---- the front */

static void
tell_keys(const struct keys_process *p)
{
	if (buf_len(&p->jwks) > 0)
		msg_send_keys(p->front,
		    &(struct msg_keys){
			.jwks = {buf_data(&p->jwks), buf_len(&p->jwks)}});
}

static int
on_keys_wanted(void *arg, const struct msg_keys_wanted *m, struct err *e)
{
	struct keys_process *p = arg;

	(void)m;
	(void)e;
	issuer_want(p->issuer);
	return 0;
}

static const struct msg_front_to_keys handlers = {
    .on_keys_wanted = on_keys_wanted};

static int
message_cb(struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	(void)c;
	return msg_dispatch_front_to_keys(&handlers, m, arg, e);
}

static NORETURN void
leave(void)
{
	log_info("exit");
	_exit(0);
}

static void
close_cb(struct ipc_chan *c, const struct err *why, void *arg)
{
	struct keys_process *p = arg;

	(void)c;
	if (why->code == ERR_PROTO)
		child_die(p->child, EXIT_PROTO, "front: %s", why->msg);
	leave();
}

static const struct ipc_ops front_ops = {message_cb, close_cb, NULL};

static void
on_peer(uint32_t index, uint32_t generation, int fd, void *arg)
{
	struct keys_process *p = arg;

	(void)index;
	(void)generation;
	if (p->front != NULL)
		child_die(
		    p->child, EXIT_PROTO, "a second channel to the front");
	p->front = ipc_chan_new(p->base, fd, "front", &front_ops, p);
	tell_keys(p);
}

/* ---- the issuer */

static void
on_keys(const struct buf *jwks, void *arg)
{
	struct keys_process *p = arg;

	buf_clear(&p->jwks);
	(void)!buf_append(&p->jwks, buf_data(jwks), buf_len(jwks));
	if (p->was_told)
		log_info("the issuer's keys are there again");
	p->was_told = false;
	child_counts(p->child, ++p->done, 0);
	tell_keys(p);
}

static void
on_failed(const struct err *why, void *arg)
{
	struct keys_process *p = arg;

	if (!p->was_told)
		log_warn("the issuer's keys cannot be had, tried again: %s",
		    why->msg);
	p->was_told = true;
	msg_send_keys_failed(p->front, &(struct msg_keys_failed){why->msg});
}

static const struct issuer_ops issuer_ops = {on_keys, on_failed};

/* ---- life */

/* What names and certificates are looked up in. */
static int
raise_fence(const struct conf *conf, struct err *e)
{
	const struct fence_gate gates[] = {{NULL, FENCE_TCP},
	    {"/etc/resolv.conf", FENCE_READ}, {"/etc/hosts", FENCE_READ},
	    {"/etc/nsswitch.conf", FENCE_READ}, {"/etc/host.conf", FENCE_READ},
	    {"/etc/gai.conf", FENCE_READ}, {"/etc/services", FENCE_READ},
	    {"/run/systemd/resolve", FENCE_READ},
	    {"/usr/share/ca-certificates", FENCE_READ},
	    {"/usr/local/share/ca-certificates", FENCE_READ},
	    {"/etc/pki", FENCE_READ},
	    {conf_str(conf, CONF_OAUTH_CA_FILE), FENCE_READ}};

	return fence_raise(gates, ARRAY_LEN(gates), e);
}

static int
check_authorities(const struct conf *conf, struct err *e)
{
	const char *path = conf_str(conf, CONF_OAUTH_CA_FILE);

	if (path[0] == '\0' || access(path, R_OK) == 0)
		return 0;
	return err_set(e, ERR_INVAL,
	    "OAUTH_CA_FILE: %.200s: %s, as the user of RUN_AS_KEYS", path,
	    strerror(errno));
}

static int
on_config(struct child *c, const struct conf *conf, void *arg, struct err *e)
{
	struct keys_process *p = arg;

	p->child = c;
	if (check_authorities(conf, e) != 0)
		return EXIT_CONFIG;
	if (raise_fence(conf, e) != 0)
		return EXIT_PRIVILEGE;
	p->issuer = issuer_new(p->base, conf, &issuer_ops, p);
	return confine_keys(e) == 0 ? 0 : EXIT_PRIVILEGE;
}

static void
on_drain(uint32_t left_ms, void *arg)
{
	(void)left_ms;
	(void)arg;
	leave();
}

static const struct child_ops child_ops = {
    .on_config = on_config, .on_peer = on_peer, .on_drain = on_drain};

/* ---- mcp-sandboxd-keys check: for --check-config.  A server starts without
 * its issuer, so that one that is away is a warning. */

static void
on_check_keys(const struct buf *jwks, void *arg)
{
	(void)jwks;
	(void)event_base_loopbreak(arg);
}

static void
on_check_failed(const struct err *why, void *arg)
{
	log_warn("the issuer's keys cannot be had now: %s", why->msg);
	(void)event_base_loopbreak(arg);
}

static int
check_main(struct event_base *base)
{
	static const struct issuer_ops ops = {on_check_keys, on_check_failed};
	struct conf *conf = conf_new();
	struct issuer *issuer;
	struct err e;
	int status = EXIT_CONFIG;

	log_set_level(LOG_WARN);
	if (conf_load_env(conf, &e) != 0 || check_authorities(conf, &e) != 0) {
		log_error("%s", e.msg);
	} else {
		issuer = issuer_new(base, conf, &ops, base);
		(void)!turns_run(base);
		issuer_free(issuer);
		status = 0;
	}
	conf_free(conf);
	event_base_free(base);
	return status;
}

int
main(int argc, char **argv)
{
	struct keys_process *p = &process;

	log_init("keys");
	json_object_seed(0);
	p->base = event_base_new();
	if (p->base == NULL)
		fatal(EXIT_MEMORY, "no event base");
	if (argc == 2 && strcmp(argv[1], "check") == 0)
		return check_main(p->base);
	buf_init(&p->jwks, 0);
	(void)child_start(
	    p->base, MSG_ROLE_KEYS, CHILD_KEYS_INDEX, &child_ops, p);
	(void)!turns_run(p->base);
	fatal(EXIT_BUG, "the loop has ended");
}
