/*
 * tool_tasks.c - tasks made for calls, and what is asked of them
 *
 *	admitted --> run known --> recorded --> put --> the call ends with it
 *	    |            |                       |
 *	no room: the     the call's answer       no room, no disk: it ends
 *	call ends        comes: it is held       with its own answer
 *
 * Of a task that the client asks for, the first steps follow each other at
 * once; of another one, when the call's wait is over before its run.
 */
#include "supervisor/tools/tool_tasks.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/hex.h"
#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/core/acts.h"
#include "supervisor/core/run.h"
#include "supervisor/core/task_rules.h"
#include "supervisor/mcp/offer.h"
#include "supervisor/tools/again.h"
#include "supervisor/tools/tool.h"

#define PAGE 50        /* tasks in one of the list */
#define READS_MAX 3    /* of a row whose run ends meanwhile */
#define CURSOR_TIME 16 /* hex digits before the uuid */
#define WISH_TOKEN "token"

struct tool_tasks {
	struct tools *tools;
	struct core *core;
	struct mcp *mcp;
	LIST_HEAD(, task_asking) askings;
	LIST_HEAD(, task_watch) watches;
	LIST_HEAD(, task_making) makings;
};

/* ---- a task as the library has it */

static struct mcp_task
task_of(const struct store_task *row, const struct task_status *s,
    char id[UUID_TEXT_LEN + 1])
{
	static const enum mcp_task_status status[] = {
	    [TASK_WORKS] = MCP_TASK_WORKING,
	    [TASK_IS_DONE] = MCP_TASK_COMPLETED,
	    [TASK_HAS_FAILED] = MCP_TASK_FAILED,
	    [TASK_IS_CANCELED] = MCP_TASK_CANCELLED,
	};

	uuid_format(&row->uuid, id);
	return (struct mcp_task){.id = id,
	    .status = status[s->standing],
	    .message = s->message[0] != '\0' ? s->message : NULL,
	    .created_ms = row->created_ms,
	    .updated_ms = s->updated_ms,
	    .ttl_ms = row->expires_ms - row->created_ms,
	    .poll_ms = TASK_POLL_MS};
}

/* ---- those that change are told of */

struct task_watch {
	LIST_ENTRY(task_watch) link;
	struct tool_tasks *all;
	struct run *run; /* a reference */
	struct bus_member member;
	struct uuid task;
};

static void
tell(const struct tool_tasks *all, struct tenant_id tenant,
    const struct uuid *task)
{
	char id[UUID_TEXT_LEN + 1];

	uuid_format(task, id);
	mcp_task_changed(all->mcp, tenant, id);
}

static void
watch_free(struct task_watch *w)
{
	LIST_REMOVE(w, link);
	bus_leave(&w->run->bus, &w->member);
	run_unref(w->run);
	free(w);
}

static void
watch_on_bus(const struct bus_event *ev, void *arg)
{
	struct task_watch *w = arg;

	if (ev->kind != BUS_RUN_SENT && ev->kind != BUS_RUN_ENDED)
		return;
	tell(w->all, run_tenant(w->run), &w->task);
	if (ev->kind == BUS_RUN_ENDED)
		watch_free(w);
}

static void
watch(struct tool_tasks *all, struct run *r, const struct uuid *task)
{
	struct task_watch *w;

	if (r->phase == RUN_OVER)
		return;
	w = xcalloc(1, sizeof(*w));
	w->all = all;
	w->run = run_ref(r);
	w->task = *task;
	LIST_INSERT_HEAD(&all->watches, w, link);
	bus_join(&r->bus, &w->member, watch_on_bus, w);
}

/* Of an earlier life of the server.  A crash may have come between the two
 * parts of a cancel. */
static int
watch_unfinished(struct tool_tasks *all, struct err *e)
{
	struct store_task_page tasks;

	if (store_tasks_read(core_store(all->core), &tasks, e) != 0)
		return e->code;
	for (size_t i = 0; i < tasks.n; i++) {
		const struct store_task *row = &tasks.rows[i];
		struct run *r = runs_find_uuid(core_runs(all->core),
		    (struct tenant_id){row->tenant}, &row->run);

		if (r == NULL)
			continue;
		watch(all, r, &row->uuid);
		if (row->cancelled_ms != 0)
			run_cancel(r, RUNLOG_CANCELED);
	}
	store_task_page_clear(&tasks);
	return 0;
}

