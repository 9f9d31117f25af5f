/*
 * inflight.h - the tool calls that have not ended, by session and request id
 *
 * A call is counted for its principal until its tool ends it, also when its
 * client is gone: that is what bounds the work one principal can cause.
 */
#ifndef MCP_INFLIGHT_H
#define MCP_INFLIGHT_H

#include "common/base.h"
#include "common/err.h"
#include "common/hashmap.h"
#include "common/principal.h"
#include "supervisor/mcp/session.h"

#define INFLIGHT_PER_PRINCIPAL 1024

struct inflight;
struct inflight_owner;

struct inflight_entry { /* part of a call */
	struct hash_entry by_id;
	uint8_t session[SESSION_ID_LEN];
	char *id;      /* JSON text, owned */
	bool canceled; /* no longer found */
	struct inflight_owner *owner;
};

struct inflight *inflight_new(void);
void inflight_free(struct inflight *t); /* takes out what is in it */

/*
 * inflight_add - entry's session and id are set; who is counted
 *
 * ERR_CONFLICT when a call of this session has this id, ERR_LIMIT when the
 * principal has too many.
 */
int inflight_add(struct inflight *t, struct inflight_entry *entry,
    struct principal *who, struct err *e) MUSTCHECK;
void inflight_remove(struct inflight *t, struct inflight_entry *entry);
struct inflight_entry *inflight_find(
    struct inflight *t, const uint8_t session[SESSION_ID_LEN], const char *id);
struct inflight_entry *inflight_any(struct inflight *t); /* or NULL */

#endif
