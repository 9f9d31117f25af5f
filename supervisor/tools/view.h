/*
 * view.h - a run as JSON: for results of tools and for the status
 *
 * Whatever the run printed, was asked for, and left, its view is never above
 * VIEW_MAX bytes as it is sent: each of the three parts has a bound of its own,
 * counted as JSON, shared among what wants a place in it so that what is short
 * is whole.  What is left out is counted, and can be asked for: output by the
 * run's events, artifacts by where their list is to begin.
 */
#ifndef TOOLS_VIEW_H
#define TOOLS_VIEW_H

#include <jansson.h>

#include "common/base.h"
#include "supervisor/core/log_digest.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/core/sched.h"
#include "supervisor/store/store.h"

#define VIEW_OUTPUT_MAX (4608u << 10)    /* of all output, heads and tails */
#define VIEW_WISHES_MAX (1280u << 10)    /* of what the commands are */
#define VIEW_ARTIFACTS_MAX (1280u << 10) /* of their list */
#define VIEW_MAX (7424u << 10)
#define VIEW_LAST_PRINTED 2048 /* of a run that goes on, bytes */
/* A tool's result is made on the loop, in one turn: what a model can use is
 * little, and get_run has pages for the rest. */
#define VIEW_TOOL_PART 8 /* each of its bounds is one of so many */

enum view_size {
	VIEW_FOR_STATUS,
	VIEW_FOR_TOOL
};

struct view_wish {
	enum view_size size;
	enum sched_wait waits;   /* why it is still queued */
	uint32_t artifacts_from; /* the first of the list that is wanted */
	size_t stream_max;       /* bytes of a stream shown; 0: all there is */
};

/* view_run - d is the digest of its log; any thread may call it, for a row
 * that stands still */
json_t *view_run(const struct store_run *row, const struct log_digest *d,
    const struct view_wish *wish);
/* view_so_far - how a run that goes on stands: what it waits for, or how long
 * it has run, which command it is at and when that is killed; with the last
 * tail_max bytes of what that has printed, 0: without.  d NULL: its log cannot
 * be looked at */
json_t *view_so_far(const struct store_run *row, const struct log_digest *d,
    enum sched_wait waits, size_t tail_max);
/* view_artifacts - the first that a run left, as artifacts of o, as a tool's
 * result has them */
void view_artifacts(json_t *o, const struct store_run *row);
/* view_merged - both outputs as they came, into output, output_truncated and
 * output_dropped of o, and output_tail when the middle was left out; as for
 * the streams of a run, each with base64 beside it where it is no text */
void view_merged(json_t *o, const struct log_digest *d, size_t stream_max);
/* view_share - the highest level at which wants that are cut there are at most
 * max together */
size_t view_share(const size_t *wants, size_t n, size_t max);
json_t *view_time(int64_t wall_ms);      /* null for 0 */
json_t *view_uuid(const struct uuid *u); /* null for none */
/* view_base64 - n bytes as a JSON string (RFC 4648, section 4) */
json_t *view_base64(const void *p, size_t n);
/* view_asked - what a command is, into o: whole if it costs at most so much as
 * JSON, which view_wishes_level shares out among those of a run */
void view_asked(json_t *o, const struct store_command *c, size_t level);
size_t view_wishes_level(const struct store_run *row, enum view_size size);
/* view_wait_word - what a queued run waits for; "": nothing */
const char *view_wait_word(enum sched_wait waits);
/* view_note_line_ends - says in o that CRLF was taken as LF */
void view_note_line_ends(json_t *o);
/* view_note_old_files - says in o that a new sandbox has the files of one that
 * was lost */
void view_note_old_files(json_t *o);
/* view_memory_kills - of a command, as memory_kills of o, if there are any */
void view_memory_kills(
    json_t *o, const struct store_command *c, const struct log_command *log);
/* view_left - what a command left behind when it ended, as left_running of o;
 * nothing when that is nothing */
void view_left(
    json_t *o, const struct store_command *c, const struct log_command *log);
/* view_sandbox - one that holds its identifier, as lists show it */
json_t *view_sandbox(const struct sandbox *sb);
const char *view_sandbox_state(const struct sandbox *sb);

#endif
