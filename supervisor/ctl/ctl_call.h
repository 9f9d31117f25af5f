/* ctl_call.h - a command that was called: with what, and over which link */
#ifndef CTL_CALL_H
#define CTL_CALL_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/ctl/ctl_options.h"
#include "supervisor/ctl/ctl_request.h"

struct ctl_call {
	const struct ctl_options *o;
	struct ctl_link *link; /* NULL: the command is one that asks nobody */
	char **words;          /* behind the command's own */
	int n;
};

/* The functions of commands: 0, or ERR_INVAL for what was called wrongly, or
 * another code with what failed. */

#endif
