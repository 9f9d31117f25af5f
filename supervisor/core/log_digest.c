/*
 * log_digest.c - what a run's log says, in bounded memory
 *
 * An advance has two parts.  First the heads that are not in memory are read
 * from where they stand in the log (they were dropped, or the digest was
 * decoded); then the walk goes on at scanned.  Either stops between two
 * records when a slice was read, so a digest is always at a record's
 * beginning when nobody works on it.
 *
 * Of an output record only what goes into the head is read; the walk skips the
 * rest, when it is long enough to be the whole tail.  Where that stands is
 * kept, and it is read when a shorter record follows, or at the end.
 */
#include "supervisor/core/log_digest.h"

#include "common/fd.h"
#include "common/msg/wire.h"
#include "common/xmalloc.h"

#define DIGEST_VERSION 3
/* Part of caps.heads that is made free when they are full, so that it is done
 * rarely. */
#define HEADS_SLACK 64

enum digest_turn {
	TURN_DONE,
	TURN_MORE, /* a slice is full */
	TURN_GO
};

static void
stream_init(struct log_stream *s, const struct log_caps *caps, unsigned int i)
{
	memset(s, 0, sizeof(*s));
	buf_init(&s->head, (size_t)caps->head[i] + 1); /* 0 is no limit */
	/* Twice, so that it moves its bytes rarely (buf.c). */
	buf_init(&s->tail, 2 * (size_t)caps->tail + 1);
}

/* As if nothing had been looked at. */
static void
digest_reset(struct log_digest *d)
{
	const struct log_caps caps = d->caps;
	const uint32_t ncommands = d->ncommands;
	struct log_command *commands = d->commands;

	for (uint32_t i = 0; i < ncommands; i++) {
		struct log_command *c = &commands[i];

		for (unsigned int k = 0; k < 2; k++) {
			buf_clear(&c->out[k].head);
			buf_clear(&c->out[k].tail);
		}
		buf_clear(&c->left);
		memset(c, 0, sizeof(*c));
		buf_init(&c->left, RUNLOG_RECORD_MAX);
		stream_init(&c->out[0], &caps, 0);
		stream_init(&c->out[1], &caps, 1);
	}
	buf_clear(&d->merged);
	*d = (struct log_digest){.ncommands = ncommands,
	    .commands = commands,
	    .caps = caps,
	    .level = UINT32_MAX};
	buf_init(&d->merged, (size_t)caps.merged + 1);
	runlog_check_init(&d->check, ncommands);
}

struct log_digest *
log_digest_new(uint32_t ncommands, const struct log_caps *caps)
{
	struct log_digest *d = xcalloc(1, sizeof(*d));

	d->ncommands = ncommands;
	d->caps = *caps;
	if (d->caps.tail > LOG_TAIL_BYTES)
		d->caps.tail = LOG_TAIL_BYTES;
	d->commands = xcalloc(ncommands, sizeof(*d->commands));
	digest_reset(d);
	return d;
}

void
log_digest_free(struct log_digest *d)
{
	if (d == NULL)
		return;
	digest_reset(d);
	free(d->commands);
	free(d);
}

/* ---- taking records */

struct digest_walk {
	struct log_digest *d;
	struct runlog_walk walk;
	struct log_stream *stream; /* of the output at hand: */
	size_t head;               /* bytes still to go into its head */
	size_t pass;               /* then into neither, the rest is tail */
};

/* n is at most the limit: the buffers were made for it. */
static void
digest_append(struct buf *b, const uint8_t *p, size_t n)
{
	(void)!buf_append(b, p, n);
}

static void
tail_append(struct buf *tail, const uint8_t *p, size_t n, size_t max)
{
	if (n > max) {
		p += n - max;
		n = max;
	}
	if (buf_len(tail) + n > max)
		buf_consume(tail, buf_len(tail) + n - max);
	digest_append(tail, p, n);
}

static void
merged_append(struct log_digest *d, const uint8_t *p, size_t n)
{
	size_t room = d->caps.merged - buf_len(&d->merged);

	digest_append(&d->merged, p, n < room ? n : room);
}

/* ---- one bound for all heads */

