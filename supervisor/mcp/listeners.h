/*
 * listeners.h - who is told of what belongs to no request
 *
 * Until 2025-11-25 a session listens on streams that it opens with GET (or on
 * its only one, of HTTP+SSE), and subscribes to resources by requests of their
 * own; what a session has said, its log level too, is kept while it has a
 * stream, and for ten minutes without.  Since 2026-07-28 a request,
 * subscriptions/listen, is both (subscriptions.h).
 *
 * Notifications leave once a second, from the tick.  A message goes to the
 * session's newest stream, and to nobody when it has none.
 */
#ifndef MCP_LISTENERS_H
#define MCP_LISTENERS_H

#include <sys/queue.h>

#include "supervisor/mcp/provider.h"
#include "supervisor/mcp/watches.h"

#define LISTENERS_STREAMS 4      /* of a session */
#define LISTENERS_IDLE_MS 600000 /* it is known without a stream */
#define LISTENERS_IDLE_MAX 1024  /* such sessions of a principal */
/* Of a principal's subscriptions in sessions (struct watcher's bytes) */
#define LISTENERS_BYTES_MAX (1u << 20)

enum listen_list {
	LISTEN_TOOLS,
	LISTEN_PROMPTS,
	LISTEN_LISTS
};

struct listeners; /* of a server */

struct listeners *listeners_new(void);
void listeners_free(struct listeners *ls);
/* listeners_tick - tells what has changed, forgets who is away */
void listeners_tick(struct mcp *m, uint64_t now_ms);
/* listeners_drain - streams of sessions end, and subscriptions */
void listeners_drain(struct mcp *m);
struct watches *listeners_watches(struct mcp *m);

/* ---- sessions; c->session is whose */

/* listeners_on_get - x, which takes a stream, is one from now on, or refused */
void listeners_on_get(struct mcp_exchange *x, const struct mcp_context *c);
/* listeners_join - the stream of x, which is open, is one of the session's
 * until listeners_leave, by whoever waits for x.  on_end: the session, or the
 * server, ends: it is to be left inside. */
struct listen_stream;
struct listen_stream *listeners_join(struct mcp_exchange *x,
    const struct mcp_context *c, void (*on_end)(void *arg), void *arg);
void listeners_leave(struct listen_stream *t);
/* listeners_watch - of an address that c->who may see; ERR_LIMIT */
int listeners_watch(struct mcp *m, const struct mcp_context *c, const char *uri,
    struct err *e) MUSTCHECK;
void listeners_unwatch(
    struct mcp *m, const struct mcp_context *c, const char *uri);
void listeners_set_level(
    struct mcp *m, const struct mcp_context *c, enum mcp_level level);
/* listeners_level - enum mcp_level, or LEVEL_NONE (level.h) */
int listeners_level(const struct mcp *m, const uint8_t session[SESSION_ID_LEN]);
/* listeners_end - the session has: its streams end */
void listeners_end(struct mcp *m, const uint8_t session[SESSION_ID_LEN]);

/* ---- subscriptions (subscriptions.h) */

struct listen_member { /* of a list of those that are told of lists */
	LIST_ENTRY(listen_member) link;
	unsigned int wants; /* 1 << enum listen_list, OR-ed */
	void (*tell)(struct listen_member *l, enum listen_list what);
	void (*end)(struct listen_member *l); /* the server does */
};
void listeners_add(struct mcp *m, struct listen_member *l);
void listeners_remove(struct listen_member *l);

/* listeners_notice - the method that tells of it */
const char *listeners_notice(enum listen_list what);

#endif
