/*
 * lines.h - JSON-RPC messages from bytes: one a line
 *
 * MCP, transports, stdio: messages are ended by newlines and have none inside.
 * A carriage return before the newline is not the message's, a line of blanks
 * is none, and what stands behind the last newline is a line when the input
 * ends.  Of a line that is longer than max nothing is kept but what it is.
 */
#ifndef STDIO_LINES_H
#define STDIO_LINES_H

#include "common/base.h"
#include "common/buf.h"
#include "supervisor/stdio/glimpse.h"

struct lines_ops {
	/* line is good until it returns, and no NUL stands behind it */
	void (*on_line)(const char *line, size_t n, void *arg);
	void (*on_too_long)(const struct glimpse *what, void *arg);
};

struct lines {
	const struct lines_ops *ops;
	void *arg;
	size_t max;
	struct buf held; /* a line that has not ended yet */
	bool is_long;    /* it is longer than max, and too_long has it */
	struct glimpse too_long;
};

void lines_init(
    struct lines *l, size_t max, const struct lines_ops *ops, void *arg);
void lines_clear(struct lines *l);
void lines_feed(struct lines *l, const char *p, size_t n);
void lines_end(struct lines *l); /* the input has ended */

#endif
