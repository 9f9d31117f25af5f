/*
 * tool_tasks.h - tasks of the protocol, which stand for what a run comes to
 *
 * A client of MCP 2025-11-25 asks for a task with its call: the call is
 * answered as soon as the run's row and then the task's are on disk.  For one
 * of 2026-07-28 that takes tasks the server decides: a call whose wait is over
 * before its run is answered with a task in place of "has not ended yet".
 *
 * A task's result is its tool's answer about the run, said again (again.h).
 */
#ifndef TOOLS_TOOL_TASKS_H
#define TOOLS_TOOL_TASKS_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/mcp/mcp.h"

struct core;
struct run;
struct tool_call;
struct tool_tasks;
struct tools;

/* tool_tasks_new - registers them with ts and m; all are kept by pointer.
 * After core_recover: tasks of runs that go on are told of again */
int tool_tasks_new(struct tools *ts, struct core *core, struct mcp *m,
    struct tool_tasks **out, struct err *e) MUSTCHECK;
/* tool_tasks_free - after tools_free; requests that are not answered end as
 * failed; NULL is fine */
void tool_tasks_free(struct tool_tasks *all);

/* tool_tasks_asked - the client asks for one: it stands for the run's end,
 * whatever the call says of waiting */
bool tool_tasks_asked(const struct tool_call *t);
/* tool_tasks_may - it would take one when the wait is over */
bool tool_tasks_may(const struct tool_call *t);
/* tool_tasks_run - the call waits for the end of this run; bits: what the tool
 * says the answer again by (again.h) */
void tool_tasks_run(struct tool_call *t, struct run *r, uint64_t bits);

#endif
