/*
 * run_events.h - records of a run's log as the compatible server's events
 *
 * Each event is a line of JSON with an id: the offset behind its last record
 * (and, when it has only a part of that one, which), signed, at which a client
 * that lost its connection goes on (Last-Event-ID).  Behind
 * the log come two more, with ids of their own: artifacts, and the end.
 */
#ifndef FRONT_RUN_EVENTS_H
#define FRONT_RUN_EVENTS_H

#include "common/base.h"
#include "common/err.h"
#include "common/siphash.h"
#include "common/uuid.h"
#include "supervisor/core/logs.h"
#include "supervisor/store/store.h"

struct evbuffer;

/* Where events go, and whose they are. */
struct run_events_to {
	struct evbuffer *out;
	const struct store_run *row;
	const uint8_t *key; /* SIPHASH_KEY_BYTES: signs places of a log */
};

/* Where a reader is, from its Last-Event-ID. */
enum run_events_stage {
	RUN_EVENTS_LOG,
	RUN_EVENTS_ARTIFACTS, /* all of the log was told */
	RUN_EVENTS_END,
	RUN_EVENTS_OVER
};
struct run_events_at {
	enum run_events_stage stage;
	struct log_at log; /* when in the log */
};

/* run_events_parse_id - "" and NULL: from the start.  ERR_INVAL: it is not the
 * id of an event of this run.  A place in the log is signed: within output
 * stands what the run wrote, and that must not be taken for records. */
int run_events_parse_id(const char *text, const struct uuid *run,
    const uint8_t key[SIPHASH_KEY_BYTES], struct run_events_at *at) MUSTCHECK;

/*
 * run_events_add - the events of records
 *
 * Records of one stream that come together are one event.
 *
 *	room	bytes that the events may take, about: output is cut, between
 *		characters, where it would be more
 *	at	becomes the place behind what was told
 */
void run_events_add(const struct run_events_to *to,
    const struct log_records *records, size_t room, struct log_at *at);
/* run_events_add_end - what is behind the log, from that stage on; the run's
 * end is on disk */
void run_events_add_end(struct evbuffer *out, const struct store_run *row,
    enum run_events_stage from);
/* run_events_add_error - the log cannot be read on.  It has no id: a client
 * that comes again goes on behind the last event that it has seen. */
void run_events_add_error(struct evbuffer *out, const struct err *why);

#endif
