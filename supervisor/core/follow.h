/*
 * follow.h - going through a run's log at one's own pace, and to its end
 *
 * The run may wait, run, or have ended long ago: the reader sees the same
 * records in the same order, from any offset on.  It asks for the next ones
 * when it has use for them; nothing is read or kept for it before.  An offset
 * behind a record is where another reader can go on, in another life of the
 * server, too.
 */
#ifndef CORE_FOLLOW_H
#define CORE_FOLLOW_H

#include "common/base.h"
#include "common/err.h"
#include "common/principal.h"
#include "common/uuid.h"
#include "supervisor/core/logs.h"
#include "supervisor/store/store.h"

struct core;
struct follow;

struct follow_ops {
	/* The run was found (rc 0), or ERR_NOTFOUND, ERR_INVAL (there is no
	 * record at that offset), ERR_SYS, ERR_DB. */
	void (*on_open)(
	    struct follow *f, int rc, const struct err *why, void *arg);
	/* The answer to follow_next: whole records; or NULL and no reason:
	 * there are no more, and the run's end is on disk; or NULL and why
	 * the log cannot be read now (ERR_SYS, ERR_LIMIT) or ever
	 * (ERR_PROTO).  Only after records it goes on. */
	void (*on_next)(struct follow *f, const struct log_records *records,
	    const struct err *why, void *arg);
};

/* An offset behind whatever the log has: only its end is waited for. */
#define FOLLOW_END UINT64_MAX

/*
 * follow_open - of a run of who's tenant, from that place on
 *
 * Nothing is called inside.  ops is kept by pointer.
 */
struct follow *follow_open(struct core *c, const struct principal *who,
    const struct uuid *run, const struct log_at *at,
    const struct follow_ops *ops, void *arg);
/* follow_next - once, after on_open and after each on_next with records; at
 * most max bytes of them (log_view_read) */
void follow_next(struct follow *f, size_t max);
/* follow_go_back - in on_next: the records were taken up to this place only */
void follow_go_back(struct follow *f, const struct log_at *at);
/* follow_row - the run, as far as it is known; after on_open */
const struct store_run *follow_row(const struct follow *f);
void follow_close(struct follow *f); /* at any time, also inside; NULL too */

#endif
