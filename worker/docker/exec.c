/*
 * A program in a box, and its standard streams as one socket.
 *
 *	EXEC_MAKING	POST /containers/ID/exec
 *	  |
 *	EXEC_STARTING	POST /exec/ID/start, with an upgrade of the connection
 *	  |
 *	EXEC_JOINED	the connection is ours.  One end of a pair of sockets is
 *			the asker's, between the other and the engine bytes go
 *			both ways, until either ends
 *
 * Down, bytes go as they are.  Up, the engine cuts them in pieces with a head
 * of 8 bytes (Docker Engine API, "Attach to a container", stream format): kind,
 * three zeros, length.  Kind 1 is the program's output.  Kind 2, its errors, is
 * one line at most of an agent's, for the log; any other kind, and a head that
 * cannot be, end the stream: who asked has frames of its own and begins anew.
 *
 * Memory is one buffer of all streams, empty between two turns, and of each
 * what the other side did not take of it.
 */
#include "worker/docker/docker_int.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/text.h"
#include "common/xmalloc.h"
#include "worker/docker/body.h"
#include "worker/later.h"

#define PIECE_BYTES 65536
#define TURN_BYTES (4 * PIECE_BYTES) /* before others have their turn */
#define HEAD_BYTES 8
/* Engines cut at 32 KiB. */
#define HEAD_LENGTH_MAX (16u << 20)
#define ERRORS_MAX 1024 /* bytes on stderr of one program */
#define SOCKET_BYTES (256 * 1024)

enum stream_kind {
	KIND_OUT = 1,
	KIND_ERRORS = 2
};

enum exec_stage {
	EXEC_MAKING,
	EXEC_STARTING,
	EXEC_JOINED,
	EXEC_OVER
};

/* Where in the engine's pieces the next byte is. */
struct cutter {
	uint8_t head[HEAD_BYTES];
	size_t nhead;
	uint32_t left; /* of the piece's bytes */
	enum stream_kind kind;
	size_t nerrors;
	char errors[128]; /* the first of them */
};

struct backend_exec {
	struct docker *d;
	enum exec_stage stage;
	struct api_call *call; /* the request; then the connection */
	const struct backend_exec_user *user;
	void *arg;
	int fd; /* our end; the asker has the other */
	struct event *engine_in, *engine_out, *in, *out;
	struct buf up, down; /* what was not taken, at most PIECE_BYTES */
	struct cutter cut;
	TAILQ_ENTRY(backend_exec) link;
};

static uint8_t piece[PIECE_BYTES];

/* ---- the end */

static void
exec_free_cb(void *arg)
{
	free(arg);
}

static void
exec_end(struct backend_exec *x)
{
	struct event_base *base = x->d->base;

	x->stage = EXEC_OVER;
	TAILQ_REMOVE(&x->d->execs, x, link);
	later_event_free(base, x->engine_in);
	later_event_free(base, x->engine_out);
	later_event_free(base, x->in);
	later_event_free(base, x->out);
	if (x->call != NULL)
		api_cancel(x->call);
	if (x->fd != -1)
		(void)close(x->fd);
	buf_clear(&x->up);
	buf_clear(&x->down);
	later(base, exec_free_cb, x);
}

static void
exec_fail(struct backend_exec *x, int rc, const struct err *why)
{
	x->user->joined(rc, -1, why, x->arg);
	exec_end(x);
}

/* Joined, and now it is over for this reason. */
static void
exec_part(struct backend_exec *x, const char *why)
{
	static struct log_limit limit;
	char text[sizeof(x->cut.errors)];

	if (x->cut.nerrors > 0) {
		text_clean(text, sizeof(text), x->cut.errors,
		    x->cut.nerrors < sizeof(x->cut.errors) ?
			x->cut.nerrors :
			sizeof(x->cut.errors));
		log_warn_limited(
		    &limit, "exec: the program in the sandbox says: %s", text);
	}
	x->user->ended(why, x->arg);
	exec_end(x);
}

/* ---- up: the engine's pieces */

/* NULL, or what is wrong with the head that is whole now. */
static const char *
take_head(struct cutter *c)
{
	const uint8_t *h = c->head;

	c->left = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 |
	    (uint32_t)h[6] << 8 | h[7];
	c->nhead = 0;
	if (h[1] != 0 || h[2] != 0 || h[3] != 0)
		return "the engine's stream is not of its format";
	if (h[0] != KIND_OUT && h[0] != KIND_ERRORS)
		return "the engine's stream has a piece of no known kind";
	if (c->left > HEAD_LENGTH_MAX)
		return "the engine's stream has a piece that is too long";
	c->kind = (enum stream_kind)h[0];
	return NULL;
}

static void
keep_errors(struct cutter *c, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (c->nerrors + i < sizeof(c->errors))
			c->errors[c->nerrors + i] = (char)p[i];
	c->nerrors += n;
}

/* The n bytes at p become the output in them, at p; *out: how many.  NULL, or
 * what is wrong with them. */
