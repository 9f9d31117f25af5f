/*
 * watches.h - who wants to hear of which resource or task
 *
 * A change is only marked; watches_tell, once a second, tells whoever watches:
 * so no watcher hears of a thing more often, however often it changes.
 */
#ifndef MCP_WATCHES_H
#define MCP_WATCHES_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "common/principal.h"

#define WATCHES_MAX 256                /* of a watcher */
#define WATCH_TEXT_MAX 2048            /* bytes */
#define WATCH_COST 200                 /* bytes beside the text, about */
#define WATCHER_BYTES_MAX (128u << 10) /* of both, of a watcher */

enum watch_kind {
	WATCH_RESOURCE, /* its text is an address */
	WATCH_TASK      /* an id */
};

struct watch;
struct watches;

/* Who is told; part of it, and its tenant is set.  All zeros besides. */
struct watcher {
	struct tenant_id tenant;
	/* May end the watcher. */
	void (*tell)(struct watcher *w, enum watch_kind kind, const char *text);
	LIST_HEAD(, watch) all;
	size_t n, bytes; /* bytes: texts, and WATCH_COST for each */
};

struct watches *watches_new(void);
void watches_free(struct watches *ws); /* nobody watches any more */
/* watches_add - ERR_LIMIT; what it watches already is no error */
int watches_add(struct watches *ws, struct watcher *w, enum watch_kind kind,
    const char *text, struct err *e) MUSTCHECK;
void watches_drop(struct watches *ws, struct watcher *w, enum watch_kind kind,
    const char *text);
void watches_drop_all(struct watches *ws, struct watcher *w);
/* watches_count - of all watchers */
size_t watches_count(const struct watches *ws);

/* watches_mark - it changed; nothing is told inside */
void watches_mark(struct watches *ws, struct tenant_id tenant,
    enum watch_kind kind, const char *text);
void watches_tell(struct watches *ws);

#endif
