/*
 * rerun.h - a run once more, from what is recorded of it
 *
 * The record becomes the arguments by which its tool would be asked for the
 * same, and they are read as a client's are: what a tool refuses now is refused
 * here.  Values of variables are not recorded, but for references to secrets:
 * they come with the request, or it is refused with their names.
 */
#ifndef TOOLS_RERUN_H
#define TOOLS_RERUN_H

#include <jansson.h>

#include "common/base.h"
#include "common/call.h"
#include "common/err.h"
#include "supervisor/store/store.h"

struct core;
struct run;
struct tools;

struct rerun_wish {
	struct core *core;
	const struct tools *tools;
	struct call *by;             /* who asks */
	const struct store_run *row; /* with its commands' texts */
	json_t *more;                /* {"env": {"NAME": "value"}}, or empty */
};

/*
 * rerun_begin - make the run; *out is the registry's, as run_create's; is_new
 * says whether a sandbox was made for it
 *
 * ERR_CONFLICT: not all that it needs is recorded, or given in more; ERR_INVAL:
 * more is wrong; and what refuses any run.
 */
int rerun_begin(const struct rerun_wish *wish, struct run **out, bool *is_new,
    struct err *e) MUSTCHECK;

#endif