static const char *
cut_pieces(struct cutter *c, uint8_t *p, size_t n, size_t *out)
{
	size_t at = 0, kept = 0, take;
	const char *wrong;

	while (at < n) {
		if (c->left == 0) {
			c->head[c->nhead++] = p[at++];
			if (c->nhead < HEAD_BYTES)
				continue;
			wrong = take_head(c);
			if (wrong != NULL)
				return wrong;
			continue;
		}
		take = n - at < c->left ? n - at : c->left;
		if (c->kind == KIND_OUT) {
			memmove(p + kept, p + at, take);
			kept += take;
		} else {
			keep_errors(c, p + at, take);
		}
		at += take;
		c->left -= (uint32_t)take;
	}
	*out = kept;
	return c->nerrors > ERRORS_MAX ?
	    "the program in the sandbox writes too much to its stderr" :
	    NULL;
}

/* ---- both ways: what is written, and what is left over */

static void
keep(struct buf *b, const uint8_t *p, size_t n)
{
	if (n > 0 && buf_append(b, p, n) != 0)
		fatal(EXIT_BUG, "exec: %zu bytes are left over", n);
}

typedef ssize_t (*write_fn)(struct backend_exec *x, const void *p, size_t n);

static ssize_t
write_up(struct backend_exec *x, const void *p, size_t n)
{
	return send(x->fd, p, n, MSG_NOSIGNAL);
}

static ssize_t
write_down(struct backend_exec *x, const void *p, size_t n)
{
	return api_send(x->call, p, n);
}

