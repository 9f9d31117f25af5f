/*
 * http_int.h - what the files of this room share; which calls which stands in
 * http_server.c
 */
#ifndef HTTP_HTTP_INT_H
#define HTTP_HTTP_INT_H

#include <sys/queue.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>

#include "supervisor/http/http.h"
#include "supervisor/http/tls.h"

#define HTTP_LISTENERS_MAX 16
#define HTTP_ID_MAX 24
#define HTTP_GUESTS_MAX 16      /* connections beyond connections_max */
#define HTTP_GUEST_MS 5000      /* in which they say what they want */
#define HTTP_ADDRESSES 32768    /* counted at a time */
#define HTTP_HANDSHAKE_MS 10000 /* at most, for a TLS handshake */
#define HTTP_FREE_FDS 16        /* fewer free descriptors: accept no more */
#define HTTP_READ_SLACK 65536
#define HTTP_BUSY_READ_MAX 4096 /* kept of what comes during an answer */
#define HTTP_INPUT_TOTAL_MAX (64u << 20) /* unfinished requests, all in all */
#define HTTP_MEMORY_MAX (256u << 10)     /* of an answer that waits in memory */
#define HTTP_INPUT_FAIR 65536 /* a connection below it is not cut for that */

/* How far the chunks of a body have come, and what is wrong with them. */
struct http_chunks {
	const char *fault; /* NULL: nothing so far */
	uint64_t left;     /* bytes of the chunk at hand */
	size_t n;          /* of line */
	char line[64];     /* of a size, as far as it came */
	bool done;
};

/* How far the head of a request has come, and what is wrong with it. */
struct http_head {
	const char *fault; /* NULL: nothing so far */
	size_t line;       /* bytes of the line at hand */
	size_t like;       /* of "transfer-encoding:chunked" it began with */
	unsigned int nlines;
	uint8_t last;
	bool done;
	bool is_chunked; /* chunks follow: */
	struct http_chunks chunks;
};

enum http_conn_state {
	HTTP_CONN_FRESH,   /* nothing came yet */
	HTTP_CONN_IDLE,    /* between requests */
	HTTP_CONN_READING, /* a request is on its way in */
	HTTP_CONN_BUSY,    /* a handler has it */
	HTTP_CONN_WRITING, /* the answer is on its way out */
	HTTP_CONN_STREAM
};

/* Whether it waits for its client (http_conn.c). */
enum http_rests {
	HTTP_RESTS_NOT,
	HTTP_RESTS_SILENT,    /* nothing of a request is here */
	HTTP_RESTS_UNFINISHED /* a request is on its way in */
};

struct http_part;

struct http_conn {
	struct http_server *server;
	TAILQ_ENTRY(http_conn) link;
	TAILQ_ENTRY(http_conn) rest_link; /* while it rests */
	struct evhttp_connection *evcon;
	struct bufferevent *bev;
	struct evbuffer_cb_entry *in_cb, *out_cb;
	struct event timer;
	uint64_t deadline_ms;  /* 0: none */
	uint64_t armed_ms;     /* when the timer fires, 0: not armed */
	uint64_t memory_bytes; /* of its output; the rest waits in files: */
	STAILQ_HEAD(, http_part) parts; /* of its output, in order */
	uint64_t rests_since_ms;
	struct http_head head;
	uint64_t drained; /* bytes of answers the kernel took */
	uint64_t drained_seen;
	size_t request_bytes;      /* of the request on its way in */
	uint64_t request_since_ms; /* its first bytes */
	size_t input_bytes;        /* counted in the server's */
	enum http_conn_state state;
	int fd;
	struct netaddr peer;
	bool is_counted; /* by the limiter */
	enum http_rests rests;
	bool guest; /* above connections_max when it came */
	int refuse; /* status to answer and close with; -1: just close */
	const char *refuse_text; /* NULL: the usual one of that status */
	struct principal *who;   /* of its last request; a reference, or NULL */
	/* Of TLS alone: */
	struct ssl_st *ssl; /* the bufferevent's; NULL: not TLS, or closed */
	bool shakes;        /* the handshake is not over */
	void (*on_open)(struct http_conn *c); /* when it is */
	bool is_queued;                       /* for a step of it */
	bool tls_broken;   /* no alert of ours would be read */
	uint64_t tls_seen; /* bytes that had gone out at drained_seen */
	struct event handshake;
	TAILQ_ENTRY(http_conn) handshake_link;
	TAILQ_HEAD(, http_pump_item) pump; /* http_out.c */
	uint64_t pump_bytes;               /* of what waits in it */
	struct evhttp_request *pump_req;   /* that it is of, or NULL */
	struct event pump_timer;
	bool pump_ends; /* the request is evhttp's when all is sent */
	bool pump_was_empty;

