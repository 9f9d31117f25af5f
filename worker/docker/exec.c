/*
 * A program in a box, and its standard streams as one socket.
 *
 *	EXEC_MAKING	POST /containers/ID/exec
 *	  |
 *	EXEC_STARTING	POST /exec/ID/start, with an upgrade of the connection
 *	  |
 *	EXEC_JOINED	the connection is ours, and a pump (pump.h) is between
 *			it and the asker's socket, until either ends
 *
 * Down, bytes go as they are.  Up, the engine cuts them in pieces with a head
 * of 8 bytes (Docker Engine API, "Attach to a container", stream format): kind,
 * three zeros, length.  Kind 1 is the program's output.  Kind 2, its errors, is
 * one line at most of an agent's, for the log; any other kind, and a head that
 * cannot be, end the stream: who asked has frames of its own and begins anew.
 */
#include "worker/docker/docker_int.h"

#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/complaint.h"
#include "worker/docker/body.h"
#include "worker/later.h"
#include "worker/pump.h"

#define HEAD_BYTES 8
/* Engines cut at 32 KiB. */
#define HEAD_LENGTH_MAX (16u << 20)

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
	struct complaint errors;
};

struct backend_exec {
	struct docker *d;
	enum exec_stage stage;
	struct api_call *call; /* the request; NULL: none */
	struct pump *pump;     /* of EXEC_JOINED */
	const struct backend_exec_user *user;
	void *arg;
	struct cutter cut;
	const char *wrong; /* with the engine's stream, static; NULL: nothing */
	TAILQ_ENTRY(backend_exec) link;
};

/* ---- the end */

static void
exec_free_cb(void *arg)
{
	free(arg);
}

static void
exec_end(struct backend_exec *x)
{
	x->stage = EXEC_OVER;
	TAILQ_REMOVE(&x->d->execs, x, link);
	if (x->call != NULL)
		api_cancel(x->call);
	pump_free(x->pump);
	later(x->d->base, exec_free_cb, x);
}

static void
exec_fail(struct backend_exec *x, int rc, const struct err *why)
{
	x->user->joined(rc, -1, why, x->arg);
	exec_end(x);
}

static void
ended_cb(enum pump_end how, void *arg)
{
	static const char *const words[] = {
	    [PUMP_ASKER_LEFT] = "the worker hung up",
	    [PUMP_PEER_ENDED] = "the engine ended the stream",
	    [PUMP_PEER_BROKE] = "the connection to the engine broke"};
	struct backend_exec *x = arg;

	complaint_log(&x->cut.errors);
	x->user->ended(how == PUMP_STOPPED ? x->wrong : words[how], x->arg);
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

/* NULL, or what is wrong with the n bytes of a piece's. */
static const char *
take_bytes(struct cutter *c, const uint8_t *p, size_t n, struct buf *out)
{
	if (c->kind == KIND_ERRORS)
		return complaint_add(&c->errors, p, n) != 0 ?
		    COMPLAINT_TOO_MUCH :
		    NULL;
	if (buf_append(out, p, n) != 0)
		fatal(EXIT_BUG, "exec: no room for %zu bytes", n);
	return NULL;
}

static int
up_cb(const uint8_t *p, size_t n, struct buf *out, struct buf *back, void *arg)
{
	struct backend_exec *x = arg;
	struct cutter *c = &x->cut;
	size_t at = 0, take;

	(void)back;
	while (at < n && x->wrong == NULL) {
		if (c->left == 0) {
			c->head[c->nhead++] = p[at++];
			if (c->nhead == HEAD_BYTES)
				x->wrong = take_head(c);
			continue;
		}
		take = n - at < c->left ? n - at : c->left;
		x->wrong = take_bytes(c, p + at, take, out);
		at += take;
		c->left -= (uint32_t)take;
	}
	return x->wrong != NULL ? -1 : 0;
}

/* ---- the way there */

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
	static const struct pump_user user = {.up = up_cb, .ended = ended_cb};
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
		rc = pump_open(
		    x->d->base, x->call, &user, x, &x->pump, &theirs, &e);
	if (rc != 0) {
		exec_fail(x, rc, &e);
		return;
	}
	x->call = NULL; /* the pump's */
	x->stage = EXEC_JOINED;
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
	x->user = user;
	x->arg = arg;
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