/* How many were taken; -1: that side is gone. */
static ssize_t
write_some(struct backend_exec *x, write_fn put, const uint8_t *p, size_t n)
{
	size_t done = 0;
	ssize_t got;

	while (done < n) {
		got = put(x, p + done, n - done);
		if (got == -1 && errno == EINTR)
			continue;
		if (got == -1 && errno == EAGAIN)
			break;
		if (got == -1)
			return -1;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

/* 1: nothing is left over; 0: something is; -1: that side is gone. */
static int
write_rest(struct backend_exec *x, write_fn put, struct buf *b)
{
	ssize_t n;

	if (buf_len(b) == 0)
		return 1;
	n = write_some(x, put, buf_data(b), buf_len(b));
	if (n < 0)
		return -1;
	buf_consume(b, (size_t)n);
	if (buf_len(b) > 0)
		return 0;
	buf_shrink(b);
	return 1;
}

/* From read to written, for one turn: how it ended. */
enum passed {
	PASSED_ALL,  /* nothing more is there */
	PASSED_FULL, /* the other side takes no more */
	PASSED_MORE, /* a turn's worth, and there may be more */
	PASSED_OVER  /* why says it */
};

static enum passed
pass_up(struct backend_exec *x, const char **why)
{
	size_t total = 0, n;
	ssize_t got;
	int rc;

	*why = "the worker hung up";
	while (total < TURN_BYTES) {
		rc = write_rest(x, write_up, &x->up);
		if (rc <= 0)
			return rc < 0 ? PASSED_OVER : PASSED_FULL;
		got = api_recv(x->call, piece, sizeof(piece));
		if (got == -1 && errno == EAGAIN)
			return PASSED_ALL;
		if (got <= 0) {
			*why = got == 0 ? "the engine ended the stream" :
					  "the connection to the engine broke";
			return PASSED_OVER;
		}
		total += (size_t)got;
		n = 0;
		*why = cut_pieces(&x->cut, piece, (size_t)got, &n);
		if (*why != NULL)
			return PASSED_OVER;
		*why = "the worker hung up";
		got = write_some(x, write_up, piece, n);
		if (got < 0)
			return PASSED_OVER;
		keep(&x->up, piece + got, n - (size_t)got);
	}
	return PASSED_MORE;
}

static enum passed
pass_down(struct backend_exec *x, const char **why)
{
	size_t total = 0;
	ssize_t n, got;
	int rc;

	while (total < TURN_BYTES) {
		*why = "the connection to the engine broke";
		rc = write_rest(x, write_down, &x->down);
		if (rc <= 0)
			return rc < 0 ? PASSED_OVER : PASSED_FULL;
		n = recv(x->fd, piece, sizeof(piece), 0);
		if (n == -1 && (errno == EAGAIN || errno == EINTR))
			return PASSED_ALL;
		if (n <= 0) {
			*why = "the worker hung up";
			return PASSED_OVER;
		}
		total += (size_t)n;
		got = write_some(x, write_down, piece, (size_t)n);
		if (got < 0)
			return PASSED_OVER;
		keep(&x->down, piece + got, (size_t)(n - got));
	}
	return PASSED_MORE;
}

/* read is of where bytes come from, write of where they go. */
static void
go_on(struct backend_exec *x, enum passed how, const char *why,
    struct event *read, struct event *write)
{
	if (how == PASSED_OVER) {
		exec_part(x, why);
		return;
	}
	if (how == PASSED_FULL) {
		(void)event_del(read);
		(void)event_add(write, NULL);
		return;
	}
	(void)event_add(read, NULL);
	/* Bytes that TLS has read already make no descriptor readable. */
	if (how == PASSED_MORE)
		event_active(read, EV_READ, 0);
}

static void
up_cb(evutil_socket_t fd, short what, void *arg)
{
	struct backend_exec *x = arg;
	const char *why = "";
	enum passed how = pass_up(x, &why);

	(void)fd;
	(void)what;
	go_on(x, how, why, x->engine_in, x->out);
}

static void
down_cb(evutil_socket_t fd, short what, void *arg)
{
	struct backend_exec *x = arg;
	const char *why = "";
	enum passed how = pass_down(x, &why);

	(void)fd;
	(void)what;
	go_on(x, how, why, x->in, x->engine_out);
}

/* ---- the way there */

static struct event *
watch(struct backend_exec *x, int fd, short what, event_callback_fn cb)
{
	struct event *ev = event_new(x->d->base, fd, what, cb, x);

	if (ev == NULL)
		fatal(EXIT_MEMORY, "no memory for an event");
	return ev;
}

static int
join(struct backend_exec *x, int *theirs, struct err *e)
{
	int fds[2], size = SOCKET_BYTES;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
		fds) == -1)
		return err_set(
		    e, ERR_BACKEND, "socketpair: %s", strerror(errno));
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		(void)setsockopt(
		    fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	x->fd = fds[0];
	*theirs = fds[1];
	x->engine_in = watch(x, api_fd(x->call), EV_READ | EV_PERSIST, up_cb);
	x->engine_out = watch(x, api_fd(x->call), EV_WRITE, down_cb);
	x->in = watch(x, x->fd, EV_READ | EV_PERSIST, down_cb);
	x->out = watch(x, x->fd, EV_WRITE, up_cb);
	return 0;
}

static int
refusal(const struct api_answer *a, const char *what, struct err *e)
{
	int rc = docker_fail(a, what, e);

	/* 409: it is paused or does not run. */
	return a->rc == 0 && a->status == 409 ? ERR_NOTFOUND : rc;
}

static void
started_cb(const struct api_answer *a, void *arg)
{
	struct backend_exec *x = arg;
	int rc = 0, theirs = -1;
	struct err e;

	x->call = a->stream;
	if (x->call == NULL)
		rc = a->rc == 0 && a->status == 200 ?
		    err_set(&e, ERR_BACKEND,
			"exec: the engine, or a proxy before it, does not hand "
			"the connection over (Upgrade: tcp)") :
		    refusal(a, "exec", &e);
	else
		rc = join(x, &theirs, &e);
	if (rc != 0) {
		exec_fail(x, rc, &e);
		return;
	}
	x->stage = EXEC_JOINED;
	(void)event_add(x->in, NULL);
	(void)event_add(x->engine_in, NULL);
	event_active(x->engine_in, EV_READ, 0); /* some may have come */
	x->user->joined(0, theirs, NULL, x->arg);
}

static void
made_cb(const struct api_answer *a, void *arg)
{
	AUTO(auto_free) char *body = body_exec_start();
	struct backend_exec *x = arg;
	struct backend_handle made = {.id = ""};
	char warning[ANSWER_TEXT_MAX];
	struct err e;
	int rc;

	x->call = NULL;
	rc = a->rc == 0 && a->status == 201 ?
	    answer_created(a->body, a->len, &made, warning, &e) :
	    refusal(a, "exec", &e);
	if (rc != 0) {
		exec_fail(x, rc, &e);
		return;
	}
	x->stage = EXEC_STARTING;
	x->call = docker_ask(x->d,
	    &(struct api_ask){.method = "POST",
		.body = body,
		.body_len = strlen(body),
		.upgrade = "tcp",
		.timeout_ms = DOCKER_EXEC_MS,
		.on_done = started_cb,
		.arg = x},
	    "/exec/%s/start", made.id);
}

/* ---- public */

struct backend_exec *
exec_new(struct backend *b, const struct backend_handle *h,
    const char *const *command, const struct backend_exec_user *user, void *arg)
{
	AUTO(auto_free) char *body = body_exec(command);
	struct backend_exec *x = xcalloc(1, sizeof(*x));
	struct docker *d = (struct docker *)b;

	x->d = d;
	x->fd = -1;
	x->user = user;
	x->arg = arg;
	buf_init(&x->up, PIECE_BYTES);
	buf_init(&x->down, PIECE_BYTES);
	TAILQ_INSERT_TAIL(&d->execs, x, link);
	x->call = docker_ask(d,
	    &(struct api_ask){.method = "POST",
		.body = body,
		.body_len = strlen(body),
		.timeout_ms = DOCKER_EXEC_MS,
		.on_done = made_cb,
		.arg = x},
	    "/containers/%s/exec", backend_handle_text(h));
	return x;
}

void
exec_cancel(struct backend_exec *x)
{
	exec_end(x);
}

/* Those that wait for an answer were told by api_free, or will be. */
void
exec_clear(struct docker *d)
{
	struct backend_exec *x, *next;

	for (x = TAILQ_FIRST(&d->execs); x != NULL; x = next) {
		next = TAILQ_NEXT(x, link);
		if (x->stage == EXEC_JOINED)
			exec_end(x);
	}
}
