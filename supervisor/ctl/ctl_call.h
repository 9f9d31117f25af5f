/*
 * ctl_call.h - a command that was called, and the functions of commands
 * (schema/ctl.txt) that are not in ctl_commands.c
 *
 * Each returns 0, or ERR_INVAL for what was called wrongly, or another code
 * with what failed.
 */
#ifndef CTL_CALL_H
#define CTL_CALL_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/ctl/ctl_options.h"
#include "supervisor/ctl/ctl_request.h"

/* Exit status of sandboxctl. */
#define CTL_DONE 0
#define CTL_FAILED 1
#define CTL_USAGE 2

/* ctl_commands_run - the command of o->words; what failed is in *e */
int ctl_commands_run(const struct ctl_options *o, struct err *e);

struct ctl_call {
	const struct ctl_options *o;
	struct ctl_link *link; /* NULL: the command is one that asks nobody */
	char **words;          /* behind the command's own */
	int n;
};

/* ctl_doctor_run - "mcp-sandboxd doctor", which needs the settings and the
 * engine, in our place; returns only when there is no such program */
int ctl_doctor_run(const struct ctl_call *c, struct err *e);

/* ctl_status_show - once; with --watch each second until SIGINT, also while no
 * server answers */
int ctl_status_show(const struct ctl_call *c, struct err *e);

int ctl_run_list(const struct ctl_call *c, struct err *e);
int ctl_run_show(const struct ctl_call *c, struct err *e);
int ctl_run_artifacts(const struct ctl_call *c, struct err *e);
int ctl_run_cancel(const struct ctl_call *c, struct err *e);
int ctl_run_delete(const struct ctl_call *c, struct err *e);
int ctl_run_rerun(const struct ctl_call *c, struct err *e);
int ctl_run_stats(const struct ctl_call *c, struct err *e);
/* ctl_run_export - as the server sends it, to standard output */
int ctl_run_export(const struct ctl_call *c, struct err *e);
/*
 * ctl_tail_run - what a run printed; with --follow until it has ended, also
 * over a restart of the server
 *
 * Bytes as they are, but on a terminal, where control characters (but for
 * newlines and tabs) are shown as \xNN unless --raw.
 */
int ctl_tail_run(const struct ctl_call *c, struct err *e);

int ctl_sandbox_list(const struct ctl_call *c, struct err *e);
int ctl_sandbox_show(const struct ctl_call *c, struct err *e);
int ctl_sandbox_delete(const struct ctl_call *c, struct err *e);

/* ctl_secret_set - the value is --file's content, or what stdin has, without
 * one newline at its end */
int ctl_secret_set(const struct ctl_call *c, struct err *e);
int ctl_secret_list(const struct ctl_call *c, struct err *e);
int ctl_secret_delete(const struct ctl_call *c, struct err *e);

int ctl_webhook_add(const struct ctl_call *c, struct err *e);
int ctl_webhook_list(const struct ctl_call *c, struct err *e);
int ctl_webhook_show(const struct ctl_call *c, struct err *e);
int ctl_webhook_set(const struct ctl_call *c, struct err *e);
int ctl_webhook_delete(const struct ctl_call *c, struct err *e);
int ctl_webhook_test(const struct ctl_call *c, struct err *e);

/* ctl_audit_list - the newest rows, by words KEY=VALUE */
int ctl_audit_list(const struct ctl_call *c, struct err *e);
/*
 * ctl_audit_verify - the whole chain, piece by piece
 *
 * With two words, a number and a hash (of a line of the log, or of an earlier
 * verify): that row must still be the one with this hash; with --head some row
 * must have it.  --offline: of DATA_DIR's database, and no server is asked.
 * ERR_WRONG_STATE names the first row that is wrong.
 */
int ctl_audit_verify(const struct ctl_call *c, struct err *e);

/*
 * ctl_backup_make - all of DATA_DIR that a server needs, in one archive, while
 * it goes on
 *
 * What is read is read as the user that owns it, so that whoever took the
 * front over leads root nowhere.  FILE is there when all of it is on disk, and
 * not before; until then it is FILE.partial.
 */
int ctl_backup_make(const struct ctl_call *c, struct err *e);
/*
 * ctl_backup_restore - the same back into DATA_DIR, where no server runs
 *
 * Unpacked and checked beside what is there, by the user it will belong to;
 * then it takes the place of what is there in one step.
 */
int ctl_backup_restore(const struct ctl_call *c, struct err *e);

#endif
