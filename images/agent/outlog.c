#include "images/agent/outlog.h"

#include "common/clock.h"
#include "common/utf8.h"

#define RECORD_BYTES_MAX 1024

void
outlog_init(struct outlog *o, const struct uuid *run)
{
	memset(o, 0, sizeof(*o));
	o->run = *run;
	flow_init(&o->flow, 0, FRAME_WINDOW_BYTES + OUTLOG_RESERVE_BYTES);
}

void
outlog_clear(struct outlog *o)
{
	flow_clear(&o->flow);
}

/* The one scratch buffer in which records are put together. */
static struct buf *
record_begin(enum runlog_type type, uint32_t command, size_t length)
{
	static struct buf b = {NULL, 0, 0, 0, RECORD_BYTES_MAX};
	const struct runlog_header h = {
	    type, (uint16_t)command, (uint32_t)length, clock_wall_us()};

	buf_consume(&b, buf_len(&b));
	runlog_put_header(&b, &h);
	return &b;
}

static void
record_append(struct outlog *o, const struct buf *b)
{
	ring_append(&o->flow.ring, buf_data(b), buf_len(b));
}

void
outlog_put_plain(struct outlog *o, enum runlog_type type, uint32_t command)
{
	record_append(o, record_begin(type, command, 0));
}

void
outlog_put_end(struct outlog *o, uint32_t command, const struct runlog_end *end)
{
	struct buf *b =
	    record_begin(RUNLOG_COMMAND_ENDED, command, runlog_end_size(end));

	runlog_put_end(b, end);
	record_append(o, b);
}

void
outlog_put_left(
    struct outlog *o, uint32_t command, const struct runlog_left *left)
{
	struct buf payload, *b;

	buf_init(&payload, RUNLOG_RECORD_MAX);
	runlog_put_left(&payload, left);
	b = record_begin(RUNLOG_LEFT, command, buf_len(&payload));
	(void)!buf_append(b, buf_data(&payload), buf_len(&payload));
	record_append(o, b);
	buf_clear(&payload);
}

void
outlog_put_run_end(struct outlog *o, const struct runlog_run_end *end)
{
	struct buf *b = record_begin(RUNLOG_RUN_ENDED, 0, RUNLOG_RUN_END_BYTES);

	runlog_put_run_end(b, end);
	record_append(o, b);
}

/* ---- output */

void
outlog_stream_begin(
    struct outlog_stream *s, enum runlog_type type, uint32_t command)
{
	memset(s, 0, sizeof(*s));
	s->type = type;
	s->command = command;
}

size_t
outlog_room(const struct outlog *o, const struct outlog_stream *s)
{
	size_t used = ring_used(&o->flow.ring) + RUNLOG_HEADER_BYTES + s->nheld;

	return used < FRAME_WINDOW_BYTES ? FRAME_WINDOW_BYTES - used : 0;
}

int
outlog_space(struct outlog *o, const struct outlog_stream *s, size_t n,
    struct iovec iov[2])
{
	if (n > RUNLOG_PAYLOAD_MAX - s->nheld)
		n = RUNLOG_PAYLOAD_MAX - s->nheld;
	return ring_view(&o->flow.ring,
	    o->flow.ring.end + RUNLOG_HEADER_BYTES + s->nheld, n, iov);
}

/* One record; its payload of n bytes stands behind the log's end already. */
static void
put_output(struct outlog *o, struct outlog_stream *s, size_t n)
{
	const struct buf *b = record_begin(s->type, s->command, n);

	ring_put(&o->flow.ring, o->flow.ring.end, buf_data(b), buf_len(b));
	ring_commit(&o->flow.ring, buf_len(b) + n);
	s->bytes += n;
}

void
outlog_take(struct outlog *o, struct outlog_stream *s, size_t n)
{
	uint64_t at = o->flow.ring.end + RUNLOG_HEADER_BYTES;
	size_t ntail, whole;

	if (s->nheld > 0)
		ring_put(&o->flow.ring, at, s->held, s->nheld);
	n += s->nheld;
	ntail = n < sizeof(s->held) ? n : sizeof(s->held);
	ring_get(&o->flow.ring, at + n - ntail, s->held, ntail);
	whole = utf8_complete_len(s->held, ntail);
	s->nheld = ntail - whole;
	memmove(s->held, s->held + whole, s->nheld);
	if (n > s->nheld)
		put_output(o, s, n - s->nheld);
}

void
outlog_flush(struct outlog *o, struct outlog_stream *s)
{
	size_t n = s->nheld;

	if (n == 0)
		return;
	ring_put(
	    &o->flow.ring, o->flow.ring.end + RUNLOG_HEADER_BYTES, s->held, n);
	s->nheld = 0;
	put_output(o, s, n);
}