static struct log_stream *
stream_at(const struct log_digest *d, size_t i)
{
	return &d->commands[i / 2].out[i % 2];
}

/* Bytes of all heads if none were longer than level, and of more n more. */
static uint64_t
heads_at_level(const struct log_digest *d, const struct log_stream *more,
    size_t n, uint32_t level)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < 2 * (size_t)d->ncommands; i++) {
		const struct log_stream *s = stream_at(d, i);
		size_t len = s->head_len + (s == more ? n : 0);

		sum += len < level ? len : level;
	}
	return sum;
}

/* The highest level at which they fit, with some room for what follows. */
static uint32_t
find_level(const struct log_digest *d, const struct log_stream *more, size_t n)
{
	const uint64_t max = d->caps.heads - d->caps.heads / HEADS_SLACK;
	uint32_t low = 0, high = d->level;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2 + 1;

		if (heads_at_level(d, more, n, mid) <= max)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

/* What is cut off is behind the head now: the tail takes its part of it.  As
 * long as the tail is not full it begins where the head ends. */
static void
cut_head(struct log_digest *d, struct log_stream *s, uint32_t level)
{
	const uint8_t *head = buf_data(&s->head);
	uint64_t rest = s->bytes - level;
	size_t want = rest < d->caps.tail ? (size_t)rest : d->caps.tail;
	size_t have = s->tail_at != 0 ? d->caps.tail : buf_len(&s->tail);
	size_t more = want - have;
	struct buf kept, tail;

	buf_init(&kept, s->head.max);
	buf_init(&tail, s->tail.max);
	digest_append(&kept, head, level);
	digest_append(&tail, head + s->head_len - more, more);
	digest_append(&tail, buf_data(&s->tail), buf_len(&s->tail));
	buf_clear(&s->head);
	buf_clear(&s->tail);
	s->head = kept;
	s->tail = tail;
	d->heads -= s->head_len - level;
	s->head_len = level;
}

static size_t
head_room(const struct log_digest *d, const struct log_stream *s, uint32_t cap)
{
	if (cap > d->level)
		cap = d->level;
	return cap > s->head_len ? cap - s->head_len : 0;
}

/* How many of n bytes go into the head of s; others make room for it. */
static size_t
head_part(
    struct log_digest *d, const struct log_stream *s, size_t n, uint32_t cap)
{
	size_t room = head_room(d, s, cap);

	n = n < room ? n : room;
	if (d->caps.heads == 0 || d->heads + n <= d->caps.heads)
		return n;
	d->level = find_level(d, s, n);
	for (size_t i = 0; i < 2 * (size_t)d->ncommands; i++)
		if (stream_at(d, i)->head_len > d->level)
			cut_head(d, stream_at(d, i), d->level);
	room = head_room(d, s, cap);
	return n < room ? n : room;
}

/* ---- output */

/* It begins in the log at place, all of it. */
static void
tail_is_at(struct log_digest *d, struct log_stream *s, uint64_t place)
{
	if (s->tail_at == 0)
		d->nlate++;
	s->tail_at = place;
	buf_consume(&s->tail, buf_len(&s->tail));
}

static int
read_tail(struct log_digest *d, struct log_stream *s,
    const struct runlog_source *log, struct err *e)
{
	uint8_t bytes[LOG_TAIL_BYTES];
	const uint8_t *p = bytes;
	const size_t n = d->caps.tail;
	ssize_t got = (ssize_t)n;

	if (s->tail_at == 0)
		return 0;
	if (log->mem != NULL)
		p = log->mem + s->tail_at;
	else
		got = fd_pread_all(log->fd, bytes, n, s->tail_at, e);
	if (got < 0)
		return ERR_SYS;
	if ((size_t)got < n)
		return err_set(e, ERR_SYS, "log: shorter than it was");
	digest_append(&s->tail, p, n);
	s->tail_at = 0;
	d->nlate--;
	return 0;
}

static int
read_late_tails(
    struct log_digest *d, const struct runlog_source *log, struct err *e)
{
	for (size_t i = 0; i < 2 * (size_t)d->ncommands && d->nlate > 0; i++)
		if (read_tail(d, stream_at(d, i), log, e) != 0)
			return ERR_SYS;
	return 0;
}

static int
begin_output(struct digest_walk *w, struct err *e)
{
	const struct runlog_scan *scan = &w->d->check.scan;
	const struct log_caps *caps = &w->d->caps;
	const unsigned int i = scan->header.type == RUNLOG_STDERR;
	const size_t n = scan->header.length;
	struct log_stream *s = &w->d->commands[scan->header.command].out[i];
	size_t rest;

	w->stream = s;
	w->head = head_part(w->d, s, n, caps->head[i]);
	rest = n - w->head;
	w->pass = rest >= caps->tail ? rest : 0;
	if (w->pass > 0 && caps->tail > 0)
		tail_is_at(
		    w->d, s, scan->at + RUNLOG_HEADER_BYTES + n - caps->tail);
	else if (rest > 0 && read_tail(w->d, s, &w->walk.source, e) != 0)
		return ERR_SYS;
	if (w->head > 0) {
		if (s->head_len == 0)
			s->head_from = scan->at;
		s->head_to = scan->at + RUNLOG_HEADER_BYTES + n;
	}
	s->head_len += (uint32_t)w->head;
	w->d->heads += w->head;
	s->bytes += n;
	return 0;
}

/* What the next bytes of an output are for; returns how many were taken. */
static size_t
take_some(struct digest_walk *w, const uint8_t *p, size_t n)
{
	if (w->head > 0) {
		n = n < w->head ? n : w->head;
		digest_append(&w->stream->head, p, n);
		merged_append(w->d, p, n);
		w->head -= n;
	} else if (w->pass > 0) {
		n = n < w->pass ? n : w->pass;
		w->pass -= n;
	} else {
		tail_append(&w->stream->tail, p, n, w->d->caps.tail);
	}
	return n;
}

static void
take_output(struct digest_walk *w, const struct runlog_piece *piece)
{
	size_t at = 0;

	while (at < piece->n)
		at += take_some(w, piece->p + at, piece->n - at);
}

/* Before more of it is read. */
static void
skip_output(struct digest_walk *w)
{
	if (w->head > 0 || w->pass == 0)
		return;
	runlog_walk_skip(&w->walk, (uint32_t)w->pass);
	w->pass = 0;
}

static void
take_record(struct log_digest *d, const struct runlog_piece *payload)
{
	const struct runlog_header *h = &d->check.scan.header;
	struct log_command *c = &d->commands[h->command];

	switch (h->type) {
	case RUNLOG_RUN_STARTED:
		d->started_us = h->wall_us;
		break;
	case RUNLOG_COMMAND_STARTED:
		c->state = LOG_COMMAND_RUNNING;
		c->started_us = h->wall_us;
		break;
	case RUNLOG_LEFT: /* these three were parsed by the check */
		digest_append(&c->left, payload->p, payload->n);
		break;
	case RUNLOG_COMMAND_ENDED:
		c->state = LOG_COMMAND_ENDED;
		c->ended_us = h->wall_us;
		(void)!runlog_parse_end(payload->p, payload->n, &c->end, NULL);
		break;
	case RUNLOG_RUN_ENDED:
		d->ended_us = h->wall_us;
		(void)!runlog_parse_run_end(
		    payload->p, payload->n, &d->end, NULL);
		break;
	case RUNLOG_STDOUT: /* do not come here */
	case RUNLOG_STDERR:
		break;
	}
}

/* ---- the walk */

static int
on_header(struct digest_walk *w, struct err *e)
{
	struct runlog_check *check = &w->d->check;
	const struct runlog_header *h = &check->scan.header;

	if (h->length > w->walk.upto - check->scan.offset)
		return TURN_DONE; /* it is not whole yet */
	if (w->walk.nread >= LOG_SLICE_BYTES)
		return TURN_MORE;
	if (runlog_check_header(check, e) != 0)
		return ERR_PROTO;
	if (runlog_is_output(h->type)) {
		if (begin_output(w, e) != 0)
			return ERR_SYS;
		skip_output(w);
	}
	return TURN_GO;
}

static int
digest_step(struct digest_walk *w, struct err *e)
{
	struct runlog_piece piece;
	int step = runlog_walk_next(&w->walk, &piece, e);

	switch (step) {
	case RUNLOG_MORE:
		return TURN_DONE;
	case RUNLOG_HEADER:
		return on_header(w, e);
	case RUNLOG_OUTPUT:
		take_output(w, &piece);
		skip_output(w);
		return TURN_GO;
	case RUNLOG_RECORD:
		if (runlog_check_record(&w->d->check, &piece, e) != 0)
			return ERR_PROTO;
		take_record(w->d, &piece);
		return TURN_GO;
	default:
		return step;
	}
}

static int
digest_scan(struct log_digest *d, const struct runlog_source *log,
    uint64_t upto, const struct log_work *work, struct err *e)
{
	struct digest_walk w = {.d = d};
	struct runlog_scan *scan = &d->check.scan;
	int turn;

	runlog_walk_init(&w.walk, scan, log, upto, work->chunk, work->size);
	do
		turn = digest_step(&w, e);
	while (turn == TURN_GO);
	if (turn != ERR_SYS && read_late_tails(d, log, e) != 0)
		turn = ERR_SYS;
	if (turn == ERR_SYS) { /* perhaps within a record */
		digest_reset(d);
		return ERR_SYS;
	}
	d->scanned = scan->at;
	d->broken = turn == ERR_PROTO;
	runlog_scan_init(scan, scan->at);
	return turn == TURN_MORE;
}

/* ---- heads that are not in memory */

static void
fill_output(struct log_stream *s, struct runlog_walk *walk,
    const struct runlog_piece *piece)
{
	size_t want = s->head_len - buf_len(&s->head);

	digest_append(&s->head, piece->p, want < piece->n ? want : piece->n);
	if (want <= piece->n)
		runlog_walk_skip(walk, UINT32_MAX);
}

/* ERR_PROTO: the log is not the one that the digest is of. */
static int
fill_head(struct log_digest *d, uint32_t command, unsigned int i,
    const struct runlog_source *log, const struct log_work *work, struct err *e)
{
	const enum runlog_type type = i == 0 ? RUNLOG_STDOUT : RUNLOG_STDERR;
	struct log_stream *s = &d->commands[command].out[i];
	struct runlog_piece piece;
	struct runlog_scan scan;
	struct runlog_walk walk;
	int step;

	runlog_scan_init(&scan, s->fill_at);
	runlog_walk_init(
	    &walk, &scan, log, s->head_to, work->chunk, work->size);
	while ((step = runlog_walk_next(&walk, &piece, e)) > RUNLOG_MORE) {
		if (step == RUNLOG_OUTPUT)
			fill_output(s, &walk, &piece);
		if (step != RUNLOG_HEADER)
			continue;
		if (walk.nread >= LOG_SLICE_BYTES) {
			s->fill_at = scan.at;
			return TURN_MORE;
		}
		if (scan.header.type != type || scan.header.command != command)
			runlog_walk_skip(&walk, UINT32_MAX);
	}
	if (step != RUNLOG_MORE || buf_len(&s->head) != s->head_len)
		return ERR_PROTO;
	s->absent = false;
	return TURN_DONE;
}

static int
fill_heads(struct log_digest *d, const struct runlog_source *log, uint64_t upto,
    const struct log_work *work, struct err *e)
{
	int turn;

	for (uint32_t i = 0; i < d->ncommands; i++) {
		for (unsigned int k = 0; k < 2; k++) {
			const struct log_stream *s = &d->commands[i].out[k];

			if (!s->absent)
				continue;
			if (s->head_to > upto)
				return ERR_PROTO;
			turn = fill_head(d, i, k, log, work, e);
			if (turn != TURN_DONE)
				return turn;
		}
	}
	return TURN_DONE;
}

int
log_digest_advance(struct log_digest *d, const struct runlog_source *log,
    uint64_t upto, const struct log_work *work, struct err *e)
{
	int turn = fill_heads(d, log, upto, work, e);

	if (turn == TURN_MORE)
		return 1;
	if (turn != TURN_DONE) /* the log is the truth: all anew */
		digest_reset(d);
	if (d->final || d->broken || upto <= d->scanned)
		return 0;
	return digest_scan(d, log, upto, work, e);
}

size_t
log_digest_held(const struct log_digest *d)
{
	size_t n = buf_len(&d->merged);

	for (uint32_t i = 0; i < d->ncommands; i++)
		n += buf_len(&d->commands[i].out[0].head) +
		    buf_len(&d->commands[i].out[1].head);
	return n;
}

static void
drop_head(struct log_stream *s)
{
	buf_clear(&s->head);
	s->absent = s->head_len > 0;
	s->fill_at = s->head_from;
}

void
log_digest_drop(struct log_digest *d)
{
	if (buf_len(&d->merged) > 0) { /* its order is nowhere else */
		digest_reset(d);
		return;
	}
	for (uint32_t i = 0; i < d->ncommands; i++) {
		drop_head(&d->commands[i].out[0]);
		drop_head(&d->commands[i].out[1]);
	}
}

/* ---- kept beside the log */

/* Is one read of the log, from its first record to its last, cheap enough? */
static bool
head_is_dense(const struct log_stream *s)
{
	return s->head_to - s->head_from <=
	    4 * (uint64_t)s->head_len + RUNLOG_PAYLOAD_MAX;
}

static void
encode_stream(const struct log_stream *s, size_t *room, struct buf *out)
{
	bool bytes = !head_is_dense(s) && s->head_len <= *room;

	wire_put_u64(out, s->bytes);
	wire_put_u64(out, s->head_from);
	wire_put_u64(out, s->head_to);
	wire_put_u32(out, s->head_len);
	wire_put_bytes(out, buf_data(&s->head), bytes ? s->head_len : 0);
	wire_put_bytes(out, buf_data(&s->tail), buf_len(&s->tail));
	if (bytes)
		*room -= s->head_len;
}

static void
encode_command(const struct log_command *c, size_t *room, struct buf *out)
{
	struct buf end;

	wire_put_u8(out, (uint8_t)c->state);
	wire_put_i64(out, c->started_us);
	wire_put_i64(out, c->ended_us);
	if (c->state == LOG_COMMAND_ENDED) {
		buf_init(&end, RUNLOG_RECORD_MAX);
		runlog_put_end(&end, &c->end);
		wire_put_bytes(out, buf_data(&end), buf_len(&end));
		buf_clear(&end);
	}
	wire_put_bytes(out, buf_data(&c->left), buf_len(&c->left));
	encode_stream(&c->out[0], room, out);
	encode_stream(&c->out[1], room, out);
}

void
log_digest_encode(const struct log_digest *d, struct buf *out)
{
	size_t room = LOG_DIGEST_KEPT_MAX;

	wire_put_u8(out, DIGEST_VERSION);
	wire_put_u32(out, d->ncommands);
	wire_put_u32(out, d->caps.head[0]);
	wire_put_u32(out, d->caps.head[1]);
	wire_put_u32(out, d->caps.tail);
	wire_put_u32(out, d->caps.heads);
	wire_put_u64(out, d->scanned);
	wire_put_u8(out, d->broken);
	wire_put_i64(out, d->started_us);
	wire_put_i64(out, d->ended_us);
	if (d->ended_us != 0)
		runlog_put_run_end(out, &d->end);
	for (uint32_t i = 0; i < d->ncommands; i++)
		encode_command(&d->commands[i], &room, out);
}

static int
decode_bad(const char *what, struct err *e)
{
	return err_set(e, ERR_PROTO, "digest of a log: bad %s", what);
}

/* The sizes follow from the count of bytes; the places from the log. */
static bool
stream_is_possible(const struct log_digest *d, const struct log_stream *s,
    size_t head_max, size_t nhead, size_t ntail)
{
	uint64_t head = s->bytes < head_max ? s->bytes : head_max;
	uint64_t rest = s->bytes - s->head_len;

	if (s->head_len > head || (nhead != 0 && nhead != s->head_len))
		return false;
	if (d->caps.heads == 0 ? s->head_len != head :
				 d->heads + s->head_len > d->caps.heads)
		return false;
	if (ntail != (rest < d->caps.tail ? rest : d->caps.tail))
		return false;
	if (s->head_from > s->head_to || s->head_to > d->scanned ||
	    s->bytes > d->scanned)
		return false;
	return s->head_len <= s->head_to - s->head_from;
}

static int
decode_stream(struct log_digest *d, struct log_stream *s, unsigned int i,
    struct wire_in *in, struct err *e)
{
	const uint8_t *head, *tail;
	size_t nhead, ntail;

	s->bytes = wire_get_u64(in);
	s->head_from = s->fill_at = wire_get_u64(in);
	s->head_to = wire_get_u64(in);
	s->head_len = wire_get_u32(in);
	head = wire_get_bytes(in, LOG_DIGEST_KEPT_MAX, &nhead);
	tail = wire_get_bytes(in, LOG_TAIL_BYTES, &ntail);
	if (in->bad != NULL ||
	    !stream_is_possible(d, s, d->caps.head[i], nhead, ntail))
		return decode_bad("stream", e);
	d->heads += s->head_len;
	digest_append(&s->head, head, nhead);
	digest_append(&s->tail, tail, ntail);
	s->absent = nhead < s->head_len;
	return 0;
}

static int
decode_command(struct log_digest *d, struct log_command *c, struct wire_in *in,
    struct err *e)
{
	uint8_t state = wire_get_u8(in);
	struct runlog_left left;
	const uint8_t *end, *p;
	size_t n;

	c->started_us = wire_get_i64(in);
	c->ended_us = wire_get_i64(in);
	if (state > LOG_COMMAND_ENDED)
		return decode_bad("command", e);
	c->state = (enum log_command_state)state;
	if (c->state == LOG_COMMAND_ENDED) {
		end = wire_get_bytes(in, RUNLOG_RECORD_MAX, &n);
		if (end == NULL || runlog_parse_end(end, n, &c->end, e) != 0)
			return decode_bad("end of a command", e);
	}
	p = wire_get_bytes(in, RUNLOG_RECORD_MAX, &n);
	if (n > 0 && runlog_parse_left(p, n, &left, e) != 0)
		return decode_bad("processes that were left", e);
	digest_append(&c->left, p, n);
	for (unsigned int i = 0; i < 2; i++)
		if (decode_stream(d, &c->out[i], i, in, e) != 0)
			return ERR_PROTO;
	if (c->state == LOG_COMMAND_WAITING &&
	    (c->out[0].bytes > 0 || c->out[1].bytes > 0))
		return decode_bad("command that waits", e);
	return 0;
}

static int
decode_head(struct log_digest *d, struct wire_in *in, struct err *e)
{
	uint8_t broken, end[RUNLOG_RUN_END_BYTES];

	if (wire_get_u8(in) != DIGEST_VERSION)
		return decode_bad("version", e);
	if (wire_get_u32(in) != d->ncommands ||
	    wire_get_u32(in) != d->caps.head[0] ||
	    wire_get_u32(in) != d->caps.head[1] ||
	    wire_get_u32(in) != d->caps.tail ||
	    wire_get_u32(in) != d->caps.heads)
		return decode_bad("caps", e);
	d->scanned = wire_get_u64(in);
	broken = wire_get_u8(in);
	d->broken = broken == 1;
	d->started_us = wire_get_i64(in);
	d->ended_us = wire_get_i64(in);
	if (broken > 1 || d->started_us < 0 || d->ended_us < 0)
		return decode_bad("run", e);
	if (d->ended_us == 0)
		return 0;
	for (size_t i = 0; i < sizeof(end); i++)
		end[i] = wire_get_u8(in);
	if (runlog_parse_run_end(end, sizeof(end), &d->end, e) != 0 ||
	    d->end.command >= d->ncommands)
		return decode_bad("end of the run", e);
	return 0;
}

int
log_digest_decode(const uint8_t *p, size_t n, uint32_t ncommands,
    const struct log_caps *caps, struct log_digest **out, struct err *e)
{
	struct log_digest *d = log_digest_new(ncommands, caps);
	struct wire_in in;
	int rc;

	wire_in_init(&in, p, n);
	d->final = true;
	rc = decode_head(d, &in, e);
	for (uint32_t i = 0; i < ncommands && rc == 0; i++)
		rc = decode_command(d, &d->commands[i], &in, e);
	if (rc == 0)
		rc = wire_get_end(&in, e);
	if (rc != 0) {
		log_digest_free(d);
		return rc;
	}
	*out = d;
	return 0;
}
