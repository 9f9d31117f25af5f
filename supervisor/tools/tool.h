/*
 * tool.h - what the files of tools/ share: a tool, and one call of it
 *
 * A call's state is one object, made with the size that its tool names, and
 * begins with struct tool_call.  It ends by tool_result or tool_fail, once, in
 * start or later: then the tool's clear gives back what the
 * state holds, and the state is gone.
 */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <sys/queue.h>

#include <jansson.h>

#include "common/buf.h"
#include "common/call.h"
#include "common/conf.h"
#include "common/err.h"
#include "supervisor/core/core.h"
#include "supervisor/mcp/offer.h"
#include "supervisor/tools/tool_text.h"
#include "supervisor/tools/tools.h"

/* The member of a failed result's _meta that says which quota refused. */
#define TOOL_REFUSAL "mcp-sandboxd/refusal"
/* The member of a call's _meta by which a program asks for structuredContent */
#define TOOL_STRUCTURED "mcp-sandboxd/structured"

struct images;
struct mcp_call;
struct mcp_task;
struct progress;
struct run;
struct sandbox;
struct task_making;
struct tool_bound;
struct tool_call;

struct tool {
	const char *name;
	const char *failed; /* the compatible clients' word; NULL: name */
	size_t size;        /* of a call's state */
	void (*start)(struct tool_call *t);
	/* The answer of an earlier call of it, by that one's token (again.h);
	 * there are no arguments.  NULL: it is said once. */
	void (*resume)(struct tool_call *t, const void *token, size_t n);
	void (*clear)(struct tool_call *t); /* NULL: it holds nothing */
	/* The first line of the result's text. */
	void (*summary)(const json_t *result, struct buf *line);
	/* With TOOL_TEXT=json; NULL: summary. */
	void (*summary_json)(const json_t *result, struct buf *line);
};

struct tool_call {
	const struct tool *tool;
	struct tools *tools;
	struct core *core;
	struct mcp_call *mcp;
	struct call *call;  /* who, until when, progress, cancel */
	json_t *arguments;  /* fit the tool's schema; the call's own */
	bool is_structured; /* structuredContent was asked for */
	json_t *result;     /* while pictures that belong to it are read */
	struct images *images;
	struct progress *waiting; /* tool_waits */
	bool has_digest; /* tools.c's, of the arguments, as what follows */
	uint8_t digest[32];
	struct task_making *making; /* tool_tasks.c's; NULL: no task may */
	/* It says an answer for a task (tool_say_again): a cancel ends the
	 * call and not the run. */
	bool is_for_task;
	void (*on_said)(struct mcp_content *content, enum mcp_outcome outcome,
	    void *arg); /* NULL: its end is the MCP call's */
	void *said_arg;
	LIST_ENTRY(tool_call) link;
};

/* tool_result - the answer; result is taken over.  tool_result_of - with the
 * pictures that this run left, which ended: now or later.  tool_fail - what
 * kept the tool from its work, in words for the model. */
void tool_result(struct tool_call *t, json_t *result);
void tool_result_of(
    struct tool_call *t, json_t *result, const struct store_run *row);
void tool_fail(struct tool_call *t, const struct err *why);
/* tool_ask - ends it with a question to whoever sits before the client, which
 * must be able to (mcp_call_can): {"KEY": {"method", "params"}}, taken over.
 * The tool starts anew with the answer, mcp_call_answers */
void tool_ask(struct tool_call *t, json_t *questions);
/* tool_end - the same of what is ready, which is taken over.  tool_end_as_task
 * - with a task in its place, which is on disk; say: as mcp_call_task's */
void tool_end(
    struct tool_call *t, struct mcp_content *content, enum mcp_outcome outcome);
void tool_end_as_task(
    struct tool_call *t, const struct mcp_task *task, const char *say);
/* tool_say_again - an earlier call's answer, by its token, which ends mcp, or,
 * with on_said, is told there while mcp goes on */
struct tool_again {
	const struct tool_bound *bound;
	struct mcp_call *mcp;
	uint8_t token[MCP_TOKEN_MAX];
	size_t n;
	void (*on_said)(
	    struct mcp_content *content, enum mcp_outcome outcome, void *arg);
	void *arg;
};
void tool_say_again(const struct tool_again *again);
/* tools_find - the tool of this name, if it can say its answers again; NULL */
const struct tool_bound *tools_find(const struct tools *ts, const char *name);

/* tool_waits - the client, if it asked, hears from time to time that the call
 * goes on; for calls without a run (wait.h has its own) */
void tool_waits(struct tool_call *t);
/* tool_tell - for the audit: what this call has begun */
void tool_tell(struct tool_call *t, const char *what, const char *subject,
    const char *detail);
void tool_tell_run(struct tool_call *t, const char *what, const struct run *r);
void tool_tell_sandbox(struct tool_call *t, const struct sandbox *sb);

/* tool_stream_max - bytes of a stream that a result holds */
size_t tool_stream_max(const struct tool_call *t);
/* tool_is_structured - its result has structured content: it was asked for, by
 * the call or a setting.  Several clients give their model nothing else then */
bool tool_is_structured(const struct tool_call *t);
/* tool_form - of the text of its result */
enum tool_text_form tool_form(const struct tool_call *t);
/* tool_page_key - SIPHASH_KEY_BYTES that sign cursors of output */
const uint8_t *tool_page_key(const struct tool_call *t);

/* Tasks, which may stand for a call's answer (tool_tasks.h).  The last two are
 * called for calls with a making. */
struct tool_task_ops {
	/* true: the call's start has to wait; it is called, or the call has
	 * ended, later. */
	bool (*admit)(struct tool_call *t);
	/* Before its answer: true: a task is made in its place, and content
	 * was taken over.  The call ends later. */
	bool (*hold)(struct tool_call *t, struct mcp_content *content,
	    enum mcp_outcome outcome);
	void (*drop)(struct tool_call *t); /* it ends */
};
struct tool_tasks;
void tools_set_tasks(struct tools *ts, const struct tool_task_ops *task_ops,
    struct tool_tasks *tasks);
struct tool_tasks *tools_tasks(const struct tools *ts);

extern const struct tool tool_run_sandbox;    /* run_sandbox.c */
extern const struct tool tool_delete_sandbox; /* sandbox_tools.c */
extern const struct tool tool_restart_sandbox;
extern const struct tool tool_get_run;     /* get_run.c */
extern const struct tool tool_control_run; /* control_run.c */
extern const struct tool tool_list_runs;   /* lists.c */
extern const struct tool tool_list_sandboxes;
extern const struct tool tool_initialize_sandbox; /* code.c */
extern const struct tool tool_execute_code;
extern const struct tool tool_stop_sandbox;

#endif
