/*
 * http.h - HTTP/1.1 requests and answers, over libevent's evhttp
 *
 * What evhttp leaves open is closed here: a request must arrive whole within
 * its time and size, a connection that says nothing is ended, what is
 * malformed or ambiguous (two lengths, an odd header name) is marked as a
 * fault, every error is a problem in JSON (RFC 9457), and what one client can
 * make us keep in memory is bounded.  Nobody else knows evhttp.
 *
 * An exchange is one request and its answer.  The handler gets it, and must
 * end it exactly once, at once or later, with one of http_reply*, http_error*,
 * http_stream_end or http_drop; it is gone then.  Should the client go away in
 * between, on_gone is called and the exchange stays valid: ending it then only
 * frees it.
 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"
#include "common/principal.h"
#include "supervisor/http/forwarded.h"
#include "supervisor/http/limiter.h"
#include "supervisor/http/router.h"

struct event_base;
struct evbuffer;
struct http_server;
struct http_exchange;
struct http_large;
struct tls;
struct sockaddr;
struct sockaddr_storage;

enum http_method { /* bits, for tables of what is allowed */
	HTTP_METHOD_GET = 1,
	HTTP_METHOD_HEAD = 2,
	HTTP_METHOD_POST = 4,
	HTTP_METHOD_DELETE = 8,
	HTTP_METHOD_OPTIONS = 16,
	HTTP_METHOD_PATCH = 32,
	HTTP_METHOD_PUT = 64,
	HTTP_METHOD_OTHER = 128
};

/* Headers that somebody reads.  Those up to HTTP_H_SINGLE_MAX may come once
 * only; further lines of those up to HTTP_H_JOINED_MAX, which are lists, are
 * joined, of others the first counts; two traceparents are as none. */
enum http_header {
	HTTP_H_HOST,
	HTTP_H_ORIGIN,
	HTTP_H_AUTHORIZATION,
	HTTP_H_CONTENT_LENGTH,
	HTTP_H_TRANSFER_ENCODING,
	HTTP_H_CONTENT_TYPE,
	HTTP_H_SESSION,
	HTTP_H_PROTOCOL,
	HTTP_H_LAST_EVENT_ID,
	HTTP_H_MCP_METHOD,
	HTTP_H_MCP_NAME,
	HTTP_H_SINGLE_MAX = HTTP_H_MCP_NAME,
	HTTP_H_ACCEPT,
	HTTP_H_IF_MATCH,
	HTTP_H_IF_NONE_MATCH,
	HTTP_H_JOINED_MAX = HTTP_H_IF_NONE_MATCH,
	HTTP_H_RANGE,
	HTTP_H_IF_RANGE,
	HTTP_H_IF_MODIFIED_SINCE,
	HTTP_H_TRACEPARENT,
	HTTP_H_COUNT
};

#define HTTP_HEADERS_MAX 100 /* lines of a request */

struct http_limits {
	size_t head_max;     /* bytes of request line and headers */
	size_t body_max;     /* bytes */
	uint32_t request_ms; /* from the first byte to the last */
	uint32_t idle_ms;    /* between requests, and without progress of an
			      * answer that the client does not read */
	uint32_t connections_max;
	size_t waiting_memory;  /* bytes of answers that wait in memory, over
				 * all connections, before larger ones are
				 * put into files; twice that is refused */
	uint64_t waiting_files; /* bytes of answers that wait in files; more
				 * is refused */
	const char *large_dir;  /* for answers too large to wait in memory, in
				 * files without a name; NULL: they do wait
				 * there.  Looked at by http_server_new only */
};

struct http_stats { /* since start, but for connections and streams */
	uint64_t requests;
	uint64_t by_class[6]; /* [2]: answers 200 to 299 */
	uint64_t connections;
	uint64_t streams;
	uint64_t displaced;      /* closed for a new connection, since start */
	uint64_t waiting_memory; /* bytes of answers that wait */
	uint64_t waiting_files;  /* of those in files */
	uint64_t refused[LIMITER_REASONS]; /* by limits per address */
	uint64_t handshakes;               /* of TLS, since start */
	uint64_t handshakes_failed;
};

/* What can be said of an exchange when it has ended. */
struct http_log_line {
	const char *id;
	const char *path; /* as sent */
	const struct netaddr *client;
	const void *route; /* as of the last http_route; NULL: none */
	enum http_method method;
	int status;
	uint64_t us; /* from the whole request to the answer */
	bool gone;   /* the client was, and saw no answer */
};

/* ---- a server */

typedef void (*http_request_cb)(struct http_exchange *x, void *arg);
typedef void (*http_log_cb)(const struct http_log_line *line, void *arg);

