/*
 * offer.h - what a server offers: tools, resources, prompts, completion, tasks
 *
 * Each is registered with functions that are called for a request and answer
 * it at once or later.  The request in its functions' hands is a struct
 * mcp_call, whatever its method is: who calls, progress, cancel, log messages,
 * questions to the client.  The functions know neither revision nor transport;
 * the library gives what they say the form that the client's revision has.
 *
 * A call ends once, by one of
 *
 *	mcp_call_result		a tool's content
 *	mcp_call_answer		the result of any other method
 *	mcp_call_error		a JSON-RPC error
 *	mcp_call_ask		questions to the client; the function is called
 *				again, in another call, with its answers
 *	mcp_call_task		a task stands for the result of a tool
 *
 * on the thread of the server, and is gone then, with its base.  One that was
 * canceled, or whose client left, is ended in the same way: nothing is sent.
 */
#ifndef MCP_OFFER_H
#define MCP_OFFER_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"
#include "common/principal.h"
#include "supervisor/mcp/mcp.h"

/* ---- every call */

/* mcp_call_answer - result, taken over: the members that the method's result
 * has in MCP 2025-11-25; envelope and caching hints are the library's */
void mcp_call_answer(struct mcp_call *c, json_t *result);
/* mcp_call_error - code as of enum mcp_code; data taken over, or NULL */
void mcp_call_error(
    struct mcp_call *c, int code, const char *message, json_t *data);
/* mcp_call_no_resource - the error for an address that names nothing that
 * this principal may see, in the words of its revision */
void mcp_call_no_resource(struct mcp_call *c, const char *uri);

enum mcp_level { /* RFC 5424, most severe last */
	MCP_DEBUG,
	MCP_INFO,
	MCP_NOTICE,
	MCP_WARNING,
	MCP_ERROR,
	MCP_CRITICAL,
	MCP_ALERT,
	MCP_EMERGENCY
};
/* mcp_call_log - notifications/message, if the client asked for this level (a
 * session by logging/setLevel, a request of 2026-07-28 by its logLevel).  data
 * is taken over.  Left out, as progress is, when the client does not read. */
void mcp_call_log(
    struct mcp_call *c, enum mcp_level level, const char *logger, json_t *data);
/* mcp_call_progress - progress with a total (NAN: it is not known);
 * mcp_call_base's has none */
void mcp_call_progress(
    struct mcp_call *c, double done, double total, const char *text);

/* ---- questions to the client (elicitation, sampling, roots)
 *
 * Until 2025-11-25 they are requests on the call's event stream, and the
 * library waits for their responses; since 2026-07-28 they are a result,
 * input_required, and the client sends the whole request again (MRTR).  The
 * function sees the same: it ends its call with questions, and is called anew
 * with their answers.  A tool, a prompt and the reading of a resource may ask.
 *
 * A client that answers with an error, or not within ten minutes, or that takes
 * no event stream, ends the call: as a failed result of a tool, else as an
 * error.  So does one that leaves or cancels, without an answer.
 */
enum mcp_can { /* what the client declared */
	MCP_CAN_ELICIT,
	MCP_CAN_SAMPLE,
	MCP_CAN_LIST_ROOTS,
	MCP_CAN_TASKS,     /* the extension of 2026-07-28 */
	MCP_CAN_ELICIT_URL /* elicitation in mode "url" */
};
/* mcp_call_can - it may be asked this, or given a task.  A client whose request
 * has more than 64 KiB is asked nothing. */
bool mcp_call_can(const struct mcp_call *c, enum mcp_can what);
/*
 * mcp_call_ask - end this call with questions
 *
 *	questions	{"KEY": {"method": "elicitation/create", "params": {}}};
 *			taken over; may be empty when there is a state
 *	state		text for the next call, MCP_STATE_MAX bytes at most, or
 *			NULL.  In 2026-07-28 it goes by the client, who can read
 *			it, under a MAC that binds it to principal, method,
 *			name and arguments, and to an hour
 *
 * A client that has not declared what a question needs ends it as
 * mcp_call_need does.
 */
#define MCP_STATE_MAX 4096
void mcp_call_ask(struct mcp_call *c, json_t *questions, const char *state);
/* mcp_call_answers - {"KEY": RESULT} of what was asked; NULL: a first call.
 * What a client answered is not checked, but for each RESULT being an object.
 * mcp_call_state - NULL: none */
