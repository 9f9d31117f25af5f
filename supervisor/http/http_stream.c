/*
 * http_stream.c - answers without an end in sight
 *
 * evhttp reports that all was written (or all but the low watermark) through
 * the callback that http_out_bytes gives it with each chunk.
 */
#include "supervisor/http/http_int.h"

#include <event2/http_struct.h>

#include <stdio.h>

#define APPETITE_MIN 4096  /* less is not worth a turn */
#define APPETITE_SMALL 800 /* with its frame below what is always sent */
#define LARGE_PIECES 16    /* a large message is one piece and its wrapping */

void
http_stream_start(struct http_exchange *x, void (*on_writable)(void *))
{
	http_stream_start_as(x, "text/event-stream", NULL, on_writable);
}

void
http_stream_start_as(struct http_exchange *x, const char *type,
    const char *name, void (*on_writable)(void *))
{
	char disposition[80];

	x->on_writable = on_writable;
	x->status = 200;
	if (x->req == NULL)
		return;
	http_add_header(x, "Content-Type", type);
	if (name != NULL) {
		(void)snprintf(disposition, sizeof(disposition),
		    "attachment; filename=\"%s\"", name);
		http_add_header(x, "Content-Disposition", disposition);
	}
	http_add_header(x, "Cache-Control", "no-cache, no-transform");
	http_add_header(x, "X-Accel-Buffering", "no");
	http_add_header(x, "X-Content-Type-Options", "nosniff");
	http_add_header(x, "X-Request-Id", x->id);
	/* HTTP/1.0 has no chunks: there the close is the end. */
	if (x->req->minor == 0) {
		(void)evhttp_remove_header(
		    evhttp_request_get_input_headers(x->req), "Connection");
		x->close = true;
	}
	if (x->close)
		http_add_header(x, "Connection", "close");
	http_stat_count(x->server, 200);
	x->streaming = true;
	x->server->stats.streams++;
	http_conn_set_state(x->conn, HTTP_CONN_STREAM);
	/* Only once the reply has begun a close is noticed; what the client
	 * sends meanwhile stays below the watermark set with BUSY. */
	evhttp_send_reply_start(x->req, 200, "OK");
	bufferevent_setwatermark(x->conn->bev, EV_WRITE, HTTP_STREAM_LOW, 0);
}

/* All but the last byte of what is too large for memory, as a chunk of its
 * own beside evhttp, to which that byte is left: with it comes the callback.
 * In its old place it would keep the memory of all. */
static void
send_large_part(struct http_exchange *x, struct evbuffer *data)
{
	struct evbuffer *out = bufferevent_get_output(x->conn->bev);
	struct evbuffer_iovec pieces[LARGE_PIECES], *end;
	size_t n = evbuffer_get_length(data) - 1;
	struct http_large *large;
	uint8_t last;
	int used;

	used =
	    evbuffer_peek(data, (ev_ssize_t)n + 1, NULL, pieces, LARGE_PIECES);
	if (used < 1 || used > LARGE_PIECES)
		return;
	end = &pieces[used - 1];
	end->iov_len--;
	last = ((const uint8_t *)end->iov_base)[end->iov_len];
	large = http_large_write(x->server, pieces, used);
	if (large == NULL)
		return;
	/* There the pieces are chunks. */
	if (x->req->chunked && x->conn->ssl == NULL)
		(void)evbuffer_add_printf(out, "%zx\r\n", n);
	http_out_large(x->conn, x->req, large);
	http_large_unref(large);
	/* By reference: added, it would be given as much room as the file. */
	if (x->req->chunked && x->conn->ssl == NULL)
		(void)evbuffer_add_reference(out, "\r\n", 2, NULL, NULL);
	(void)evbuffer_drain(data, n + 1);
	(void)evbuffer_add(data, &last, 1);
}

void
http_stream_write(struct http_exchange *x, struct evbuffer *data)
{
	if (x->req == NULL) {
		(void)evbuffer_drain(data, evbuffer_get_length(data));
		return;
	}
	switch (http_out_room(x->server, evbuffer_get_length(data))) {
	case HTTP_ROOM_FILE:
		send_large_part(x, data);
		break;
	case HTTP_ROOM_NONE: /* an answer with a hole is none */
		(void)evbuffer_drain(data, evbuffer_get_length(data));
		http_refuse_later(x->conn, -1);
		return;
	case HTTP_ROOM_MEMORY:
	default:
		break;
	}
	http_out_bytes(x->conn, x->req, data);
}

size_t
http_stream_pending(const struct http_exchange *x)
{
	if (x->conn == NULL)
		return 0;
	return evbuffer_get_length(bufferevent_get_output(x->conn->bev)) +
	    (size_t)x->conn->pump_bytes;
}

size_t
http_stream_appetite(const struct http_exchange *x)
{
	size_t pending = http_stream_pending(x);

	if (http_out_is_much(x->server))
		return pending == 0 ? APPETITE_SMALL : 0;
	return pending + APPETITE_MIN <= HTTP_STREAM_HIGH ?
	    HTTP_STREAM_HIGH - pending :
	    0;
}

void
http_stream_break(struct http_exchange *x)
{
	if (x->conn != NULL)
		http_refuse_later(x->conn, -1);
}

void
http_stream_end(struct http_exchange *x)
{
	struct http_conn *c = x->conn;
	struct evhttp_request *req;

	if (c != NULL) {
		x->server->stats.streams--;
		/* "All written" must mean all again. */
		bufferevent_setwatermark(c->bev, EV_WRITE, 0, 0);
	}
	req = http_exchange_end(x);
	if (req != NULL)
		http_out_end(c, req);
}
