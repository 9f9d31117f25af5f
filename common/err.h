/* err.h - the one error type: a code and a text for a person to act on. */
#ifndef COMMON_ERR_H
#define COMMON_ERR_H

#include "common/base.h"

enum err_code {         /* all negative, 0 is success */
	ERR_SYS = -1,   /* a system call failed; the text has errno */
	ERR_INVAL = -2, /* the caller's data is wrong */
	ERR_PROTO = -3, /* a peer broke the protocol */
	ERR_PARSE = -4, /* text that does not parse */
	ERR_NOTFOUND = -5,
	ERR_DB = -6,
	ERR_LIMIT = -7,   /* over a configured limit */
	ERR_BACKEND = -8, /* the engine is away or refused */
	ERR_POLICY = -9,  /* not allowed by the worker's policy */
	ERR_CONFLICT = -10,
	ERR_WRONG_STATE = -11,   /* not possible in this state */
	ERR_LOST = -12,          /* the sandbox is gone */
	ERR_DAMAGED = -13,       /* the database: starting again cannot help */
	ERR_DISK_FULL = -14,     /* less room than the reserve */
	ERR_GONE = -15,          /* it was there, and gave room to others */
	ERR_QUOTA = -16,         /* its tenant may have no more of it */
	ERR_NO_SECRET = -17,     /* its tenant has none of that name */
	ERR_NO_SECRET_KEY = -18, /* it cannot be unsealed */
	ERR_OUTPUT_LOST = -19    /* a disk did not keep it */
};

#define ERR_TEXT_MAX 512

/* Of ERR_QUOTA, for programs: what the text says to people. */
struct err_refusal {
	const char *quota; /* its key, static text; NULL: nothing is known */
	int64_t limit;
	int64_t used;
	uint32_t wait_s; /* before it is worth another try */
};

/* Lives on the stack and owns nothing.  Filled only on failure. */
struct err {
	int code;
	struct err_refusal refusal;
	char msg[ERR_TEXT_MAX];
};

/*
 * err_set - fill *e and return code, for "return err_set(e, ...)"
 *
 * The text names the thing and what to do; it has no final stop.  Longer
 * texts are cut.  e may be NULL.
 */
int err_set(struct err *e, int code, const char *fmt, ...) PRINTF(3, 4);
/* The same, so that a compiler that cannot look inside sees which code comes
 * back: without, analyzers believe that a failure might return 0. */
#define err_set(e, code, ...) (err_set((e), (code), __VA_ARGS__), (code))

/* err_errno - the same with ERR_SYS, for a system call that failed: what errno
 * means stands behind the text */
int err_errno(struct err *e, const char *fmt, ...) PRINTF(2, 3);
#define err_errno(e, ...) (err_errno((e), __VA_ARGS__), ERR_SYS)

/*
 * err_wrap - put context before the text that is there already
 *
 * "open /x: No such file" becomes "config: open /x: No such file".  Returns
 * e->code.
 */
int err_wrap(struct err *e, const char *fmt, ...) PRINTF(2, 3);

/* err_name - a short machine-readable word for a code ("limit", "lost") */
const char *err_name(int code);

#endif