/* ---- one is made */

struct task_making {
	LIST_ENTRY(task_making) link;
	struct tool_tasks *all;
	struct tool_call *t; /* NULL: it ended meanwhile */
	bool is_asked;
	bool is_put; /* its row is on its way */
	int64_t ttl_ms;
	struct run *run; /* a reference; NULL: there is none yet */
	struct store_task row;
	struct bus_member member;
	/* What the call ends with when there is no task: */
	struct mcp_content *held;
	enum mcp_outcome outcome;
};

static void
making_free(struct task_making *m)
{
	LIST_REMOVE(m, link);
	if (m->run != NULL) {
		bus_leave(&m->run->bus, &m->member);
		run_unref(m->run);
	}
	store_task_clear(&m->row);
	mcp_content_free(m->held);
	free(m);
}

/* Who waits for the database gives it back then. */
static void
drop(struct tool_call *t)
{
	struct task_making *m = t->making;

	t->making = NULL;
	m->t = NULL;
	if (!m->is_put)
		making_free(m);
}

bool
tool_tasks_asked(const struct tool_call *t)
{
	return t->making != NULL && t->making->is_asked;
}

bool
tool_tasks_may(const struct tool_call *t)
{
	return t->making != NULL && !t->making->is_asked;
}

static void
checked_cb(int rc, const struct err *why, void *arg)
{
	struct task_making *m = arg;
	struct tool_call *t = m->t;

	m->is_put = false;
	if (t == NULL)
		making_free(m);
	else if (rc != 0)
		tool_fail(t, why);
	else
		t->tool->start(t);
}

static bool
admit(struct tool_call *t)
{
	struct task_making *m;
	int64_t ttl_ms;
	bool is_asked;

	if (!mcp_call_may_task(t->mcp, &is_asked, &ttl_ms))
		return false;
	m = t->making = xcalloc(1, sizeof(*m));
	m->all = tools_tasks(t->tools);
	LIST_INSERT_HEAD(&m->all->makings, m, link);
	m->t = t;
	m->is_asked = is_asked;
	m->ttl_ms = task_ttl_ms(ttl_ms);
	if (!is_asked)
		return false;
	m->is_put = true;
	store_task_check(core_store(t->core), t->call->who, clock_wall_ms(),
	    TASKS_PER_PRINCIPAL, checked_cb, m);
	return true;
}

static char *
wish_text(const struct tool_call *t, const struct run *r, uint64_t bits)
{
	const struct again_token token = {.run = r->row.uuid,
	    .until_ms = AGAIN_TO_ITS_END,
	    .bits = bits,
	    .is_structured = t->is_structured};
	uint8_t bytes[MCP_TOKEN_MAX];
	char hex[HEX_BYTES(MCP_TOKEN_MAX)];

	hex_encode(bytes, again_write(&token, bytes), hex);
	return xasprintf("{\"" WISH_TOKEN "\":\"%s\"}", hex);
}

static void
fill_row(struct task_making *m, uint64_t bits)
{
	const struct principal *who = m->t->call->who;

	m->row = (struct store_task){.tenant = who->tenant.n,
	    .subject = xstrdup(who->subject),
	    .run = m->run->row.uuid,
	    .tool = xstrdup(m->t->tool->name),
	    .wish = wish_text(m->t, m->run, bits),
	    .run_state = xstrdup(RUN_STATE_QUEUED_WORD)};
	uuid_random(&m->row.uuid);
}

/* The call's own answer, then; what the run does is its own affair, unless it
 * was begun for the task alone. */
static void
no_task(struct task_making *m, const struct err *why)
{
	struct mcp_content *held = m->held;
	struct tool_call *t = m->t;

	if (m->is_asked)
		run_cancel(m->run, RUNLOG_CANCELED);
	m->held = NULL;
	drop(t);
	if (held != NULL)
		tool_end(t, held, MCP_TOOL_DONE);
	else
		tool_fail(t, why);
}

