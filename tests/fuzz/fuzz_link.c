/* fuzz_link.c - what an agent may send: frames, runs' logs, files,
 * answers.
 * libs: worker common */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "common/agent_ask.h"
#include "common/msg/msg_gen.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "tests/fuzz/fuzz.h"
#include "worker/tasks.h"
#include "worker/copy.h"
#include "worker/copy_clock.h"
#include "worker/link/peer.h"
#include "worker/said.h"
#include "worker/task.h"

#define RUNS 3
#define ASKS 2

static struct event_base *base;
static int silent_agent;          /* a stream on which nothing comes */
static struct ipc_chan *no_front; /* messages to the front are dropped */
static struct task *runs[RUNS];
static struct copy *copy;
static struct box_asks_host asks_host = {.front = &no_front};
static struct box_asks *asks;

static void
on_disk(bool full, const char *text, void *arg)
{
	(void)full;
	(void)text;
	(void)arg;
}

static void
on_over(void *arg)
{
	(void)arg;
}

static void
on_complete(struct task *r, void *arg)
{
	(void)arg;
	task_finish(r, "");
}

static void
on_overdue(struct task *r, void *arg)
{
	(void)r;
	(void)arg;
}

static const struct task_ops task_ops = {on_complete, on_overdue};

static void
on_copied(struct copy *a, void *arg)
{
	(void)a;
	(void)arg;
}

static int
on_hello(const struct peer_hello *h, void *arg, struct err *e)
{
	struct peer *p = *(struct peer **)arg;

	(void)e;
	for (size_t i = 0; i < RUNS; i++)
		task_attach(runs[i], p, i < h->nruns ? &h->runs[i] : NULL);
	copy_attach(copy, p);
	box_asks_attach(asks, p, h->version);
	for (uint64_t i = 0; i < ASKS; i++)
		if (box_asks_start(asks, &(struct msg_ask){.ask = i}, e) != 0)
			abort();
	return 0;
}

static void
on_turn(void *arg)
{
	(void)arg;
	for (size_t i = 0; i < RUNS; i++) {
		const struct task *t = runs[i];

		if (t->state != TASK_OVER && t->length > t->check.scan.offset)
			abort(); /* written and not checked */
		task_flush(runs[i]);
	}
	/* The front gives a file for whatever is asked for. */
	for (uint32_t i = 0; i < 4; i++)
		copy_on_fd(copy, i, memfd_create("f", MFD_CLOEXEC), "");
}

static void
on_down(const struct err *why, void *arg)
{
	(void)why;
	(void)arg;
	for (size_t i = 0; i < RUNS; i++)
		task_detach(runs[i]);
	copy_detach(copy);
	box_asks_detach(asks);
	REQUIRE(asks_host.open == 0);
}

static void
on_said(const struct frame_said *m, void *arg)
{
	static struct said said;

	(void)arg;
	if (said.sandbox[0] == '\0')
		said_init(&said, 1, "box");
	said_take(&said, m, m->run.b[0] == 0 ? NULL : &runs[0]->s);
}

static const struct peer_ops peer_ops = {
    on_hello, on_turn, on_turn, on_down, on_said};

static const struct copy_limits limits = {
    .total_bytes = 1 << 16, .file_bytes = 1 << 14, .files = 3};
static const struct task_host task_host = {
    .front = &no_front, .on_disk = on_disk, .on_over = on_over};

static void
make_parts(const struct copy_host *copy_host)
{
	struct task_host *host = xmemdup(&task_host, sizeof(task_host));
	struct err e;

	host->base = base;
	for (size_t i = 0; i < RUNS; i++) {
		struct task_start s = {.id = i + 1,
		    .uuid = {{(uint8_t)i}},
		    .spool_limit = 1 << 16,
		    .spool = memfd_create("spool", MFD_CLOEXEC),
		    .spec = xmemdup("s", 1),
		    .nspec = 1,
		    .ncommands = 2};

		(void)fcntl(s.spool, F_SETFL, O_APPEND);
		REQUIRE(task_new(host, &s, &task_ops, NULL, &runs[i], &e) == 0);
	}
	copy = copy_new(copy_host, 1);
	asks = box_asks_new(&asks_host, 1);
	runs[0]->arg = host; /* freed with the parts */
}

static void
free_parts(void)
{
	void *host = runs[0]->arg;

	for (size_t i = 0; i < RUNS; i++)
		task_free(runs[i]);
	copy_free(copy);
	box_asks_free(asks);
	free(host);
}

static void
say(struct link *l, const uint8_t *data, size_t size)
{
	struct frame f;
	struct buf b;
	struct err e;
	int rc;

	buf_init(&b, 0);
	REQUIRE(buf_append(&b, data, size) == 0);
	link_begin(l, dup(silent_agent));
	while ((rc = frame_next(&b, FRAME_UP_MAX, &f, &e)) == 1) {
		rc = l->user->on_frame(&f, l->arg, &e);
		if (rc != 0)
			break;
		buf_consume(&b, f.size);
		if (f.size % 3 == 0) /* some turns are long */
			l->user->on_turn(l->arg);
		if (buf_len(&l->out) > LINK_OUT_MAX)
			abort();
	}
	REQUIRE(rc <= 0);
	(void)err_set(&e, rc < 0 ? ERR_PROTO : ERR_LOST, "closed");
	l->user->on_close(&e, l->arg);
	buf_clear(&b);
}

static void
set_up(void)
{
	int fds[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != -1);
	silent_agent = fds[0];
	base = event_base_new();
	log_set_level(LOG_ERROR);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct copy_clock clock;
	struct copy_host host = {.front = &no_front,
	    .limits = &limits,
	    .clock = &clock,
	    .time_ms = 60000,
	    .on_end = on_copied};
	struct peer *peer = NULL;
	struct link *l;

	if (base == NULL)
		set_up();
	host.base = base;
	copy_clock_init(&clock, 60000);
	l = link_new(base, 0);
	l->in_turn = true; /* all is one turn: frames stay in link_out */
	peer = peer_new(l, &peer_ops, &peer);
	make_parts(&host);
	say(l, data, size);
	free_parts();
	peer_free(peer);
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
	return 0;
}
