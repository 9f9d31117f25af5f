/*
 * http_ahead.c - an answer that another thread may send (parcel.h)
 *
 * Its text is made here, headers and all, when the exchange cannot be answered
 * yet.  The exchange is answered as always: with the first word of a handler
 * it is found that the client has the answer already, and that is then the
 * answer, whatever this word was.  evhttp makes one, too, and what it made is
 * taken out of the connection's output: it goes on as if it had sent it.
 *
 * Only where an answer is one piece in the plain, behind which the connection
 * stays open.
 */
#include "supervisor/http/http_int.h"

#include <strings.h>
#include <time.h>

#include <event2/http_struct.h>

#include "common/buf.h"
#include "common/parcel.h"

#define AHEAD_MAX (64u << 10)

static bool
can_go_ahead(const struct http_exchange *x)
{
	const char *connection;

	if (x->req == NULL || x->parcel != NULL || x->close || x->streaming ||
	    x->server->draining || x->conn->ssl != NULL ||
	    x->method == HTTP_METHOD_HEAD || x->req->minor != 1 ||
	    evbuffer_get_length(bufferevent_get_output(x->conn->bev)) > 0)
		return false;
	connection = evhttp_find_header(
	    evhttp_request_get_input_headers(x->req), "Connection");
	return connection == NULL || strcasecmp(connection, "keep-alive") == 0;
}

static void
put_head(
    const struct http_exchange *x, const char *type, size_t n, struct buf *out)
{
	const struct evkeyvalq *headers =
	    evhttp_request_get_output_headers(x->req);
	const struct evkeyval *kv;
	char date[50];

	(void)buf_printf(out, "HTTP/1.1 200 OK\r\n");
	for (kv = headers->tqh_first; kv != NULL; kv = kv->next.tqe_next)
		(void)buf_printf(out, "%s: %s\r\n", kv->key, kv->value);
	(void)evutil_date_rfc1123(date, sizeof(date), NULL);
	(void)buf_printf(out,
	    "Cache-Control: no-store\r\n"
	    "X-Request-Id: %s\r\n"
	    "Content-Type: %s\r\n"
	    "X-Content-Type-Options: nosniff\r\n"
	    "Date: %s\r\n"
	    "Content-Length: %zu\r\n\r\n",
	    x->id, type, date, n);
}

bool
http_reply_ahead(struct http_exchange *x, const char *type, const void *p,
    size_t n, struct parcel *parcel)
{
	struct buf out;

	if (n > AHEAD_MAX || !can_go_ahead(x))
		return false;
	buf_init(&out, 0);
	put_head(x, type, n, &out);
	(void)!buf_append(&out, p, n);
	/* Nothing was consumed: what there is begins where the memory does. */
	if (!parcel_fill(parcel, x->conn->fd, (char *)out.mem, buf_len(&out)))
		return false;
	x->parcel = parcel_ref(parcel);
	return true;
}

static void
end_as_sent(
    struct http_conn *c, struct evhttp_request *req, const char *rest, size_t n)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);

	evhttp_send_reply(req, 200, http_reason(200), NULL);
	(void)evbuffer_unfreeze(out, 1);
	(void)evbuffer_drain(out, evbuffer_get_length(out));
	(void)evbuffer_freeze(out, 1);
	if (n > 0)
		(void)evbuffer_add(out, rest, n);
	http_conn_write_now(c);
}

bool
http_ahead_end(struct http_exchange *x)
{
	struct parcel *parcel = x->parcel;
	struct http_conn *c = x->conn;
	struct evhttp_request *req;
	const char *rest;
	size_t n;

	if (parcel == NULL)
		return false;
	x->parcel = NULL;
	if (parcel_take(parcel, &rest, &n) == 0) {
		parcel_unref(parcel);
		return false;
	}
	x->status = 200;
	req = http_exchange_end(x);
	if (req != NULL)
		end_as_sent(c, req, rest, n);
	parcel_unref(parcel);
	return true;
}
