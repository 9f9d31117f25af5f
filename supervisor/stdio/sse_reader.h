/*
 * sse_reader.h - server-sent events, as they come in
 *
 * By the HTML standard, "Parsing an event stream": lines end with CR, LF or
 * both, several data lines are one text, an id counts once its event is whole,
 * and what has no blank line behind it when the stream ends is no event.
 *
 * MCP 2025-11-25, transports: an event of empty data tells its id alone, and
 * is not given to on_event.  Nor are events of another type than "message".
 */
#ifndef STDIO_SSE_READER_H
#define STDIO_SSE_READER_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"

#define SSE_ID_MAX 1024
#define SSE_TYPE_MAX 32
#define SSE_RETRY_MAX_MS 60000

struct sse_reader {
	void (*on_event)(const char *data, size_t n, void *arg);
	void *arg;
	char last_id[SSE_ID_MAX + 1]; /* "": none */
	int64_t retry_ms;             /* -1: none was said */
	/* Inside. */
	struct buf line, data;
	char id[SSE_ID_MAX + 1]; /* of the event that is coming */
	char type[SSE_TYPE_MAX + 1];
	bool has_data;
	bool after_cr; /* an LF that comes now ends no second line */
	bool has_begun;
};

/* sse_init - max: bytes of one event, its field names counted in */
void sse_init(struct sse_reader *s, size_t max,
    void (*on_event)(const char *data, size_t n, void *arg), void *arg);
void sse_clear(struct sse_reader *s);
/* sse_begin - another stream that goes on with this one: what was not whole is
 * dropped, and last_id and retry_ms stay */
void sse_begin(struct sse_reader *s);
/* sse_feed - ERR_LIMIT: an event is longer than max */
int sse_feed(
    struct sse_reader *s, const char *p, size_t n, struct err *e) MUSTCHECK;

#endif