struct http_server *http_server_new(struct event_base *base,
    const struct http_limits *limits, http_request_cb on_request, void *arg);
void http_server_free(struct http_server *s); /* closes all; NULL is fine */
/* http_server_listen - accept on fd, a listening socket, from now on ours */
int http_server_listen(struct http_server *s, int fd, struct err *e) MUSTCHECK;
/* http_server_drain - accept no more, close what is idle; every answer from
 * now on closes its connection */
void http_server_drain(struct http_server *s);
/* http_server_end_of - connections whose last request was this principal's are
 * closed, from a later turn: who holds one hears that the client is gone */
void http_server_end_of(struct http_server *s, const struct principal *who);
/* http_server_tick - once a second: takes up accepting again when
 * descriptors are free */
void http_server_tick(struct http_server *s);
/* http_server_set_log - on_log with http_server_new's arg; NULL: no log */
void http_server_set_log(struct http_server *s, http_log_cb on_log);
/* http_server_set_rates, http_server_set_proxies - from now on; before the
 * first of them there are no limits per address, and no proxies */
void http_server_set_rates(
    struct http_server *s, const struct limiter_rates *rates);
void http_server_set_proxies(
    struct http_server *s, const struct forwarded_proxies *proxies);
/* http_server_set_tls - connections that come from now on speak TLS; tls is the
 * server's.  Those that are there keep what they have */
void http_server_set_tls(struct http_server *s, struct tls *tls);
/* http_server_limiter - the server's own, for who checks logins */
struct limiter *http_server_limiter(struct http_server *s);
void http_server_stats(const struct http_server *s, struct http_stats *out);

/* ---- a request */

/* Texts are the exchange's: until it is ended, and those marked "client" only
 * while the client is there (NULL then, or when there is none). */
enum http_method http_method(const struct http_exchange *x);
const char *http_id(const struct http_exchange *x);   /* X-Request-Id */
const char *http_path(const struct http_exchange *x); /* as sent; "" if bad */
/* client; of each header that enum http_header names */
const char *http_header(const struct http_exchange *x, enum http_header h);
/* client; of any header: its first line, and how many there are */
const char *http_header_named(
    const struct http_exchange *x, const char *name, unsigned int *lines);
/* client; the Host header, or the authority of "GET http://this/path" */
const char *http_host(const struct http_exchange *x);
/* http_peer - who connected; NULL when the client is gone */
const struct netaddr *http_peer(const struct http_exchange *x);
/* http_client - who asks: the peer, or whom a proxy of ours names.  Stays when
 * the client goes */
const struct netaddr *http_client(const struct http_exchange *x);
/* http_seen_host, http_seen_scheme - by which name and how ("http", "https")
 * the client reached this server, as a proxy of ours says; else http_host and
 * the connection's own */
const char *http_seen_host(const struct http_exchange *x); /* client */
const char *http_seen_scheme(const struct http_exchange *x);
/* http_admit - 0; or how many seconds the client must wait, for it asked too
 * often: to be refused with 429 before anything else.  Once per exchange */
uint32_t http_admit(const struct http_exchange *x) MUSTCHECK;
/* http_fault - 0, or the status to refuse it with for its form, with *text */
int http_fault(const struct http_exchange *x, const char **text);
/* http_query - a member of the query, decoded; NULL when there is none */
const char *http_query(struct http_exchange *x, const char *name);
/* http_query_text - all of the query as it was sent; NULL when there is none */
const char *http_query_text(const struct http_exchange *x);
/* http_route - find the path's route and keep its parameters in x (router.h);
 * http_param gives them, NULL when the route has none of this name */
enum http_fit http_route(struct http_exchange *x,
    const struct http_router *router, const void **route);
const char *http_param(const struct http_exchange *x, const char *name);
/* client; the body in one piece */
const void *http_body(struct http_exchange *x, size_t *len);
/* client; how many bytes it has */
size_t http_body_bytes(const struct http_exchange *x);
/* http_take_body - the body in whatever pieces it came in, the caller's from
 * now on, also when the client goes; x has an empty one then */
struct evbuffer *http_take_body(struct http_exchange *x);
/* http_local_address - where the connection came in; NULL when unknown */
const struct sockaddr *http_local_address(
    const struct http_exchange *x, struct sockaddr_storage *out);
/* http_peer_user - over a Unix socket: which user of this machine; false over
 * any other */
bool http_peer_user(const struct http_exchange *x, uid_t *user);
/* http_set_principal - whose request it is, from now on; it takes a reference
 * that lives as long as the exchange */
