/* run_wish.h - what a caller wants run */
#ifndef CORE_RUN_WISH_H
#define CORE_RUN_WISH_H

#include "common/base.h"
#include "common/call.h"
#include "common/err.h"
#include "common/runspec.h"
#include "common/uuid.h"
#include "supervisor/core/log_digest.h"
#include "supervisor/store/store.h"

/* Whether readers want both outputs as one, besides each alone. */
enum run_merge {
	RUN_APART,
	RUN_MERGED
};

/* What a caller wants run; run_wish_clear frees what it points to. */
struct run_wish {
	const char *tool;      /* static text, for the row */
	const char *language;  /* copied into it; NULL: none */
	const struct call *by; /* who asks; borrowed.  NULL: nobody */
	struct uuid rerun_of;  /* the run that this one does again, or zero */
	struct runspec spec;
	struct store_command *commands; /* rows beside the spec */
	bool lock;
	enum run_merge merge;
	enum store_when when; /* STORE_SOON: somebody waits for the end */
	struct uuid uuid;     /* chosen by the caller: files need it */
};
void run_wish_clear(struct run_wish *w);

/* How it is run, beside its commands: bits of store_run.options. */
enum run_option {
	RUN_OPTIONS_ARE_KNOWN = 1, /* not of runs of earlier versions */
	RUN_GOES_ON_AFTER_ERROR = 2,
	RUN_HAS_LOCK = 4,
	RUN_KILLS_LEFTOVERS = 8,
	RUN_IS_ROOT = 16
};
uint32_t run_wish_options(const struct run_wish *w);
/* run_wish_encode - the spec as the row and the worker have it, n bytes; the
 * caller frees.  Commands of a client that sent a traceparent have ours in
 * TRACEPARENT, unless they have one or there is no room for it.  ERR_INVAL: a
 * limit of runspec.h is broken */
int run_wish_encode(
    struct run_wish *w, uint8_t **out, size_t *n, struct err *e) MUSTCHECK;

/* run_wish_forget_trace - of a command of an encoded spec: what run_wish_encode
 * added for this trace ("": none) */
void run_wish_forget_trace(struct runspec_command *c, const char *trace);

/* run_wish_caps - how much of its output a run's readers are shown */
struct log_caps run_wish_caps(
    const struct store_run *row, enum run_merge merge);

#endif
