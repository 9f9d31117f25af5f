/*
 * http_reply.c - answers: bytes, files, JSON, errors, streams
 *
 * Each ends the exchange first (http_exchange_end) and hands evhttp's request
 * over last: evhttp may free it at once.
 */
#include "supervisor/http/http_int.h"

#include <stdarg.h>
#include <stdio.h>

#include <event2/http_struct.h>

#include "common/js.h"

#define APPETITE_MIN 4096  /* less is not worth a turn */
#define APPETITE_SMALL 800 /* with its frame below what is always sent */
#define LARGE_PIECES 16    /* a large message is one piece and its wrapping */
#define BODY_DEPTH_MAX 8   /* of http_body_object */

static void
add_common_headers(struct http_exchange *x, int status, const char *type)
{
	x->status = status;
	http_add_header(x, "X-Request-Id", x->id);
	if (type != NULL) {
		http_add_header(x, "Content-Type", type);
		http_add_header(x, "X-Content-Type-Options", "nosniff");
	}
	if (x->close || x->server->draining)
		http_add_header(x, "Connection", "close");
}

static bool
has_body(int status)
{
	return status >= 200 && status != 204 && status != 304;
}

static void
add_length(struct http_exchange *x, uint64_t n)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	http_add_header(x, "Content-Length", text);
}

static void
free_text_cb(const void *p, size_t n, void *arg)
{
	(void)p;
	(void)n;
	free(arg);
}

/* The file that a large answer waits in; NULL: memory will do. */
static struct http_large *
large_answer(const struct http_exchange *x, const void *p, size_t n)
{
	union {
		const void *in;
		void *out; /* libevent's own pieces are not const */
	} base = {.in = p};
	const struct evbuffer_iovec piece = {base.out, n};

	if (http_out_room(x->server, n) != HTTP_ROOM_FILE)
		return NULL;
	return http_large_write(x->server, &piece, 1);
}

static void
reply_waits_too_much(struct http_exchange *x)
{
	http_add_header(x, "Retry-After", "1");
	http_error(x, 503, "busy",
	    "too much waits to be sent to clients that do not read: try again "
	    "later");
}

/* Over TLS libevent tells that "100 Continue" was written by a callback later
 * in the same turn, which evhttp would take for the end of an answer that was
 * begun in between.  So the end of that one comes a turn later, too. */
static void
send_whole(
    struct http_conn *c, struct evhttp_request *req, int status, uint64_t n)
{
	const struct evkeyvalq *in = evhttp_request_get_input_headers(req);
	struct evkeyvalq *out = evhttp_request_get_output_headers(req);
	char text[24];

	if (c->ssl == NULL || evhttp_find_header(in, "Expect") == NULL) {
		evhttp_send_reply(req, status, http_reason(status), NULL);
		http_conn_write_now(c);
		return;
	}
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	if (has_body(status) &&
	    evhttp_find_header(out, "Content-Length") == NULL)
		(void)evhttp_add_header(out, "Content-Length", text);
	evhttp_send_reply_start(req, status, http_reason(status));
	http_out_end(c, req);
}

/* owned: the buffer to free, or NULL when p must be copied. */
static void
reply_bytes(struct http_exchange *x, int status, const char *type,
    const void *p, size_t n, char *owned)
{
	bool sent = false,
	     waits = x->req != NULL && x->method != HTTP_METHOD_HEAD &&
	    type != NULL;
	struct http_large *large = NULL;
	struct http_conn *c = x->conn;
	struct evhttp_request *req;
	struct evbuffer *out;

	if (waits && http_out_room(x->server, n) == HTTP_ROOM_NONE) {
		free(owned);
		reply_waits_too_much(x);
		return;
	}
	if (waits)
		large = large_answer(x, p, n);
	if (large != NULL) {
		free(owned);
		http_reply_large(x, status, type, large);
		http_large_unref(large);
		return;
	}
	add_common_headers(x, status, type);
	if (x->req != NULL && type != NULL && has_body(status)) {
		out = evhttp_request_get_output_buffer(x->req);
		if (x->method == HTTP_METHOD_HEAD)
			add_length(x, n);
		else if (owned == NULL)
			(void)evbuffer_add(out, p, n);
		else if (n > 0 &&
		    evbuffer_add_reference(out, p, n, free_text_cb, owned) == 0)
			sent = true;
	}
	if (!sent)
		free(owned);
	req = http_exchange_end(x);
	if (req != NULL)
		send_whole(c, req, status, type == NULL ? 0 : n);
}

void
http_reply(struct http_exchange *x, int status, const char *type, const void *p,
    size_t n)
{
	reply_bytes(x, status, type, p, n, NULL);
}

void
http_reply_owned(
    struct http_exchange *x, int status, const char *type, char *p, size_t n)
{
	reply_bytes(x, status, type, p, n, p);
}

json_t *
http_body_object(struct http_exchange *x, size_t max)
{
	json_t *o = NULL;
	struct err e;
	size_t n;
	const void *p = http_body(x, &n);

	if (n == 0)
		return json_object();
	if (js_parse(p, n, max, BODY_DEPTH_MAX, &o, &e) != 0) {
		http_error(x, 400, "bad_request", "the body: %s", e.msg);
		return NULL;
	}
	if (json_is_object(o))
		return o;
	json_decref(o);
	http_error(x, 400, "bad_request", "the body: want a JSON object");
	return NULL;
}