void http_set_principal(struct http_exchange *x, struct principal *who);
/* http_principal - NULL: nobody said */
struct principal *http_principal(const struct http_exchange *x);
/* http_hold - the handler will answer later; on_gone may be NULL.  Unless it is
 * watched, that a client left is seen when something is written to it */
void http_hold(struct http_exchange *x, void (*on_gone)(void *), void *arg);
/* http_watch - on_gone comes also while nothing of the answer is written, as
 * soon as the client closes the connection or its side of it */
void http_watch(const struct http_exchange *x);
bool http_is_gone(const struct http_exchange *x);
/* http_is_guest - all connections_max are taken, and this is one of the few
 * beyond: only what is cheap and must work even then is to be answered, the
 * rest with http_busy */
bool http_is_guest(const struct http_exchange *x);

/* ---- an answer */

/* http_add_header - to the answer; value must have no line breaks */
void http_add_header(
    struct http_exchange *x, const char *name, const char *value);
/* Answers.  HEAD gets the headers alone.  type NULL: no body.  The text of
 * http_reply is copied; http_reply_owned frees it when sent. */
void http_reply(struct http_exchange *x, int status, const char *type,
    const void *p, size_t n);
void http_reply_owned(
    struct http_exchange *x, int status, const char *type, char *p, size_t n);
/* http_reply_file - n bytes at offset of fd, which it closes */
void http_reply_file(struct http_exchange *x, int status, const char *type,
    int fd, uint64_t offset, uint64_t n);
/* http_busy - 503, too many connections */
void http_busy(struct http_exchange *x);
/*
 * An answer that waits in a file, for more than one exchange.
 *
 *	http_large_file	an empty file without a name, or -1: there is none
 *	http_large_new	its n bytes from now on; fd is the answer's.  One
 *			reference
 *	http_reply_large  sends it; it takes a reference of its own
 */
int http_large_file(const struct http_server *s);
struct http_large *http_large_new(
    const struct http_server *s, int fd, uint64_t n);
uint64_t http_large_size(const struct http_large *l);
void http_large_unref(struct http_large *l); /* NULL is fine */
void http_reply_large(struct http_exchange *x, int status, const char *type,
    struct http_large *l);
/* http_buffer_new - an empty one; out of memory ends the process */
struct evbuffer *http_buffer_new(void);
/* http_body_object - the body as an object of at most max bytes; an empty one
 * is {}.  NULL: x was answered with 400 */
json_t *http_body_object(struct http_exchange *x, size_t max) MUSTCHECK;
/* http_reply_json - o, which it takes, as the body; nobody is to keep it */
void http_reply_json(struct http_exchange *x, int status, json_t *o);
/* http_error - application/problem+json (RFC 9457), with code and request_id
 * as members and once more in "error":{"code","message","request_id"} */
void http_error(struct http_exchange *x, int status, const char *code,
    const char *fmt, ...) PRINTF(4, 5);
/* http_error_from - the same, from a code of err.h; of ERR_QUOTA with what
 * http_add_refusal adds, of ERR_LIMIT with Retry-After */
void http_error_from(struct http_exchange *x, int code, const struct err *e);
/* http_add_refusal - Retry-After, and to an object quota, limit, used and
 * retry_after */
void http_add_refusal(
    struct http_exchange *x, const struct err_refusal *why, json_t *to);
/* http_drop - end it without an answer: the client is gone */
void http_drop(struct http_exchange *x);

/*
 * Event streams.  http_stream_start answers 200; the holder has set on_gone
 * with http_hold.  on_writable (may be NULL) is called when the client has
 * read so much that fewer than HTTP_STREAM_LOW bytes wait.  http_stream_write
 * takes all bytes out of data.  A client that is gone swallows everything.
 */
#define HTTP_STREAM_HIGH 16384 /* writers of ours stop here */
#define HTTP_STREAM_LOW 8192
void http_stream_start(struct http_exchange *x, void (*on_writable)(void *));
/* http_stream_start_as - a stream of another media type; name: what a browser
 * is to call the file, NULL: none */
void http_stream_start_as(struct http_exchange *x, const char *type,
    const char *name, void (*on_writable)(void *));
/* http_stream_break - it cannot go on: the connection ends without the
 * stream's end, so that nobody takes it for whole; on_gone is called later */
void http_stream_break(struct http_exchange *x);
void http_stream_write(struct http_exchange *x, struct evbuffer *data);
/* http_stream_appetite - how many bytes to write next: what is missing to
 * HTTP_STREAM_HIGH; 0: none, on_writable will say when.  When too much waits
 * over all connections, little, and only for a client that has taken all. */
size_t http_stream_appetite(const struct http_exchange *x);
size_t http_stream_pending(const struct http_exchange *x); /* bytes */
void http_stream_end(struct http_exchange *x);

#endif