static void
put_cb(int rc, const struct err *why, void *arg)
{
	struct task_making *m = arg;
	struct task_status state;
	AUTO(auto_free) char *say = NULL;
	char id[UUID_TEXT_LEN + 1], run[UUID_TEXT_LEN + 1];
	struct mcp_task task;

	m->is_put = false;
	if (m->t == NULL) {
		making_free(m);
		return;
	}
	if (rc != 0) {
		no_task(m, why);
		return;
	}
	watch(m->all, m->run, &m->row.uuid);
	task_stands(&m->row, m->run, clock_wall_ms(), &state);
	task = task_of(&m->row, &state, id);
	uuid_format(&m->row.run, run);
	say = xasprintf("run %s goes on as task %s; its answer is the task's "
			"result",
	    run, id);
	tool_end_as_task(m->t, &task, say);
}

static void
put(struct task_making *m)
{
	bus_leave(&m->run->bus, &m->member);
	m->is_put = true;
	m->row.created_ms = clock_wall_ms();
	m->row.expires_ms = m->row.created_ms + m->ttl_ms;
	store_task_put(
	    core_store(m->t->core), &m->row, TASKS_PER_PRINCIPAL, put_cb, m);
}

/* Of a run that could not be recorded the tool's own wait hears before. */
static void
on_bus(const struct bus_event *ev, void *arg)
{
	if (ev->kind == BUS_RUN_RECORDED)
		put(arg);
	else if (ev->kind == BUS_RUN_REFUSED)
		no_task(arg, ev->why);
}

static void
make(struct task_making *m)
{
	if (m->run->recorded == RUN_IS_RECORDED) {
		put(m);
		return;
	}
	bus_join(&m->run->bus, &m->member, on_bus, m);
	run_record(m->run);
}

void
tool_tasks_run(struct tool_call *t, struct run *r, uint64_t bits)
{
	struct task_making *m = t->making;

	if (m == NULL)
		return;
	m->run = run_ref(r);
	fill_row(m, bits);
	if (m->is_asked)
		make(m);
}

static bool
hold(struct tool_call *t, struct mcp_content *content, enum mcp_outcome outcome)
{
	struct task_making *m = t->making;

	if (m->run == NULL || outcome != MCP_TOOL_DONE ||
	    (!m->is_asked && m->run->phase == RUN_OVER))
		return false;
	if (m->is_asked) { /* the task says it, when it is asked */
		mcp_content_free(content);
		return true;
	}
	m->held = content;
	make(m);
	return true;
}

static const struct tool_task_ops calls_ops = {
    .admit = admit, .hold = hold, .drop = drop};

/* ---- what is asked of tasks */

enum task_question {
	ASKED_STATE,
	ASKED_RESULT,
	ASKED_CANCEL,
	ASKED_LIST
};

/* One tasks/ request.  It lives until it is answered, by what the database or
 * the tool calls back. */
struct task_asking {
	LIST_ENTRY(task_asking) link;
	struct tool_tasks *all;
	struct mcp_call *mcp;
	enum task_question asked;
	struct uuid uuid;
	unsigned int nreads;
	struct store_task row; /* as it was read last */
	struct task_status state;
};

static struct task_asking *
asking_new(
    struct tool_tasks *all, struct mcp_call *mcp, enum task_question asked)
{
	struct task_asking *a = xcalloc(1, sizeof(*a));

	a->all = all;
	a->mcp = mcp;
	a->asked = asked;
	LIST_INSERT_HEAD(&all->askings, a, link);
	return a;
}

static struct mcp_call *
asking_end(struct task_asking *a)
{
	struct mcp_call *mcp = a->mcp;

	LIST_REMOVE(a, link);
	store_task_clear(&a->row);
	free(a);
	return mcp;
}

static const struct principal *
who_asks(const struct task_asking *a)
{
	return mcp_call_base(a->mcp)->who;
}

static void
say_failure(struct task_asking *a, const char *why)
{
	mcp_call_error(asking_end(a), MCP_INTERNAL_ERROR, why, NULL);
}

static void
say_unknown(struct task_asking *a)
{
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&a->uuid, id);
	mcp_call_no_task(asking_end(a), id);
}

/* content: what it came to, taken over; NULL: nobody wants to see it */
static void
say_state(struct task_asking *a, struct mcp_content *content,
    enum mcp_outcome outcome)
{
	struct mcp_task_end end = {.content = content, .outcome = outcome};
	struct task_status state = a->state;
	char id[UUID_TEXT_LEN + 1];
	struct mcp_task task = task_of(&a->row, &state, id);

	mcp_call_task_state(asking_end(a), &task, &end);
}

/* ---- its result */

