/*
 * batch.c - the exchanges of a batch's requests, and the one that they share
 *
 * A part is the transport of its request's exchange.  An answer waits in
 * b->answers for the others, or is sent at once when the shared exchange has a
 * stream: it gets one when the first part does.  What was collected before
 * goes first then.
 */
#include "supervisor/mcp/batch.h"

#include <sys/uio.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/rpc.h"

/* One request of it. */
struct batch_part {
	LIST_ENTRY(batch_part) link;
	struct mcp_batch *b;
	char *id; /* JSON text */
};

struct mcp_batch {
	struct exchange_waiter waiter; /* first */
	LIST_ENTRY(mcp_batch) link;    /* struct mcp's */
	struct mcp *m;
	struct mcp_exchange *x;        /* shared; NULL: the client is gone */
	unsigned int forms;            /* of x */
	LIST_HEAD(, batch_part) parts; /* without an answer */
	bool is_closed;
	char *answers[RPC_BATCH_MAX];
	size_t nanswers;
	size_t bytes; /* of them */
};

static void
part_free(struct batch_part *p)
{
	LIST_REMOVE(p, link);
	free(p->id);
	free(p);
}

static void
forget_answers(struct mcp_batch *b)
{
	for (size_t i = 0; i < b->nanswers; i++)
		free(b->answers[i]);
	b->nanswers = 0;
	b->bytes = 0;
}

static void
batch_free(struct mcp_batch *b)
{
	struct batch_part *p;

	while ((p = LIST_FIRST(&b->parts)) != NULL)
		part_free(p);
	forget_answers(b);
	LIST_REMOVE(b, link);
	free(b);
}

void
batch_free_all(struct mcp *m)
{
	struct mcp_batch *b;

	while ((b = LIST_FIRST(&m->batches)) != NULL)
		batch_free(b);
}

/* ---- the shared exchange */

static void
batch_on_end(struct exchange_waiter *w)
{
	struct mcp_batch *b = (struct mcp_batch *)w;

	b->x = NULL;
}

static bool
is_streaming(const struct mcp_batch *b)
{
	return b->x != NULL && b->x->is_streaming;
}

/* What was collected, into the stream that is there now. */
static void
flush(struct mcp_batch *b)
{
	for (size_t i = 0; i < b->nanswers && b->x != NULL; i++)
		exchange_send(b->x, b->answers[i]);
	forget_answers(b);
}

static void
open_stream(struct mcp_batch *b)
{
	if (b->x != NULL)
		exchange_stream_open(b->x);
	if (is_streaming(b))
		flush(b);
}

static char *
join(const struct mcp_batch *b)
{
	char *all = xmalloc(b->bytes + b->nanswers + 2);
	char *p = all;

	for (size_t i = 0; i < b->nanswers; i++) {
		*p++ = i == 0 ? '[' : ',';
		p = stpcpy(p, b->answers[i]);
	}
	memcpy(p, "]", 2);
	return all;
}

static void
answer_all(struct mcp_batch *b)
{
	AUTO(auto_free) char *all = NULL;

	if (is_streaming(b))
		flush(b);
	if (is_streaming(b)) {
		exchange_answer(b->x, NULL, NULL);
	} else if (b->x != NULL && b->nanswers == 0) {
		exchange_reply(b->x, 202, NULL);
	} else if (b->x != NULL) {
		all = join(b);
		exchange_answer(b->x, NULL, all);
	}
}

static void
end_if_over(struct mcp_batch *b)
{
	if (!b->is_closed || !LIST_EMPTY(&b->parts))
		return;
	answer_all(b);
	batch_free(b);
}

/* ---- a part, as the transport of its exchange */

static void
collect(struct mcp_batch *b, const struct batch_part *p, const char *text)
{
	char *kept = b->bytes + strlen(text) <= BATCH_BYTES_MAX ?
	    xstrdup(text) :
	    rpc_error(p->id, MCP_INTERNAL_ERROR,
		"the answers of this batch are over 8 MiB: send fewer "
		"requests at once, or accept text/event-stream",
		NULL);

	b->answers[b->nanswers++] = kept;
	b->bytes += strlen(kept);
}

static void
part_on_reply(void *handle, int status, const char *session_id,
    const char *text, size_t len)
{
	struct batch_part *p = handle;
	struct mcp_batch *b = p->b;

	(void)status; /* the error says it, too */
	(void)session_id;
	if (text != NULL && b->bytes + len > BATCH_BYTES_MAX)
		open_stream(b);
	if (is_streaming(b)) {
		flush(b);
		if (text != NULL && b->x != NULL)
			exchange_send(b->x, text);
	} else if (text != NULL && b->x != NULL) {
		collect(b, p, text);
	}
	part_free(p);
	end_if_over(b);
}

static int
part_on_stream_take(void *handle, struct err *e)
{
	const struct batch_part *p = handle;

	open_stream(p->b);
	return is_streaming(p->b) || p->b->x == NULL ?
	    0 :
	    err_set(e, ERR_QUOTA, "there is no stream for this batch");
}

static void
part_on_stream_start(void *handle, const char *session_id)
{
	const struct batch_part *p = handle;

	(void)session_id;
	open_stream(p->b);
}

static void
part_on_stream_write(void *handle, const struct iovec *pieces, int n)
{
	const struct batch_part *p = handle;
	const struct mcp_exchange *x = p->b->x;

	if (is_streaming(p->b))
		x->ops->stream_write(x->handle, pieces, n);
}

static size_t
part_on_stream_pending(void *handle)
{
	const struct batch_part *p = handle;
	const struct mcp_exchange *x = p->b->x;

	/* Nobody reads where there is no stream: leave out what may be. */
	return is_streaming(p->b) ? x->ops->stream_pending(x->handle) :
				    SIZE_MAX;
}

static void
part_on_stream_end(void *handle)
{
	struct batch_part *p = handle;
	struct mcp_batch *b = p->b;

	part_free(p);
	end_if_over(b);
}

static const struct mcp_transport_ops part_ops = {
    .reply = part_on_reply,
    .stream_take = part_on_stream_take,
    .stream_start = part_on_stream_start,
    .stream_write = part_on_stream_write,
    .stream_pending = part_on_stream_pending,
    .stream_end = part_on_stream_end,
};

/* ---- a batch */

struct mcp_batch *
batch_new(struct mcp_exchange *x)
{
	struct mcp_batch *b = xcalloc(1, sizeof(*b));

	b->waiter.on_end = batch_on_end;
	b->m = x->m;
	b->x = x;
	b->forms = x->forms;
	LIST_INIT(&b->parts);
	LIST_INSERT_HEAD(&x->m->batches, b, link);
	exchange_wait(x, &b->waiter);
	return b;
}

struct mcp_exchange *
batch_add(struct mcp_batch *b, const char *id)
{
	struct batch_part *p = xcalloc(1, sizeof(*p));
	struct mcp_exchange *x;
	struct err e;

	p->b = b;
	p->id = xstrdup(id);
	LIST_INSERT_HEAD(&b->parts, p, link);
	x = exchange_new(b->m, &part_ops, p);
	if (exchange_set_forms(x, b->forms, &e) != 0)
		log_debug("a batch without its stream: %s", e.msg);
	return x;
}

void
batch_close(struct mcp_batch *b)
{
	b->is_closed = true;
	end_if_over(b);
}
