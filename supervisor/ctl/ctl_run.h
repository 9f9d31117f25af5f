/* ctl_run.h - sandboxctl run: what was run, and what it printed */
#ifndef CTL_RUN_H
#define CTL_RUN_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/ctl/ctl_call.h"

int ctl_run_list(const struct ctl_call *c, struct err *e);
int ctl_run_show(const struct ctl_call *c, struct err *e);
int ctl_run_artifacts(const struct ctl_call *c, struct err *e);
int ctl_run_cancel(const struct ctl_call *c, struct err *e);
int ctl_run_delete(const struct ctl_call *c, struct err *e);
int ctl_run_rerun(const struct ctl_call *c, struct err *e);
int ctl_run_stats(const struct ctl_call *c, struct err *e);
/* ctl_run_export - as the server sends it, to standard output */
int ctl_run_export(const struct ctl_call *c, struct err *e);

int ctl_sandbox_list(const struct ctl_call *c, struct err *e);
int ctl_sandbox_show(const struct ctl_call *c, struct err *e);
int ctl_sandbox_delete(const struct ctl_call *c, struct err *e);

/*
 * ctl_tail_run - what a run printed; with --follow until it has ended, also
 * over a restart of the server
 *
 * Bytes as they are, but on a terminal, where control characters (but for
 * newlines and tabs) are shown as \xNN unless --raw.
 */
int ctl_tail_run(const struct ctl_call *c, struct err *e);

#endif