static size_t
read_wish(const struct store_task *row, uint8_t token[MCP_TOKEN_MAX])
{
	AUTO(auto_json) json_t *wish = json_loads(row->wish, 0, NULL);
	const char *hex = js_text(wish, WISH_TOKEN);
	size_t n = strlen(hex) / 2;

	return n > MCP_TOKEN_MAX || hex_decode(hex, token, n) != 0 ? 0 : n;
}

static void
said_cb(struct mcp_content *content, enum mcp_outcome outcome, void *arg)
{
	say_state(arg, content, outcome);
}

/* The tool's answer: that to the request, or a part of the state. */
static void
say_again(struct task_asking *a)
{
	struct tool_again again = {
	    .mcp = a->mcp, .bound = tools_find(a->all->tools, a->row.tool)};

	again.n = read_wish(&a->row, again.token);
	if (again.n == 0 || again.bound == NULL) {
		say_failure(a, "this server does not have the task's tool");
		return;
	}
	if (a->asked == ASKED_STATE) {
		again.on_said = said_cb;
		again.arg = a;
	} else {
		(void)asking_end(a);
	}
	tool_say_again(&again);
}

/* ---- its cancel */

static void
canceled_cb(int rc, const struct err *why, void *arg)
{
	struct task_asking *a = arg;

	if (rc != 0) {
		say_failure(a, why->msg);
		return;
	}
	tell(a->all, who_asks(a)->tenant, &a->uuid);
	say_state(a, NULL, MCP_TOOL_DONE);
}

static void
note_cancel(const struct task_asking *a, const struct run *run)
{
	const struct call *call = mcp_call_base(a->mcp);
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&a->row.run, id);
	acts_note(core_acts(a->all->core),
	    &(struct act){.what = "run.cancel",
		.who = call->who,
		.origin = call->origin,
		.request_id = call->request_id,
		.tenant = call->who->tenant_name,
		.subject = id,
		.detail = run->row.sandbox_name});
}

static void
cancel(struct task_asking *a, struct run *run)
{
	if (a->state.standing != TASK_WORKS) {
		say_state(a, NULL, MCP_TOOL_DONE);
		return;
	}
	if (run != NULL) {
		note_cancel(a, run);
		run_cancel(run, RUNLOG_CANCELED);
	}
	store_task_cancel(
	    core_store(a->all->core), &a->row, clock_wall_ms(), canceled_cb, a);
}

/* ---- found */

static void row_cb(
    int rc, const struct store_task *row, const struct err *why, void *arg);

static void
look(struct task_asking *a)
{
	a->nreads++;
	store_task_get(core_store(a->all->core), who_asks(a), &a->uuid,
	    clock_wall_ms(), row_cb, a);
}

static void
found(struct task_asking *a)
{
	struct run *run = runs_find_uuid(
	    core_runs(a->all->core), who_asks(a)->tenant, &a->row.run);

	if (task_is_stale(&a->row, run) && a->nreads < READS_MAX) {
		look(a);
		return;
	}
	task_stands(&a->row, run, clock_wall_ms(), &a->state);
	if (a->asked == ASKED_CANCEL)
		cancel(a, run);
	else if (a->asked == ASKED_RESULT ||
	    (mcp_call_shows_end(a->mcp) &&
		(a->state.standing == TASK_IS_DONE ||
		    a->state.standing == TASK_HAS_FAILED)))
		say_again(a);
	else
		say_state(a, NULL,
		    a->state.standing == TASK_HAS_FAILED ? MCP_TOOL_FAILED :
							   MCP_TOOL_DONE);
}

static void
row_cb(int rc, const struct store_task *row, const struct err *why, void *arg)
{
	struct task_asking *a = arg;

	if (rc == ERR_NOTFOUND) {
		say_unknown(a);
		return;
	}
	if (rc != 0) {
		say_failure(a, why->msg);
		return;
	}
	store_task_clear(&a->row);
	store_task_copy(&a->row, row);
	found(a);
}

static void
ask(struct mcp_call *mcp, const char *id, struct tool_tasks *all,
    enum task_question asked)
{
	struct task_asking *a;
	struct uuid uuid;

	if (uuid_parse(id, &uuid) != 0) {
		mcp_call_no_task(mcp, id);
		return;
	}
	a = asking_new(all, mcp, asked);
	a->uuid = uuid;
	look(a);
}

/* ---- the list */

