/*
 * status.h - GET {MCP_PATH}/runs/ID: how a run stands, as JSON
 *
 * A status may be megabytes.  It is made on the threads that read logs, once
 * for all who ask for the same at the same time; a large one waits in a file,
 * which is kept for STATUS_KEPT_MS for those who ask next, and sent to all.
 */
#ifndef FRONT_STATUS_H
#define FRONT_STATUS_H

#include "common/base.h"
#include "supervisor/core/lookup.h"
#include "supervisor/http/http.h"

#define STATUS_KEPT_MS 3000
#define STATUS_KEPT_MAX 4

struct event_base;
struct statuses;

struct statuses *statuses_new(
    struct event_base *base, struct http_server *http);
/* statuses_free - who still waits is dropped; before the HTTP server */
void statuses_free(struct statuses *all); /* NULL is fine */

/*
 * statuses_answer - x is answered, later
 *
 *	lookup	what was found; taken over
 *	from	the first artifact of the list
 */
void statuses_answer(struct statuses *all, struct http_exchange *x,
    struct lookup *lookup, const struct lookup_found *found, uint32_t from);

#endif
