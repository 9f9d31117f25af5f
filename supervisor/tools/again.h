/*
 * again.h - a call's answer about a run, said again for a client that lost it
 *
 * The call sets a token (offer.h) as soon as its run is known: which run, and
 * until when the answer waits for its end.  A client that comes back has a new
 * call made with the token, perhaps in another process; again_start finds the
 * run, in memory or in the history, waits for what the first call waited for,
 * and gives what that would have answered from.  Part of a tool call's state.
 */
#ifndef TOOLS_AGAIN_H
#define TOOLS_AGAIN_H

#include "common/base.h"
#include "common/uuid.h"
#include "supervisor/core/lookup.h"
#include "supervisor/tools/tool.h"
#include "supervisor/tools/wait.h"

#define AGAIN_TEXT_MAX 31

struct again_token {
	struct uuid run;
	/* Until when its end is waited for: since 1970; AGAIN_TO_ITS_END, or
	 * AGAIN_AT_ONCE: it is not. */
	int64_t until_ms;
	uint64_t bits;                 /* the tool's own, as text */
	bool is_structured;            /* its client asked for structure */
	char text[AGAIN_TEXT_MAX + 1]; /* "": none */
};
#define AGAIN_TO_ITS_END 0
#define AGAIN_AT_ONCE (-1)

/* again_set - the token of t.  A text that is longer than there is room: the
 * answer is said once */
void again_set(struct tool_call *t, const struct uuid *run, int64_t until_ms,
    uint64_t bits, const char *text);
/* again_write - the same as bytes, to be kept; how many */
size_t again_write(const struct again_token *token, uint8_t out[MCP_TOKEN_MAX]);
/* again_until - of a deadline as in common/call.h; 0: AGAIN_TO_ITS_END */
int64_t again_until(uint64_t deadline_ms);
/* again_deadline - the other way; of one that is over, now */
uint64_t again_deadline(int64_t until_ms);
/* again_read - what t, which a token was given to, is to say; also whether it
 * has structured content.  ERR_NOTFOUND: it is none that was set here */
int again_read(struct tool_call *t, const void *token, size_t n,
    struct again_token *out, struct err *e) MUSTCHECK;

struct again;
/* row NULL: WAIT_FAILED, and why; d: WAIT_IS_OVER,
 * and WAIT_TIMED_OUT as wait.h has it */
typedef void (*again_cb)(struct again *a, enum wait_outcome outcome,
    const struct store_run *row, const struct log_digest *d,
    const struct err *why);

struct again {
	struct wait wait; /* first */
	struct tool_call *t;
	struct again_token token;
	again_cb cb;
	struct lookup *lookup;
	struct lookup_found found;
	struct log_request *request;
};

/* again_start - cb is called once, never inside; merge: how it wants outputs in
 * the digest */
void again_start(struct again *a, struct tool_call *t,
    const struct again_token *token, enum run_merge merge, again_cb cb);
/* again_never_began - as run_never_began, of who is history, too: 0, or the
 * code of what kept it from beginning */
int again_never_began(const struct again *a, const struct store_run *row);
void again_clear(struct again *a); /* at any time, as wait_clear */

#endif