	struct http_exchange *x;                   /* while BUSY and STREAM */
	void (*on_close)(struct http_exchange *x); /* its, when this closes */
};
TAILQ_HEAD(http_conn_list, http_conn);

struct http_waiting;
struct http_linger;
TAILQ_HEAD(http_linger_list, http_linger);

struct http_server {
	struct event_base *base;
	struct evhttp *evhttp;
	struct evhttp *evhttp_local; /* of Unix sockets, which are plain */
	struct http_limits limits;
	struct limiter *limiter;
	struct forwarded_proxies proxies;
	http_request_cb on_request;
	http_log_cb on_log;
	void *arg;
	struct evconnlistener *listeners[HTTP_LISTENERS_MAX];
	unsigned int nlisteners;
	bool paused; /* too few descriptors */
	bool draining;
	struct http_conn **by_fd;
	size_t by_fd_len;
	size_t fd_limit;
	int large_fd;                /* directory of large answers; -1: none */
	struct http_conn_list fresh; /* made, not yet adopted */
	struct http_conn_list conns;
	struct http_conn_list resting;    /* nobody is at work for them */
	struct http_conn_list unfinished; /* nor for these */
	struct http_conn_list dead;       /* to be freed after this turn */
	struct event adopt;
	struct event reap;
	struct tls *tls; /* of connections that come; NULL: none */
	struct http_conn_list handshakes; /* that can take a step */
	struct event handshake_turn;
	struct http_linger_list lingers;
	unsigned int nlingers;
	size_t input_bytes;    /* of requests that are not whole, of all */
	uint64_t memory_bytes; /* of answers that wait, of all */
	struct http_waiting *waiting;
	uint32_t id_start;
	uint32_t id_next;
	struct http_stats stats;
	TAILQ_ENTRY(http_server) link;
};

/* An exchange; http_exchange.c writes it, answers set status and streaming. */
struct http_exchange {
	struct http_server *server;
	struct http_conn *conn;     /* NULL: the client is gone */
	struct evhttp_request *req; /* likewise */
	enum http_method method;
	char id[HTTP_ID_MAX];
	const char *path;
	const void *route; /* the path's, or NULL */
	const char *query; /* behind the ?, NULL when none */
	const char *header[HTTP_H_COUNT];
	const char *authority; /* of "GET http://this/path", or NULL */
	int fault_status;      /* 0, or refused for its form with */
	const char *fault_text;
	int status; /* of the answer */
	bool streaming;
	bool close;                 /* say Connection: close */
	void (*on_gone)(void *arg); /* the holder's; may be NULL */
	void (*on_writable)(void *arg);
	void *arg;
	uint64_t began_us;
	char *joined[HTTP_H_COUNT]; /* lines, where there were several */
	struct principal *who;      /* a reference, or NULL */
	struct http_params params;
	struct netaddr client;
	char *seen_host; /* by a proxy of ours, or NULL */
	bool seen_https;
	bool query_parsed;
	struct evkeyvalq parsed_query;
	char target[];
};

/* An error's status, as it is said. */
struct http_refusal {
	int status;
	const char *reason;
	const char *code; /* NULL: never said beside evhttp */
	const char *message;
};

/* http_refuse.c */
/* http_reason - for a status line; NULL: evhttp's own word is right */
const char *http_reason(int status);
/* http_refusal - of this status; 400's for one that has none */
const struct http_refusal *http_refusal(int status);
#define HTTP_PROBLEM_TYPE "application/problem+json"
/* http_problem_member - what "error" is to be, for more to be added to it */
json_t *http_problem_member(
    const char *code, const char *message, const char *id);
/* http_problem_dump - the body of an answer with this status, which the caller
 * frees; it takes error, made by http_problem_member */
char *http_problem_dump(int status, json_t *error);
void http_stat_next_id(struct http_server *s, char out[HTTP_ID_MAX]);
void http_stat_count(struct http_server *s, int status);
/* http_refuse_now - answer in our own words beside evhttp, and close */
void http_refuse_now(struct http_conn *c, int status);
/* http_refuse_later - from a later turn: answer status, close; -1: just close
 */
