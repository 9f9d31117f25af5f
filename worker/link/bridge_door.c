/*
 * A bridge_door is how this worker comes to the agent of one box.
 *
 *	expect		the box runs: a program is started in it
 *	  |
 *	joined_cb	a stream: KNOCK is its first frame, then it is the
 *	  |		link's
 *	ended_cb	it is over: again, after a while
 */
#include "worker/link/bridge_door.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/frame.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/later.h"

/* A stream that lived so long was a good one. */
#define GOOD_MS 1000
#define KNOCK_MAX 64

struct bridge_carrier {
	struct carrier c;
	struct event_base *base;
	struct backend *backend;
	uint8_t key[BRIDGE_KEY_BYTES];
};

struct bridge_door {
	struct door d;
	struct bridge_carrier *in;
	struct uuid box;
	struct link *link;
	struct backend_handle handle; /* not set: not expected yet */
	struct backend_exec *exec;    /* under way; NULL: none */
	struct timer *again;
	uint32_t backoff_ms;
	uint64_t since_ms; /* when the stream began */
	char trouble[ERR_TEXT_MAX];
};

static const char *const command[] = {FRAME_PROGRAM_IN_SANDBOX, "bridge", NULL};

/* ---- the secret */

void
bridge_secret(const uint8_t key[BRIDGE_KEY_BYTES], const struct uuid *box,
    uint8_t out[BRIDGE_SECRET_BYTES])
{
	unsigned int n = BRIDGE_SECRET_BYTES;

	if (HMAC(EVP_sha256(), key, BRIDGE_KEY_BYTES, (const uint8_t *)box,
		sizeof(*box), out, &n) == NULL ||
	    n != BRIDGE_SECRET_BYTES)
		fatal(EXIT_BUG, "no HMAC-SHA256");
}

/* ---- the streams of a door */

static void door_connect(struct bridge_door *d);

static void
connect_again(struct bridge_door *d, const char *why)
{
	(void)snprintf(d->trouble, sizeof(d->trouble), "%s", why);
	timer_set_ms(d->again, d->backoff_ms);
	d->backoff_ms = d->backoff_ms * 2 < BRIDGE_BACKOFF_MAX_MS ?
	    d->backoff_ms * 2 :
	    BRIDGE_BACKOFF_MAX_MS;
}

static void
again_cb(void *arg)
{
	struct bridge_door *d = arg;

	if (d->exec == NULL)
		door_connect(d);
}

/* 0, or an errno: a socket that is new takes so few bytes whole. */
static int
knock(const struct bridge_door *d, int fd)
{
	uint8_t secret[BRIDGE_SECRET_BYTES];
	const struct frame_knock m = {.secret = secret};
	struct buf b;
	int rc = 0;

	bridge_secret(d->in->key, &d->box, secret);
	buf_init(&b, KNOCK_MAX);
	if (frame_put_knock(&b, &m) != 0)
		fatal(EXIT_BUG, "bridge: no room for a knock");
	if (send(fd, buf_data(&b), buf_len(&b), MSG_NOSIGNAL) !=
	    (ssize_t)buf_len(&b))
		rc = errno == 0 ? EIO : errno;
	OPENSSL_cleanse(buf_data(&b), buf_len(&b));
	OPENSSL_cleanse(secret, sizeof(secret));
	buf_clear(&b);
	return rc;
}

static void
joined_cb(int rc, int fd, const struct err *why, void *arg)
{
	static struct log_limit limit;
	struct bridge_door *d = arg;

	if (rc != 0) {
		d->exec = NULL;
		log_warn_limited(&limit, "bridge: %s", why->msg);
		connect_again(d, why->msg);
		return;
	}
	d->since_ms = clock_mono_ms();
	rc = knock(d, fd);
	if (rc != 0) {
		(void)close(fd); /* then ended_cb */
		log_warn_limited(&limit, "bridge: knock: %s", strerror(rc));
		return;
	}
	d->trouble[0] = '\0';
	link_begin(d->link, fd);
}

static void
ended_cb(const char *why, void *arg)
{
	struct bridge_door *d = arg;

	d->exec = NULL;
	if (clock_mono_ms() - d->since_ms >= GOOD_MS)
		d->backoff_ms = BRIDGE_BACKOFF_FIRST_MS;
	connect_again(d, why);
}

static const struct backend_exec_user exec_user = {joined_cb, ended_cb};

static void
door_connect(struct bridge_door *d)
{
	struct backend *b = d->in->backend;

	d->exec = b->ops->exec(b, &d->handle, command, &exec_user, d);
}

/* ---- the carrier */

static int
bridge_prepare(struct carrier *c, const struct uuid *box,
    struct backend_wishes *out, struct err *e)
{
	(void)box;
	(void)e;
	out->carrier = c->ops->name;
	out->listens = true;
	return 0;
}

static int
bridge_listen(struct carrier *c, const struct uuid *box, struct link *link,
    struct door **out, struct err *e)
{
	struct bridge_carrier *bc = (struct bridge_carrier *)c;
	struct bridge_door *d = xcalloc(1, sizeof(*d));

	(void)e;
	d->d.ops = c->ops;
	d->in = bc;
	d->box = *box;
	d->link = link;
	d->backoff_ms = BRIDGE_BACKOFF_FIRST_MS;
	d->again = timer_new(bc->base, again_cb, d);
	*out = &d->d;
	return 0;
}

static void
bridge_expect(struct door *door, const struct backend_container *c)
{
	struct bridge_door *d = (struct bridge_door *)door;

	d->handle = c->handle;
	if (d->exec == NULL && !timer_is_set(d->again))
		door_connect(d);
}

static void
door_free_cb(void *arg)
{
	struct bridge_door *d = arg;

	timer_free(d->again);
	free(d);
}

static void
bridge_close(struct door *door)
{
	struct bridge_door *d = (struct bridge_door *)door;

	timer_stop(d->again);
	if (d->exec != NULL)
		d->in->backend->ops->exec_cancel(d->exec);
	d->exec = NULL;
	later(d->in->base, door_free_cb, d);
}

static const char *
bridge_trouble(const struct door *door)
{
	return ((const struct bridge_door *)door)->trouble;
}

/* Nothing of a box is on this host. */
static void
bridge_forget(struct carrier *c, const struct uuid *box)
{
	(void)c;
	(void)box;
}

static uint32_t
bridge_sweep(struct carrier *c, int64_t before_ms,
    bool (*keep)(const struct uuid *, void *), void *arg)
{
	(void)c;
	(void)before_ms;
	(void)keep;
	(void)arg;
	return 0;
}

static const struct carrier_ops bridge_ops = {.name = "bridge",
    .needs = BACKEND_CAN_EXEC,
    .heartbeat_ms = BRIDGE_HEARTBEAT_MS,
    .greet_ms = BRIDGE_GREET_MS,
    .prepare = bridge_prepare,
    .listen = bridge_listen,
    .expect = bridge_expect,
    .close = bridge_close,
    .trouble = bridge_trouble,
    .forget = bridge_forget,
    .sweep = bridge_sweep};

struct carrier *
bridge_carrier_new(struct event_base *base, struct backend *backend,
    const uint8_t key[BRIDGE_KEY_BYTES])
{
	struct bridge_carrier *c = xcalloc(1, sizeof(*c));

	c->c.ops = &bridge_ops;
	c->base = base;
	c->backend = backend;
	memcpy(c->key, key, BRIDGE_KEY_BYTES);
	return &c->c;
}
