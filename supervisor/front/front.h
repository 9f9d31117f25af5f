/*
 * front.h - what the parts of the front share, and its life
 *
 * front_new ties core, tools, MCP library and HTTP server together; requests
 * are checked (check.h), routed by a table (routes.c) and answered by a
 * handler.
 */
#ifndef FRONT_FRONT_H
#define FRONT_FRONT_H

#include <sys/queue.h>

#include "common/conf.h"
#include "common/embed.h"
#include "common/err.h"
#include "common/siphash.h"
#include "supervisor/core/core.h"
#include "supervisor/front/check.h"
#include "supervisor/http/http.h"
#include "supervisor/front/mcp_adapter.h"
#include "supervisor/mcp/mcp.h"
#include "supervisor/store/store.h"
#include "supervisor/tools/tools.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1.0"
#endif

#define FRONT_HEARTBEAT_MS 15000
#define FRONT_HEAD_MAX 16384
/* Answers that wait for their clients, over all connections. */
#define FRONT_WAITING_MEMORY (16u << 20)
#define FRONT_WAITING_FILES (UINT64_C(1) << 30)

LIST_HEAD(exports_list, export);

struct front {
	struct event_base *base;
	struct conf *conf;
	struct core *core;         /* not ours */
	struct webhooks *webhooks; /* not ours */
	struct check *check;
	struct http_router *router;
	struct http_server *http;
	struct mcp *mcp;
	struct mcp_adapter mcp_adapter;
	struct statuses *statuses;
	struct late_refusals *refusals;
	struct bodies *bodies;
	struct event *tick;
	struct tools *tools;
	struct tool_tasks *tasks;
	struct crew_members *crew_members;
	struct oauth *oauth;           /* NULL: there is no issuer */
	struct postbox *postbox;       /* NULL: nothing is sent to others */
	struct deliveries *deliveries; /* NULL: no webhooks */
	struct spans *spans;           /* NULL: no OTLP_ENDPOINT */
	struct principal *operator;    /* who came by the admin socket */
	char *mcp_path;     /* without a slash at the end; "" for "/" */
	char *instructions; /* for models (instructions.h) */
	struct sse_streams *sse;
	struct exports_list exports;
	uint8_t event_key[SIPHASH_KEY_BYTES]; /* signs places in logs */
	uint32_t heartbeat_ms;                /* of silent event streams */
	bool draining;
	const char *(*route_name)(unsigned int number); /* routes.h */
	bool logs_requests;
	void (*on_tick)(void *arg);
	void *on_tick_arg;
};

struct front_parts {
	struct event_base *base;
	struct conf *conf;         /* kept */
	struct core *core;         /* kept */
	struct webhooks *webhooks; /* kept; NULL: none */
	const struct embed_file *tools;
	const char *dir;            /* the front's own; NULL: none */
	const uint8_t *session_key; /* FRONT_KEY_BYTES, copied */
	uint32_t heartbeat_ms;      /* of silent event streams */
	void (*on_tick)(void *arg); /* once a second; may be NULL */
	void *on_tick_arg;
};
#define FRONT_KEY_BYTES 32

/* front_new - ERR_INVAL when a tool's definition is not usable */
int front_new(const struct front_parts *parts, struct front **out,
    struct err *e) MUSTCHECK;
/* front_free - closes all connections; no call may be in flight */
void front_free(struct front *f);
/* front_may_listen - ERR_POLICY: the socket can be reached from other machines,
 * and everybody could use it: there is neither tenant nor token */
int front_may_listen(const struct front *f, int fd, struct err *e) MUSTCHECK;
/* front_listen - fd is a listening socket, from now on ours; the same */
int front_listen(struct front *f, int fd, struct err *e) MUSTCHECK;
void front_reload(struct front *f); /* f->conf has new values */
/* front_set_tls - before front_listen, or again with newer files; tls is the
 * front's */
void front_set_tls(struct front *f, struct tls *tls);
/* front_drain - accept no more, end event streams; calls in flight go on, and
 * on_idle is called once there are none */
void front_drain(struct front *f, void (*on_idle)(void *arg), void *arg);
/* front_is_quiet - nothing is waiting to be sent */
bool front_is_quiet(const struct front *f);
uint64_t front_requests(const struct front *f); /* answered since the start */

/* What others count goes into the cells of common/metric.h. */

/* metrics_begin - the front was started */
void metrics_begin(void);
/* metrics_note - with each tick: so much at most is lost by a front that is
 * killed */
void metrics_note(struct front *f);
/* metrics_on_request - one was answered; route: routes_number */
void metrics_on_request(unsigned int route, uint64_t us);

/* front_open_mcp - f->mcp can be asked (mcp_endpoint.c) */
void front_open_mcp(struct front *f);
/* front_mcp_error - on the MCP path before the library is asked: a JSON-RPC
 * error without an id */
void front_mcp_error(
    struct http_exchange *x, int status, int code, const char *message);
/* front_greet - a short page for who opens the server in a browser; false: this
 * is none, and x was not answered */
bool front_greet(const struct front *f, struct http_exchange *x);

#endif
