/*
 * stream.h - an event stream: messages to one client, one after the other
 *
 * Knows the form of Server-Sent Events and when a silent stream shows that it
 * lives; not what the messages say, nor who waits for them.  It belongs to
 * whoever opened it (an exchange) and is part of it.
 *
 * Each operation may find the client gone: then the transport calls
 * mcp_client_gone from inside, and the owner calls stream_forget.
 */
#ifndef MCP_STREAM_H
#define MCP_STREAM_H

#include <sys/queue.h>

#include "common/base.h"
#include "supervisor/mcp/mcp.h"

struct mcp_stream {
	const struct mcp_transport_ops *ops; /* NULL: not opened, or over */
	void *handle;
	uint64_t last_ms; /* CLOCK_MONOTONIC, of its last bytes */
	LIST_ENTRY(mcp_stream) link;
};
LIST_HEAD(mcp_stream_list, mcp_stream); /* the open ones */

static inline bool
stream_is_open(const struct mcp_stream *s)
{
	return s->ops != NULL;
}

/* stream_open - session_id for the header, or NULL */
void stream_open(struct mcp_stream *s, struct mcp_stream_list *open,
    const struct mcp_transport_ops *ops, void *handle, const char *session_id);
/* stream_send - one message: JSON text without a line break */
void stream_send(struct mcp_stream *s, const char *text);
/* stream_has_room - the client reads: what may be left out need not be */
bool stream_has_room(const struct mcp_stream *s);
void stream_end(struct mcp_stream *s);
/* stream_forget - the client is gone: nothing is called any more */
void stream_forget(struct mcp_stream *s);
/* stream_beat - a comment on each stream that was silent for heartbeat_ms, so
 * that nobody on the way takes it for dead */
void stream_beat(
    struct mcp_stream_list *open, uint64_t now_ms, uint32_t heartbeat_ms);

#endif