void http_refuse_later(struct http_conn *c, int status);
void http_refuse_free_lingers(struct http_server *s);

/* http_accept.c */
void http_accept_init(struct http_server *s);
void http_accept_clear(struct http_server *s);
/* http_accept_update - as s->paused and s->draining want it */
void http_accept_update(struct http_server *s);
void http_accept_pause(struct http_server *s);

/* http_head.c */
void http_head_begin(struct http_head *h);
/* http_head_take_end - the last n bytes of in, the next ones of a request; of
 * what follows its head only chunks are looked at.  Then h->fault is NULL, or
 * what was wrong with the head, and h->chunks.fault likewise */
void http_head_take_end(struct http_head *h, struct evbuffer *in, size_t n);

/* http_conn.c */
struct bufferevent *http_conn_new_cb(struct event_base *base, void *arg);
struct bufferevent *http_conn_new_local_cb(struct event_base *base, void *arg);
void http_conn_adopt_cb(evutil_socket_t fd, short what, void *arg);
void http_conn_reap_cb(evutil_socket_t fd, short what, void *arg);
struct http_conn *http_conn_of(
    const struct http_server *s, const struct evhttp_request *req);
void http_conn_set_state(struct http_conn *c, enum http_conn_state state);
void http_conn_request_done_cb(struct evhttp_request *req, void *arg);
/* http_conn_watch - while BUSY: see that the client closes */
void http_conn_watch(const struct http_conn *c);
void http_conn_write_now(const struct http_conn *c); /* what its output has */

/* http_out.c */
void http_out_open(struct http_server *s); /* as s->limits says */
void http_out_close(struct http_server *s);
void http_out_init(struct http_conn *c);
void http_out_clear(struct http_conn *c);
/* Where n bytes more may wait for a client. */
enum http_room {
	HTTP_ROOM_MEMORY,
	HTTP_ROOM_FILE,
	HTTP_ROOM_NONE
};
enum http_room http_out_room(const struct http_server *s, size_t n);
/* http_out_is_much - of what waits in memory: give little more */
bool http_out_is_much(const struct http_server *s);
uint64_t http_out_in_files(const struct http_server *s); /* bytes */
/* http_out_count - the connection's output has this length now */
void http_out_count(struct http_conn *c, size_t length);
/* http_large_write - the pieces, one after the other, in a file of their own;
 * NULL: it must be done in memory */
struct http_large *http_large_write(
    const struct http_server *s, const struct evbuffer_iovec *pieces, int n);
/* http_out_large - it follows what the connection has to send; if that fails
 * the connection is ended.  The caller keeps its reference. */
void http_out_large(
    struct http_conn *c, struct evhttp_request *req, struct http_large *l);
/* http_out_file - likewise n bytes at offset of fd, which it closes */
void http_out_file(struct http_conn *c, struct evhttp_request *req, int fd,
    uint64_t offset, uint64_t n);
/* http_out_bytes - a chunk of a stream; takes all bytes out of data */
void http_out_bytes(
    struct http_conn *c, struct evhttp_request *req, struct evbuffer *data);
/* http_out_end - instead of evhttp_send_reply_end */
void http_out_end(struct http_conn *c, struct evhttp_request *req);

/* http_handshake.c: TLS before the first request, and after the last */
/* http_tls_bufferevent - NULL: out of memory */
struct bufferevent *http_tls_bufferevent(struct http_conn *c, struct tls *tls);
/* http_handshake_begin - nothing on a connection that is plain */
void http_handshake_begin(
    struct http_conn *c, void (*on_open)(struct http_conn *c));
void http_handshake_end(struct http_conn *c); /* it closes */
void http_handshake_turn_cb(evutil_socket_t fd, short what, void *arg);
/* http_tls_say - beside the bufferevent, when it has nothing to send */
void http_tls_say(struct http_conn *c, const char *text, size_t n);
void http_tls_bye(struct http_conn *c);
/* http_tls_written - bytes that the kernel took, for who looks for progress */
uint64_t http_tls_written(const struct http_conn *c);

/* http_exchange.c */
void http_request_cb_from_evhttp(struct evhttp_request *req, void *arg);
/* http_exchange_end - x is counted, logged and gone; the request, or NULL when
 * the client is gone, is evhttp's as soon as it is answered */
struct evhttp_request *http_exchange_end(struct http_exchange *x);

#endif
