/*
 * run_events.h - records of a run's log as the compatible server's events
 *
 * Each event is a line of JSON with an id: the offset behind its last record,
 * at which a client that lost its connection goes on (Last-Event-ID).  Behind
 * the log come two more, with ids of their own: artifacts, and the end.
 */
#ifndef FRONT_RUN_EVENTS_H
#define FRONT_RUN_EVENTS_H

#include "common/base.h"
#include "common/err.h"
#include "common/uuid.h"
#include "supervisor/core/logs.h"
#include "supervisor/store/store.h"

struct evbuffer;

/* Where a reader is, from its Last-Event-ID. */
enum run_events_stage {
	RUN_EVENTS_LOG,
	RUN_EVENTS_ARTIFACTS, /* all of the log was told */
	RUN_EVENTS_END,
	RUN_EVENTS_OVER
};
struct run_events_at {
	enum run_events_stage stage;
	uint64_t offset; /* in the log */
};

/* run_events_parse_id - "" and NULL: from the start.  ERR_INVAL: it cannot be
 * the id of an event of ours (that one exists there is for the log to say) */
int run_events_parse_id(const char *text, struct run_events_at *at) MUSTCHECK;

/* run_events_add - the events of whole records, the last of which ends at
 * records->next.  Records of one stream that come together are one event. */
void run_events_add(struct evbuffer *out, const struct store_run *row,
    const struct log_records *records);
/* run_events_add_end - what is behind the log, from that stage on; the run's
 * end is on disk */
void run_events_add_end(struct evbuffer *out, const struct store_run *row,
    enum run_events_stage from);
/* run_events_add_error - the log cannot be read on.  It has no id: a client
 * that comes again goes on behind the last event that it has seen. */
void run_events_add_error(struct evbuffer *out, const struct err *why);

#endif