const json_t *mcp_call_answers(const struct mcp_call *c);
const char *mcp_call_state(const struct mcp_call *c);
/* mcp_call_need - end the call: it cannot be served for a client without this
 * capability (-32021 in 2026-07-28, an invalid request before) */
void mcp_call_need(struct mcp_call *c, enum mcp_can what);

/* ---- answers that outlive their connection
 *
 * A tool that can say the answer again by a short token, also in another
 * process, sets it early in its call.  From then on the event stream of the
 * call has ids (MCP 2025-11-25 and before, if the tool has an on_resume).  A
 * client that comes back with one of them (Last-Event-ID) gets the answer of
 * this call while it goes on; else the tool's on_resume is called with the
 * token, in a new call, and the client gets what that answers.
 */
#define MCP_TOKEN_MAX 64
void mcp_call_set_token(struct mcp_call *c, const void *token, size_t n);
/* mcp_call_hang_up - close the stream, the call goes on: the client comes back
 * after retry_ms (MCP 2025-11-25, transports, polling).  Does nothing for who
 * could not come back. */
void mcp_call_hang_up(struct mcp_call *c, uint32_t retry_ms);

/* ---- tools */

typedef void (*mcp_resume_cb)(
    struct mcp_call *call, const void *token, size_t n, void *arg);
/* mcp_tool_on_resume - of the tool of this name; ERR_NOTFOUND */
int mcp_tool_on_resume(struct mcp *m, const char *name, mcp_resume_cb on_resume,
    struct err *e) MUSTCHECK;
/* mcp_tools_changed - the list is another one: whoever listens is told */
void mcp_tools_changed(struct mcp *m);

/* Further blocks of a content (mcp.h), in the order of their adding.  data is
 * bytes, sent in base64. */
void mcp_content_image(
    struct mcp_content *c, const void *data, size_t n, const char *type);
void mcp_content_audio(
    struct mcp_content *c, const void *data, size_t n, const char *type);
/* mcp_content_resource - an embedded one: {"uri","mimeType","text" or "blob"},
 * taken over */
void mcp_content_resource(struct mcp_content *c, json_t *resource);

/* mcp_call_meta - params._meta of the request, borrowed; NULL: none */
const json_t *mcp_call_meta(const struct mcp_call *c);

/* ---- resources */

struct mcp_resource_ops {
	/* Answers {"resources": [...], "nextCursor"?}; cursor NULL: from the
	 * beginning. */
	void (*list)(struct mcp_call *c, const char *cursor, void *arg);
	/* Answers {"contents": [...]}, or mcp_call_no_resource. */
	void (*read)(struct mcp_call *c, const char *uri, void *arg);
	/* May this principal hear of changes of it?  Answers {} or
	 * mcp_call_no_resource.  NULL: there are no subscriptions. */
	void (*watch)(struct mcp_call *c, const char *uri, void *arg);
};
/* mcp_set_resources - templates: an array as in resources/templates/list,
 * kept by reference, or NULL; ops by pointer.  Once, before the first request.
 */
void mcp_set_resources(struct mcp *m, json_t *templates,
    const struct mcp_resource_ops *ops, void *arg);
/* mcp_resource_changed - who watches it and is of this tenant is told, once a
 * second at most */
void mcp_resource_changed(
    struct mcp *m, struct tenant_id tenant, const char *uri);
/* mcp_is_watched - by anybody: whether mcp_resource_changed is worth calling */
bool mcp_is_watched(const struct mcp *m);

/* ---- prompts and completion */

typedef void (*mcp_prompt_cb)(
    struct mcp_call *call, const json_t *arguments, void *arg);
/* mcp_add_prompt - definition as in prompts/list, kept by reference; on_get
 * answers {"description"?, "messages": [...]}; required arguments are there,
 * all are strings */
int mcp_add_prompt(struct mcp *m, json_t *definition, mcp_prompt_cb on_get,
    void *arg, struct err *e) MUSTCHECK;
void mcp_prompts_changed(struct mcp *m);

