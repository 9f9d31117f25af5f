/* ctl_commands.h - what sandboxctl can do (schema/ctl.txt) */
#ifndef CTL_COMMANDS_H
#define CTL_COMMANDS_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/ctl/ctl_options.h"

/* Exit status of sandboxctl. */
#define CTL_DONE 0
#define CTL_FAILED 1
#define CTL_USAGE 2

/* ctl_commands_run - the command of o->words; what failed is in *e */
int ctl_commands_run(const struct ctl_options *o, struct err *e);

#endif
