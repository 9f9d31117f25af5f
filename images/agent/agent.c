#include "images/agent/agent.h"

#include <limits.h>

#include "common/clock.h"
#include "common/msg/frame_gen.h"

static void
agent_on_open(void *arg)
{
	struct agent *a = arg;
	struct buf *b;
	size_t at;

	b = uplink_begin(&a->uplink, FRAME_HELLO, &at);
	wire_put_u32(b, FRAME_VERSION);
	wire_put_uuid(b, &a->boot);
	wire_put_u32(b, seqs_kept(&a->seqs));
	uplink_end(&a->uplink, at);
	seqs_hello(&a->seqs);
	(void)uplink_begin(&a->uplink, FRAME_HELLO_END, &at);
	uplink_end(&a->uplink, at);
}

static void
agent_on_close(void *arg)
{
	struct agent *a = arg;

	seqs_on_close(&a->seqs);
	files_on_close(&a->files);
}

static int
on_run_start(struct agent *a, struct wire_in *in, struct err *e)
{
	return seqs_on_start(&a->seqs, in, e);
}

static int
on_run_ack(struct agent *a, struct wire_in *in, struct err *e)
{
	return seqs_on_ack(&a->seqs, in, e);
}

static int
on_run_cancel(struct agent *a, struct wire_in *in, struct err *e)
{
	return seqs_on_cancel(&a->seqs, in, e);
}

static int
on_run_forget(struct agent *a, struct wire_in *in, struct err *e)
{
	return seqs_on_forget(&a->seqs, in, e);
}

static int
on_walk(struct agent *a, struct wire_in *in, struct err *e)
{
	return files_on_walk(&a->files, in, e);
}

static int
on_walk_taken(struct agent *a, struct wire_in *in, struct err *e)
{
	return files_on_walk_taken(&a->files, in, e);
}

static int
on_read(struct agent *a, struct wire_in *in, struct err *e)
{
	return files_on_read(&a->files, in, e);
}

static int
on_read_ack(struct agent *a, struct wire_in *in, struct err *e)
{
	return files_on_read_ack(&a->files, in, e);
}

static int
on_abort(struct agent *a, struct wire_in *in, struct err *e)
{
	return files_on_abort(&a->files, in, e);
}

static int
on_ping(struct agent *a, struct wire_in *in, struct err *e)
{
	uint64_t token = wire_get_u64(in);
	struct buf *b;
	size_t at;

	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	b = uplink_begin(&a->uplink, FRAME_PONG, &at);
	wire_put_u64(b, token);
	uplink_end(&a->uplink, at);
	uplink_urgent(&a->uplink);
	return 0;
}

static const struct agent_route {
	enum frame_type type;
	int (*on)(struct agent *a, struct wire_in *in, struct err *e);
} agent_routes[] = {
    {FRAME_RUN_ACK, on_run_ack},
    {FRAME_RUN_START, on_run_start},
    {FRAME_RUN_CANCEL, on_run_cancel},
    {FRAME_RUN_FORGET, on_run_forget},
    {FRAME_WALK, on_walk},
    {FRAME_WALK_TAKEN, on_walk_taken},
    {FRAME_READ, on_read},
    {FRAME_READ_ACK, on_read_ack},
    {FRAME_ABORT, on_abort},
    {FRAME_PING, on_ping},
};

static int
agent_on_frame(struct frame *f, void *arg, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(agent_routes); i++) {
		if (agent_routes[i].type != f->type)
			continue;
		if (agent_routes[i].on(arg, &f->in, e) == 0)
			return 0;
		return err_wrap(e, "%s", frame_type_name(f->type));
	}
	return err_set(
	    e, ERR_PROTO, "%s is not for the agent", frame_type_name(f->type));
}

static const struct uplink_ops agent_uplink_ops = {
    agent_on_open, agent_on_frame, agent_on_close};

int
agent_init(struct agent *a, const char *address, struct err *e)
{
	uuid_random(&a->boot);
	if (loop_init(&a->loop, e) != 0)
		return e->code;
	uplink_init(&a->uplink, &a->loop, address, &agent_uplink_ops, a);
	if (procs_init(&a->procs, &a->loop, e) != 0)
		return e->code;
	seqs_init(&a->seqs, &a->uplink, &a->procs);
	files_init(&a->files, &a->uplink);
	if (reap_init(&a->reaper, &a->loop, &a->procs, e) != 0)
		return e->code;
	/* Small, and without anything of a sequence in its memory. */
	keepers_prepare(&a->procs.keepers);
	return 0;
}

/* How long there is nothing to do, -1: until something happens. */
static int
agent_timeout(const struct agent *a, bool more_files)
{
	uint64_t next = procs_next_ms(&a->procs), now;
	int link = uplink_next_ms(&a->uplink);
	int ms = -1;

	if (seqs_is_busy(&a->seqs) ||
	    (more_files && uplink_has_room(&a->uplink)))
		return 0;
	if (reap_next_ms(&a->reaper) < next)
		next = reap_next_ms(&a->reaper);
	if (next != UINT64_MAX) {
		now = clock_mono_ms();
		next = next > now ? next - now : 0;
		ms = next < INT_MAX ? (int)next : INT_MAX;
	}
	if (link >= 0 && (ms == -1 || link < ms))
		ms = link;
	return ms;
}

void
agent_run(struct agent *a)
{
	bool more_files = false;

	while (!a->reaper.quit) {
		uint64_t now;

		loop_turn(&a->loop, agent_timeout(a, more_files));
		now = clock_mono_ms();
		reap_tick(&a->reaper, now);
		procs_tick(&a->procs, now);
		seqs_tick(&a->seqs);
		uplink_tick(&a->uplink, now);
		more_files = files_work(&a->files);
		uplink_flush(&a->uplink);
	}
	reap_shutdown(&a->reaper);
}