struct mcp_completion {
	const char *prompt;    /* its name, or NULL */
	const char *uri;       /* a template, or NULL */
	const char *argument;  /* which one */
	const char *value;     /* what is typed so far */
	const json_t *context; /* {"NAME": "value"} of the others, or NULL */
};
/* mcp_set_completion - on_complete answers {"completion": {"values": [...],
 * "total"?, "hasMore"?}}; of values, 100 are sent at most.  what is gone when
 * it returns; its prompt or template is one that is listed. */
typedef void (*mcp_complete_cb)(
    struct mcp_call *call, const struct mcp_completion *what, void *arg);
void mcp_set_completion(struct mcp *m, mcp_complete_cb on_complete, void *arg);

/* ---- tasks
 *
 * Whoever offers tasks keeps them (in a database, say), under ids of its own,
 * for their principals: what another one asks for is unknown.
 */
enum mcp_task_status {
	MCP_TASK_WORKING,
	MCP_TASK_INPUT_REQUIRED,
	MCP_TASK_COMPLETED,
	MCP_TASK_FAILED,
	MCP_TASK_CANCELLED
};
#define MCP_TASK_NO_TTL (-1)
struct mcp_task {
	const char *id;
	enum mcp_task_status status;
	const char *message;            /* for people; NULL: none */
	int64_t created_ms, updated_ms; /* since 1970 */
	int64_t ttl_ms;   /* since created; MCP_TASK_NO_TTL: for ever */
	uint32_t poll_ms; /* how often to ask; 0: no word of it */
};
/* mcp_call_may_task - a task may stand for this tool's result.  *asked: the
 * client asks for one (2025-11-25), and any other answer reaches it as an
 * error, with the content's text; else it is the tool's choice, and a good one
 * when the work is long.  ttl_ms: what the client wishes, or MCP_TASK_NO_TTL.
 * A tool says by execution.taskSupport in its definition whether it can. */
bool mcp_call_may_task(const struct mcp_call *c, bool *asked, int64_t *ttl_ms);
/* mcp_call_task - the answer: this task, which is durable already.  say: a
 * text for the model meanwhile, or NULL */
void mcp_call_task(
    struct mcp_call *c, const struct mcp_task *task, const char *say);

struct mcp_task_ops {
	/* Answers with mcp_call_task_state, or mcp_call_no_task. */
	void (*get)(struct mcp_call *c, const char *id, void *arg);
	/* Waits for the end, then answers as the tool's call would have: with
	 * mcp_call_result or mcp_call_error; or mcp_call_no_task. */
	void (*result)(struct mcp_call *c, const char *id, void *arg);
	/* Answers with mcp_call_task_state, as the cancel found the task: one
	 * that works is cancelled from then on, in every answer, whatever its
	 * work still comes to; one that had ended stays as it is. */
	void (*cancel)(struct mcp_call *c, const char *id, void *arg);
	/* Answers to questions of an input_required task: {"KEY": RESULT}; as
	 * get.  NULL: tasks never ask. */
	void (*update)(struct mcp_call *c, const char *id,
	    const json_t *answers, void *arg);
	/* Answers with mcp_call_task_list. */
	void (*list)(struct mcp_call *c, const char *cursor, void *arg);
};
void mcp_set_tasks(struct mcp *m, const struct mcp_task_ops *ops, void *arg);
/* What a task that ended has, for mcp_call_task_state; content is taken over.
 * error_code 0: there is content (NULL while it works); else a JSON-RPC error
 */
struct mcp_task_end {
	struct mcp_content *content;
	enum mcp_outcome outcome;
	int error_code;
	const char *error;
	json_t *questions; /* taken over; of an input_required task, or NULL */
};
/* mcp_call_shows_end - its answer holds what the task came to (2026-07-28);
 * else only error_code and outcome of the end count, and the content may be
 * left out */
bool mcp_call_shows_end(const struct mcp_call *c);
void mcp_call_task_state(struct mcp_call *c, const struct mcp_task *task,
    const struct mcp_task_end *end);
void mcp_call_task_list(struct mcp_call *c, const struct mcp_task *tasks,
    size_t n, const char *next_cursor);
void mcp_call_no_task(struct mcp_call *c, const char *id);
/* mcp_task_changed - whoever listens for it (2026-07-28) and is of this tenant
 * gets its state, by ops->get */
void mcp_task_changed(struct mcp *m, struct tenant_id tenant, const char *id);

#endif
