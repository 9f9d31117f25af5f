/*
 * http_pump.c - what a TLS connection has to send and cannot send by sendfile
 *
 * A file goes out in pieces, each read when the one before it has been taken.
 * What is written behind a file waits here, and so does the end of the answer.
 *
 * The end is delayed in any case: libevent 2.1's TLS tells that all was written
 * by a callback later in the same turn.  If the last bytes were given to it in
 * between, evhttp would take the callback for theirs and close the connection,
 * or stop writing, before they are sent.  So evhttp is told of the end in a
 * turn of its own: when nothing was added since the turn before and bytes still
 * wait, or when nothing waits for a whole turn.
 */
#include "supervisor/http/http_int.h"

#include <errno.h>

#include "common/fd.h"
#include "common/xmalloc.h"

#define PIECE_BYTES 65536
#define PIECE_SHORT 8192 /* when much waits in memory */

struct http_pump_item {
	TAILQ_ENTRY(http_pump_item) link;
	struct http_pump_file file; /* or, without a descriptor: */
	struct evbuffer *bytes;
};

static void pump_writable_cb(struct evhttp_connection *evcon, void *arg);

static void
item_free(struct http_conn *c, struct http_pump_item *i)
{
	TAILQ_REMOVE(&c->pump, i, link);
	c->pump_bytes -= i->file.left;
	if (i->file.release != NULL)
		i->file.release(i->file.arg);
	else if (i->file.fd != -1)
		(void)close(i->file.fd);
	if (i->bytes != NULL)
		evbuffer_free(i->bytes);
	free(i);
}

static struct http_pump_item *
item_new(struct http_conn *c, const struct http_pump_file *file)
{
	struct http_pump_item *i = xcalloc(1, sizeof(*i));

	i->file = *file;
	c->pump_bytes += file->left;
	TAILQ_INSERT_TAIL(&c->pump, i, link);
	return i;
}

/* The next bytes of a file; -1: it is shorter than it was, or the disk fails.
 */
static int
item_read(struct http_conn *c, struct http_pump_file *i, struct evbuffer *out)
{
	size_t want =
	    http_waiting_is_much(c->server) ? PIECE_SHORT : PIECE_BYTES;
	struct evbuffer_iovec piece;
	struct err e;

	if (want > i->left)
		want = (size_t)i->left;
	if (evbuffer_reserve_space(out, (ev_ssize_t)want, &piece, 1) != 1)
		return -1;
	piece.iov_len = want;
	if (fd_pread_all(i->fd, piece.iov_base, want, i->offset, &e) !=
		(ssize_t)want ||
	    evbuffer_commit_space(out, &piece, 1) != 0)
		return -1;
	i->offset += want;
	i->left -= want;
	c->pump_bytes -= want;
	return 0;
}

static void
pump_send(struct http_conn *c)
{
	struct http_pump_item *i = TAILQ_FIRST(&c->pump);
	struct evbuffer *piece = evbuffer_new();
	bool done;

	if (i->bytes != NULL) {
		(void)evbuffer_add_buffer(piece, i->bytes);
		done = true;
	} else if (item_read(c, &i->file, piece) != 0) {
		evbuffer_free(piece);
		c->on_broken(c); /* an answer with a hole is none */
		return;
	} else {
		done = i->file.left == 0;
	}
	if (done)
		item_free(c, i);
	evhttp_send_reply_chunk_with_cb(
	    c->pump_req, piece, pump_writable_cb, c);
	evbuffer_free(piece);
}

static void
pump_arm_end(struct http_conn *c)
{
	static const struct timeval at_once = {0, 0};

	c->pump_was_empty = false;
	(void)evtimer_add(&c->pump_timer, &at_once);
}

static void
pump_end_cb(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval at_once = {0, 0};
	struct http_conn *c = arg;
	struct evhttp_request *req = c->pump_req;
	bool empty = evbuffer_get_length(bufferevent_get_output(c->bev)) == 0;

	(void)fd;
	(void)what;
	if (empty && !c->pump_was_empty) {
		c->pump_was_empty = true;
		(void)evtimer_add(&c->pump_timer, &at_once);
		return;
	}
	c->pump_req = NULL;
	c->pump_ends = false;
	evhttp_send_reply_end(req);
}

static void
pump_writable_cb(struct evhttp_connection *evcon, void *arg)
{
	struct http_conn *c = arg;

	(void)evcon;
	if (c->pump_req == NULL)
		return;
	if (!TAILQ_EMPTY(&c->pump)) {
		pump_send(c);
		if (TAILQ_EMPTY(&c->pump) && c->pump_ends)
			pump_arm_end(c);
	} else if (c->x != NULL && c->x->on_writable != NULL) {
		c->x->on_writable(c->x->arg);
	}
}

void
http_pump_init(struct http_conn *c, void (*on_broken)(struct http_conn *c))
{
	c->on_broken = on_broken;
	TAILQ_INIT(&c->pump);
	(void)evtimer_assign(&c->pump_timer, c->server->base, pump_end_cb, c);
}

void
http_pump_add(struct http_conn *c, struct evhttp_request *req,
    const struct http_pump_file *file)
{
	bool idle = TAILQ_EMPTY(&c->pump);

	(void)item_new(c, file);
	c->pump_req = req;
	if (idle)
		pump_send(c);
}

void
http_pump_bytes(
    struct http_conn *c, struct evhttp_request *req, struct evbuffer *data)
{
	const struct http_pump_file none = {
	    .fd = -1, .left = evbuffer_get_length(data)};
	struct http_pump_item *i;

	c->pump_req = req;
	if (TAILQ_EMPTY(&c->pump)) {
		evhttp_send_reply_chunk_with_cb(req, data, pump_writable_cb, c);
		return;
	}
	i = item_new(c, &none);
	i->bytes = evbuffer_new();
	(void)evbuffer_add_buffer(i->bytes, data);
}

void
http_pump_end(struct http_conn *c, struct evhttp_request *req)
{
	c->pump_req = req;
	c->pump_ends = true;
	if (TAILQ_EMPTY(&c->pump))
		pump_arm_end(c);
}

/* As for an exchange (http_exchange.c): evhttp frees the request unless it let
 * go of it. */
void
http_pump_clear(struct http_conn *c)
{
	struct http_pump_item *i;

	(void)event_del(&c->pump_timer);
	while ((i = TAILQ_FIRST(&c->pump)) != NULL)
		item_free(c, i);
	if (c->pump_ends && c->pump_req != NULL &&
	    evhttp_request_get_connection(c->pump_req) == NULL)
		evhttp_request_free(c->pump_req);
	c->pump_req = NULL;
	c->pump_ends = false;
}
