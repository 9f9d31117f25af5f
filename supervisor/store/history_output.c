#include "supervisor/store/history_output.h"

#include <unistd.h>

#include "common/runlog_scan.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/store/history.h"

/* More than two records: in so many bytes one begins. */
#define WINDOW_BYTES (3u * RUNLOG_PAYLOAD_MAX)
#define HALF HISTORY_OUTPUT_BYTES

/* ---- text */

void
history_output_add(struct buf *b, const uint8_t *p, size_t n)
{
	uint8_t *to;

	if (n + 1 > buf_room(b))
		n = buf_room(b) > 0 ? buf_room(b) - 1 : 0;
	if (n == 0)
		return;
	to = buf_reserve(b, n + 1);
	if (to == NULL)
		return;
	for (size_t i = 0; i < n; i++)
		to[i] = p[i] < 0x20 || p[i] == 0x7f ? '\n' : p[i];
	/* A byte that is part of no character parts words, as a blank. */
	for (size_t i = 0; i < n;) {
		size_t len = to[i] < 0x80 ? 1 :
		    to[i] >= 0xf0         ? 4 :
		    to[i] >= 0xe0         ? 3 :
					    2;

		if (to[i] >= 0x80 &&
		    (i + len > n || !utf8_is_valid(to + i, len))) {
			to[i] = '\n';
			len = 1;
		}
		i += len;
	}
	to[n] = '\n';
	buf_commit(b, n + 1);
}

/* ---- one stream of one command */

struct stream {
	uint8_t head[HALF];
	size_t nhead;
	uint8_t tail[HALF]; /* a ring */
	uint64_t ntail;     /* bytes that went by, all in all */
};

static void
stream_take(struct stream *s, const uint8_t *p, size_t n)
{
	size_t room = HALF - s->nhead;

	if (s->ntail == 0 && room > 0) {
		if (room > n)
			room = n;
		memcpy(s->head + s->nhead, p, room);
		s->nhead += room;
		p += room;
		n -= room;
	}
	if (n > HALF) {
		s->ntail += n - HALF;
		p += n - HALF;
		n = HALF;
	}
	for (size_t i = 0; i < n; i++)
		s->tail[s->ntail++ % HALF] = p[i];
}

/* Head and tail in one, when nothing is missing between them: a word may
 * stand on both sides. */
static void
stream_flush(struct stream *s, struct buf *b)
{
	uint8_t *all = xmalloc(2 * (size_t)HALF);
	size_t n = s->nhead;

	memcpy(all, s->head, n);
	if (s->ntail > HALF) {
		history_output_add(b, all, n);
		n = 0;
	}
	for (uint64_t i = s->ntail > HALF ? s->ntail - HALF : 0; i < s->ntail;
	     i++)
		all[n++] = s->tail[i % HALF];
	history_output_add(b, all, n);
	free(all);
	s->nhead = 0;
	s->ntail = 0;
}

/* ---- records */

struct history_piece {
	struct stream streams[2];
	int32_t command; /* whose, -1: nobody's yet */
};

static void
output_flush(struct history_piece *o, struct buf *b)
{
	stream_flush(&o->streams[0], b);
	stream_flush(&o->streams[1], b);
}

/* From a record's beginning on, until there is none. */
static void
output_take(struct history_piece *o, struct buf *b, const uint8_t *p, size_t n)
{
	struct runlog_piece piece;
	struct runlog_scan scan;
	struct err ignored;
	int step;

	runlog_scan_init(&scan, 0);
	while (
	    (step = runlog_scan_next(&scan, &p, &n, &piece, &ignored)) >= 0 &&
	    step != RUNLOG_MORE) {
		if (step == RUNLOG_HEADER &&
		    runlog_is_output(scan.header.type) &&
		    scan.header.command != o->command) {
			output_flush(o, b);
			o->command = scan.header.command;
		}
		if (step == RUNLOG_OUTPUT)
			stream_take(
			    &o->streams[scan.header.type == RUNLOG_STDERR],
			    piece.p, piece.n);
	}
}

/* Heads and tails are read only as far as they were written. */
static struct history_piece *
output_new(void)
{
	struct history_piece *o = xmalloc(sizeof(*o));

	for (size_t i = 0; i < ARRAY_LEN(o->streams); i++) {
		o->streams[i].nhead = 0;
		o->streams[i].ntail = 0;
	}
	o->command = -1;
	return o;
}

void
history_output_log(struct buf *b, const uint8_t *log, size_t n)
{
	struct history_piece *o = output_new();

	output_take(o, b, log, n);
	output_flush(o, b);
	free(o);
}

/* Records that follow each other up to the end exactly. */
static bool
is_chain(const uint8_t *p, size_t n)
{
	struct runlog_header h;
	struct err ignored;

	while (n >= RUNLOG_HEADER_BYTES &&
	    runlog_parse_header(p, &h, &ignored) == 0 &&
	    n - RUNLOG_HEADER_BYTES >= h.length) {
		p += RUNLOG_HEADER_BYTES + h.length;
		n -= RUNLOG_HEADER_BYTES + h.length;
	}
	return n == 0;
}

/* Who writes records into his output is found first; a chain of such that
 * goes to the very end has him find his own text, and nobody another's. */
static size_t
find_chain(const uint8_t *p, size_t n)
{
	unsigned int tries = 64;

	for (size_t at = 0; at < n && tries > 0; at++) {
		if (p[at] != RUNLOG_MAGIC)
			continue;
		if (is_chain(p + at, n - at))
			return at;
		tries--;
	}
	return n;
}

static size_t
read_window(int fd, uint64_t at, uint8_t *p, size_t n)
{
	size_t got = 0;
	ssize_t r;

	while (
	    got < n && (r = pread(fd, p + got, n - got, (off_t)(at + got))) > 0)
		got += (size_t)r;
	return got;
}

void
history_output_file(struct buf *b, int fd, uint64_t bytes)
{
	uint8_t *window = xmalloc(2 * (size_t)WINDOW_BYTES);
	struct history_piece *o = output_new();
	size_t n, at;

	n = read_window(fd, 0, window,
	    bytes < 2 * (uint64_t)WINDOW_BYTES ? (size_t)bytes : WINDOW_BYTES);
	output_take(o, b, window, n);
	if (bytes >= 2 * (uint64_t)WINDOW_BYTES) {
		n = read_window(fd, bytes - WINDOW_BYTES, window, WINDOW_BYTES);
		at = find_chain(window, n);
		/* What follows is not what came right behind. */
		for (size_t i = 0; i < 2; i++)
			stream_take(&o->streams[i], (const uint8_t *)"\n", 1);
		output_take(o, b, window + at, n - at);
	}
	output_flush(o, b);
	free(o);
	free(window);
}