void
http_reply_json(struct http_exchange *x, int status, json_t *o)
{
	char *text = js_dump(o);

	json_decref(o);
	http_add_header(x, "Cache-Control", "no-store");
	http_reply_owned(x, status, "application/json", text, strlen(text));
}

/* Headers for n bytes; NULL: no body follows, the answer is complete. */
static struct evhttp_request *
begin_bytes(struct http_exchange *x, int status, const char *type, uint64_t n)
{
	bool body = x->method != HTTP_METHOD_HEAD && n > 0;
	struct http_conn *c = x->conn;
	struct evhttp_request *req;

	add_common_headers(x, status, type);
	add_length(x, n);
	req = http_exchange_end(x);
	if (req == NULL)
		return NULL;
	if (body) {
		evhttp_send_reply_start(req, status, http_reason(status));
		return req;
	}
	send_whole(c, req, status, n);
	return NULL;
}

void
http_reply_file(struct http_exchange *x, int status, const char *type, int fd,
    uint64_t offset, uint64_t n)
{
	struct http_conn *c = x->conn;
	struct evhttp_request *req = begin_bytes(x, status, type, n);

	if (req == NULL) {
		(void)close(fd);
		return;
	}
	http_out_file(c, req, fd, offset, n);
	http_out_end(c, req);
}

void
http_reply_large(
    struct http_exchange *x, int status, const char *type, struct http_large *l)
{
	struct http_conn *c = x->conn;
	struct evhttp_request *req;

	if (http_out_in_files(x->server) > x->server->limits.waiting_files) {
		reply_waits_too_much(x);
		return;
	}
	req = begin_bytes(x, status, type, http_large_size(l));
	if (req == NULL)
		return;
	http_out_large(c, req, l);
	http_out_end(c, req);
}

void
http_busy(struct http_exchange *x)
{
	const struct http_refusal *r = http_refusal(503);

	http_add_header(x, "Retry-After", "1");
	http_error(x, r->status, r->code, "%s", r->message);
}

void
http_add_refusal(
    struct http_exchange *x, const struct err_refusal *why, json_t *to)
{
	char seconds[16];

	(void)snprintf(seconds, sizeof(seconds), "%u", why->wait_s);
	http_add_header(x, "Retry-After", seconds);
	json_object_set_new(to, "quota", json_string(why->quota));
	json_object_set_new(to, "limit", json_integer(why->limit));
	json_object_set_new(to, "used", json_integer(why->used));
	json_object_set_new(to, "retry_after", json_integer(why->wait_s));
}

static void
error_text(struct http_exchange *x, int status, const char *code,
    const char *message, const struct err_refusal *why)
{
	json_t *of = http_problem_member(code, message, x->id);
	char *text;

	if (why != NULL && why->quota != NULL)
		http_add_refusal(x, why, of);
	text = http_problem_dump(status, of);
	http_add_header(x, "Cache-Control", "no-store");
	http_reply_owned(x, status, HTTP_PROBLEM_TYPE, text, strlen(text));
}

void
http_error(
    struct http_exchange *x, int status, const char *code, const char *fmt, ...)
{
	char message[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	/* The analyzer does not see the list of a call that it inlines. */
	// NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized)
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	error_text(x, status, code, message, NULL);
}

static const struct code_status {
	int code;
	int status;
	const char *name;
} code_statuses[] = {
    {ERR_INVAL, 400, "bad_request"},
    {ERR_PARSE, 400, "bad_request"},
    {ERR_NOTFOUND, 404, "not_found"},
    {ERR_LIMIT, 429, "limit"},
    {ERR_QUOTA, 429, "quota_exceeded"},
    {ERR_POLICY, 403, "policy"},
    {ERR_CONFLICT, 409, "conflict"},
    {ERR_WRONG_STATE, 409, "state"},
    {ERR_LOST, 410, "sandbox_lost"},
    {ERR_GONE, 410, "gone"},
    {ERR_OUTPUT_LOST, 410, "output_lost"},
    {ERR_BACKEND, 503, "backend_unavailable"},
    {ERR_DISK_FULL, 507, "disk_full"},
    {ERR_NO_SECRET, 404, "secret_not_found"},
    {ERR_NO_SECRET_KEY, 503, "secret_unavailable"},
};

void
http_error_from(struct http_exchange *x, int code, const struct err *e)
{
	const char *text = e != NULL ? e->msg : "internal error";

	for (size_t i = 0; i < ARRAY_LEN(code_statuses); i++)
		if (code_statuses[i].code == code) {
			if (code == ERR_LIMIT)
				http_add_header(x, "Retry-After", "1");
			error_text(x, code_statuses[i].status,
			    code_statuses[i].name, text,
			    code == ERR_QUOTA && e != NULL ? &e->refusal :
							     NULL);
			return;
		}
	error_text(x, 500, "internal", text, NULL);
}

/* ---- streams: answers without an end in sight */

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

/* Send all but the last byte of data by a file, as a chunk beside evhttp.
 * The last byte is left to evhttp, which calls back for it; it is copied, or
 * it would keep all of data's memory. */
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
