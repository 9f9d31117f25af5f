#include "supervisor/service/internal.h"

#include "common/fd.h"
#include "common/xmalloc.h"

#define SCAN_CHUNK (256u * 1024)

size_t
logview_read(const struct log_source *l, uint64_t off, void *p, size_t n)
{
	ssize_t got;

	if (off >= l->length)
		return 0;
	if (n > l->length - off)
		n = (size_t)(l->length - off);
	if (l->mem != NULL) {
		memcpy(p, l->mem + off, n);
		return n;
	}
	got = fd_pread_all(l->fd, p, n, off, NULL);
	return got < 0 ? 0 : (size_t)got;
}

static void
take_output(struct log_head *head, unsigned int stream, const size_t *max,
    const uint8_t *p, size_t n, struct buf *merged)
{
	struct buf *b = &head->out[stream];
	size_t room = max[stream] - buf_len(b);

	if (n > room)
		n = room;
	if (n == 0)
		return;
	if (buf_append(b, p, n) != 0)
		return; /* cannot be: the limit is the cap */
	if (merged != NULL && buf_room(merged) >= n)
		(void)!buf_append(merged, p, n);
}

/* One chunk of the log: whole records only.  Returns the bytes used. */
static size_t
collect_chunk(const uint8_t *p, size_t n, uint32_t ncommands, const size_t *max,
    struct log_head *heads, struct buf *merged)
{
	struct runlog_header h;
	size_t at = 0;

	while (n - at >= RUNLOG_HEADER_BYTES) {
		if (runlog_parse_header(p + at, &h, NULL) != 0)
			return SIZE_MAX;
		if (n - at - RUNLOG_HEADER_BYTES < h.length)
			break;
		at += RUNLOG_HEADER_BYTES;
		if ((h.type == RUNLOG_STDOUT || h.type == RUNLOG_STDERR) &&
		    h.command < ncommands)
			take_output(&heads[h.command], h.type == RUNLOG_STDERR,
			    max, p + at, h.length, merged);
		at += h.length;
	}
	return at;
}

void
logview_collect(const struct log_source *l, uint32_t ncommands,
    size_t stdout_max, size_t stderr_max, struct log_head *heads,
    struct buf *merged)
{
	const size_t max[2] = {stdout_max, stderr_max};
	AUTO(auto_free) uint8_t *chunk = NULL;
	uint64_t off = 0;
	size_t size, got, used;

	for (uint32_t i = 0; i < ncommands; i++) {
		buf_init(&heads[i].out[0], stdout_max);
		buf_init(&heads[i].out[1], stderr_max);
	}
	size = l->length < SCAN_CHUNK ? (size_t)l->length : SCAN_CHUNK;
	chunk = xmalloc(size + 1);
	while (off < l->length && off < LOG_SCAN_MAX) {
		got = logview_read(l, off, chunk, size);
		used = collect_chunk(chunk, got, ncommands, max, heads, merged);
		if (used == 0 || used == SIZE_MAX)
			break; /* a record that is not whole yet, or none */
		off += used;
	}
}
