#include "supervisor/mcp/stream.h"

#include <sys/uio.h>

#include "common/clock.h"

#define PIECE(text)                                                            \
	{                                                                      \
		(char *)(uintptr_t)(text), strlen(text)                        \
	}

void
stream_open(struct mcp_stream *s, struct mcp_stream_list *open,
    const struct mcp_transport_ops *ops, void *handle, const char *session_id)
{
	s->ops = ops;
	s->handle = handle;
	s->last_ms = clock_mono_ms();
	LIST_INSERT_HEAD(open, s, link);
	ops->stream_start(handle, session_id);
}

void
stream_send(struct mcp_stream *s, const char *text)
{
	const struct iovec event[] = {
	    PIECE("event: message\ndata: "), PIECE(text), PIECE("\n\n")};

	s->last_ms = clock_mono_ms();
	s->ops->stream_write(s->handle, event, ARRAY_LEN(event));
}

bool
stream_has_room(const struct mcp_stream *s)
{
	return s->ops->stream_pending(s->handle) <= MCP_PROGRESS_PENDING_MAX;
}

void
stream_forget(struct mcp_stream *s)
{
	if (s->ops == NULL)
		return;
	s->ops = NULL;
	LIST_REMOVE(s, link);
}

void
stream_end(struct mcp_stream *s)
{
	const struct mcp_transport_ops *ops = s->ops;

	stream_forget(s);
	ops->stream_end(s->handle);
}

void
stream_beat(
    struct mcp_stream_list *open, uint64_t now_ms, uint32_t heartbeat_ms)
{
	const struct iovec comment[] = {PIECE(": \n\n")};
	struct mcp_stream *s, *next;

	for (s = LIST_FIRST(open); s != NULL; s = next) {
		next = LIST_NEXT(s, link);
		if (now_ms < s->last_ms + heartbeat_ms)
			continue;
		s->last_ms = now_ms;
		/* Bytes that wait prove as much, and do not pile up. */
		if (s->ops->stream_pending(s->handle) == 0)
			s->ops->stream_write(
			    s->handle, comment, ARRAY_LEN(comment));
	}
}