static void
format_cursor(const struct store_task *row, char out[CURSOR_TIME + 40])
{
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&row->uuid, id);
	(void)snprintf(out, CURSOR_TIME + 40, "%016llx%s",
	    (unsigned long long)row->created_ms, id);
}

static int
parse_cursor(const char *text, struct store_task_place *out)
{
	uint8_t time[CURSOR_TIME / 2];
	char digits[CURSOR_TIME + 1];
	uint64_t ms = 0;

	if (strlen(text) != CURSOR_TIME + UUID_TEXT_LEN)
		return -1;
	memcpy(digits, text, CURSOR_TIME);
	digits[CURSOR_TIME] = '\0';
	if (hex_decode(digits, time, sizeof(time)) != 0 ||
	    uuid_parse(text + CURSOR_TIME, &out->uuid) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(time); i++)
		ms = ms << 8 | time[i];
	if (ms > INT64_MAX)
		return -1;
	out->created_ms = (int64_t)ms;
	return 0;
}

static void
page_cb(int rc, const struct store_task_page *page, const struct err *why,
    void *arg)
{
	struct task_asking *a = arg;
	struct core *core = a->all->core;
	struct mcp_task tasks[PAGE];
	struct task_status states[PAGE];
	char ids[PAGE][UUID_TEXT_LEN + 1], next[CURSOR_TIME + 40];

	if (rc != 0) {
		say_failure(a, why->msg);
		return;
	}
	for (size_t i = 0; i < page->n; i++) {
		const struct store_task *row = &page->rows[i];

		task_stands(row,
		    runs_find_uuid(
			core_runs(core), who_asks(a)->tenant, &row->run),
		    clock_wall_ms(), &states[i]);
		tasks[i] = task_of(row, &states[i], ids[i]);
	}
	if (page->has_more)
		format_cursor(&page->rows[page->n - 1], next);
	mcp_call_task_list(
	    asking_end(a), tasks, page->n, page->has_more ? next : NULL);
}

static void
on_list(struct mcp_call *mcp, const char *cursor, void *arg)
{
	struct tool_tasks *all = arg;
	struct store_task_place after;
	struct task_asking *a;

	if (cursor != NULL && parse_cursor(cursor, &after) != 0) {
		mcp_call_error(mcp, MCP_INVALID_PARAMS,
		    "params.cursor: not one that tasks/list answered; list "
		    "from the beginning",
		    NULL);
		return;
	}
	a = asking_new(all, mcp, ASKED_LIST);
	store_task_list(core_store(all->core), who_asks(a),
	    cursor == NULL ? NULL : &after, clock_wall_ms(), PAGE, page_cb, a);
}

/* ---- the offer */

static void
on_get(struct mcp_call *mcp, const char *id, void *arg)
{
	ask(mcp, id, arg, ASKED_STATE);
}

static void
on_result(struct mcp_call *mcp, const char *id, void *arg)
{
	ask(mcp, id, arg, ASKED_RESULT);
}

static void
on_cancel(struct mcp_call *mcp, const char *id, void *arg)
{
	ask(mcp, id, arg, ASKED_CANCEL);
}

static const struct mcp_task_ops ops = {
    .get = on_get, .result = on_result, .cancel = on_cancel, .list = on_list};

int
tool_tasks_new(struct tools *ts, struct core *core, struct mcp *m,
    struct tool_tasks **out, struct err *e)
{
	struct tool_tasks *all = xcalloc(1, sizeof(*all));

	all->core = core;
	all->tools = ts;
	all->mcp = m;
	LIST_INIT(&all->askings);
	LIST_INIT(&all->watches);
	LIST_INIT(&all->makings);
	if (watch_unfinished(all, e) != 0) {
		tool_tasks_free(all);
		return e->code;
	}
	tools_set_tasks(ts, &calls_ops, all);
	mcp_set_tasks(m, &ops, all);
	*out = all;
	return 0;
}

void
tool_tasks_free(struct tool_tasks *all)
{
	struct task_asking *a;
	struct task_making *m;
	struct task_watch *w;

	if (all == NULL)
		return;
	/* The database calls nobody back any more. */
	while ((m = LIST_FIRST(&all->makings)) != NULL)
		making_free(m);
	while ((a = LIST_FIRST(&all->askings)) != NULL)
		say_failure(a, "the server is shutting down");
	while ((w = LIST_FIRST(&all->watches)) != NULL)
		watch_free(w);
	free(all);
}
