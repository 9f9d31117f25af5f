/* http_int.h - what http.c, http_conn.c, http_refuse.c, http_server.c share. */
#ifndef FRONT_HTTP_INT_H
#define FRONT_HTTP_INT_H

#include <sys/queue.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "supervisor/front/http.h"

#define HTTP_LISTENERS_MAX 16
#define HTTP_FREE_FDS 16 /* fewer free descriptors: accept no more */
#define HTTP_READ_SLACK 65536
#define HTTP_BUSY_READ_MAX 4096 /* kept of what comes during an answer */
#define HTTP_INPUT_TOTAL_MAX (64u << 20) /* unfinished requests, all in all */
#define HTTP_INPUT_FAIR 65536 /* a connection below it is not cut for that */

enum http_conn_state {
	HTTP_CONN_FRESH,   /* nothing came yet */
	HTTP_CONN_IDLE,    /* between requests */
	HTTP_CONN_READING, /* a request is on its way in */
	HTTP_CONN_BUSY,    /* a handler has it */
	HTTP_CONN_WRITING, /* the answer is on its way out */
	HTTP_CONN_STREAM
};

struct http_conn {
	struct http_server *server;
	TAILQ_ENTRY(http_conn) link;
	struct evhttp_connection *evcon;
	struct bufferevent *bev;
	struct evbuffer_cb_entry *in_cb, *out_cb;
	struct event timer;
	uint64_t deadline_ms; /* 0: none */
	uint64_t armed_ms;    /* when the timer fires, 0: not armed */
	uint64_t drained;     /* bytes of answers the kernel took */
	uint64_t drained_seen;
	size_t request_bytes; /* of the request on its way in */
	enum http_conn_state state;
	int fd;
	int refuse; /* status to answer and close with; -1: just close */
	struct http_exchange *x; /* while BUSY and STREAM */
};
TAILQ_HEAD(http_conn_list, http_conn);

struct http_linger;
TAILQ_HEAD(http_linger_list, http_linger);

struct http_server {
	struct event_base *base;
	struct evhttp *evhttp;
	struct http_limits limits;
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
	struct http_conn_list fresh; /* made, not yet adopted */
	struct http_conn_list conns;
	struct http_conn_list dead; /* to be freed after this turn */
	struct event adopt;
	struct event reap;
	struct http_linger_list lingers;
	unsigned int nlingers;
	size_t input_bytes;
	uint32_t id_start;
	uint32_t id_next;
	struct http_stats stats;
	TAILQ_ENTRY(http_server) link;
};

/* http_conn.c */
struct bufferevent *http_conn_new_cb(struct event_base *base, void *arg);
void http_conn_adopt_cb(evutil_socket_t fd, short what, void *arg);
void http_conn_reap_cb(evutil_socket_t fd, short what, void *arg);
struct http_conn *http_conn_of(
    const struct http_server *s, const struct evhttp_request *req);
void http_conn_set_state(struct http_conn *c, enum http_conn_state state);
void http_conn_request_done_cb(struct evhttp_request *req, void *arg);
/* http_conn_refuse_later - from a later turn: answer status, close; -1: just
 * close */
void http_conn_refuse_later(struct http_conn *c, int status);

/* http_refuse.c */
/* http_refuse_now - answer in our own words beside evhttp, and close */
void http_refuse_now(struct http_conn *c, int status);
void http_refuse_free_lingers(struct http_server *s);
const char *http_reason(int status);

/* http_server.c */
void http_server_pause(struct http_server *s);
void http_server_next_id(struct http_server *s, char out[HTTP_ID_MAX]);
void http_server_count(struct http_server *s, int status);

/* http.c */
void http_exchange_gone(struct http_exchange *x);
void http_request_cb_from_evhttp(struct evhttp_request *req, void *arg);

#endif
