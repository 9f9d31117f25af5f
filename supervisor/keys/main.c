/*
 * mcp-sandboxd-keys - asks the authorization server for its keys
 *
 * Started by mcp-sandboxd where OAUTH_ISSUER is set; an envoy (common/envoy.h).
 * It hands the keys' text to the front, and ends with it.
 */
#include <event2/event.h>
#include <jansson.h>

#include "common/envoy.h"
#include "common/log.h"
#include "common/turns.h"
#include "supervisor/keys/issuer.h"

struct keys_process {
	struct issuer *issuer;
	struct ipc_chan *front; /* NULL: not yet */
	struct buf jwks;        /* the newest */
	bool was_told;          /* that they cannot be had */
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
on_message(struct ipc_msg *m, void *arg, struct err *e)
{
	return msg_dispatch_front_to_keys(&handlers, m, arg, e);
}

static void
on_front(struct ipc_chan *front, void *arg)
{
	struct keys_process *p = arg;

	p->front = front;
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
	envoy_worked();
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

static int
on_open(
    struct event_base *base, const struct conf *conf, void *arg, struct err *e)
{
	struct keys_process *p = arg;

	(void)e;
	p->issuer = issuer_new(base, conf, &issuer_ops, p);
	return 0;
}

/* ---- a check: a server starts without its issuer, so that one that is away is
 * a warning. */

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
on_check(struct event_base *base, const struct conf *conf, struct err *e)
{
	static const struct issuer_ops checks = {
	    on_check_keys, on_check_failed};
	struct issuer *issuer = issuer_new(base, conf, &checks, base);

	(void)e;
	(void)!turns_run(base);
	issuer_free(issuer);
	return 0;
}

static const struct envoy_file files[] = {
    {"OAUTH_CA_FILE", CONF_OAUTH_CA_FILE}, {NULL, CONF_KEY_COUNT}};
static const struct envoy_ops ops = {.files = files,
    .run_as = "RUN_AS_KEYS",
    .on_open = on_open,
    .on_check = on_check,
    .on_front = on_front,
    .on_message = on_message};

int
main(int argc, char **argv)
{
	json_object_seed(0);
	buf_init(&process.jwks, 0);
	return envoy_main(
	    argc, argv, MSG_ROLE_KEYS, CHILD_KEYS_INDEX, &ops, &process);
}
