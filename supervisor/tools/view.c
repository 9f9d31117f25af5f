#include "supervisor/tools/view.h"

#include <openssl/evp.h>

#include "common/clock.h"
#include "common/hex.h"
#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/tools/line_ends.h"

#define OLD_FILES_NOTE                                                         \
	"the sandbox was lost and made again: /workspace has the files of "    \
	"before, processes did not outlive it"

json_t *
view_time(int64_t wall_ms)
{
	char text[CLOCK_TEXT_MAX];

	if (wall_ms == 0)
		return json_null();
	clock_format(wall_ms, text);
	return json_string(text);
}

json_t *
view_uuid(const struct uuid *u)
{
	char text[UUID_TEXT_LEN + 1];

	if (uuid_is_zero(u))
		return json_null();
	uuid_format(u, text);
	return json_string(text);
}

json_t *
view_base64(const void *p, size_t n)
{
	AUTO(auto_free) char *text = xmalloc((n + 2) / 3 * 4 + 1);

	(void)EVP_EncodeBlock((unsigned char *)text, p, (int)n);
	return json_string(text);
}

/* A client's text is UTF-8 already; what we made of names is too. */
static void
set_text(json_t *o, const char *key, const char *text)
{
	if (text[0] != '\0')
		json_object_set_new(
		    o, key, js_string_bytes(text, strlen(text), NULL));
}

static void
set_parsed(json_t *o, const char *key, const char *json)
{
	if (json[0] != '\0')
		json_object_set_new(o, key, json_loads(json, 0, NULL));
}

/* Bytes as text and, where the text cannot say them, as they are. */
static void
set_bytes(json_t *o, const char *key, const uint8_t *p, size_t n)
{
	AUTO(auto_free) char *exact = NULL;
	bool lossy;

	json_object_set_new(o, key, js_string_bytes(p, n, &lossy));
	if (!lossy)
		return;
	exact = xasprintf("%s_base64", key);
	json_object_set_new(o, exact, view_base64(p, n));
}

static size_t
sum_at_level(const size_t *wants, size_t n, size_t level)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += wants[i] < level ? wants[i] : level;
	return sum;
}

size_t
view_share(const size_t *wants, size_t n, size_t max)
{
	size_t low = 0, high = max;

	while (low < high) {
		size_t mid = low + (high - low) / 2 + 1;

		if (sum_at_level(wants, n, mid) <= max)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

/* ---- output */

/* Bytes that one of a kind may take, as JSON; of a stream as they are. */
struct view_levels {
	size_t wishes;
	size_t heads;
	size_t tail; /* bytes as they are */
	size_t stream;
};

static size_t
part_of(size_t max, enum view_size size)
{
	return size == VIEW_FOR_TOOL ? max / VIEW_TOOL_PART : max;
}

static size_t
at_most(size_t n, size_t max)
{
	return max > 0 && n > max ? max : n;
}

/* A tail's bytes as JSON are at most so many times more. */
#define COST_MAX 8

/* Tails get up to one half of what all output may take, heads the rest. */
static void
share_output(struct view_levels *at, const struct store_run *row,
    const struct log_digest *d, const struct view_wish *wish)
{
	const size_t n = 2 * (size_t)row->ncommands;
	const size_t max = part_of(VIEW_OUTPUT_MAX, wish->size);
	AUTO(auto_free) size_t *heads = xcalloc(n, sizeof(*heads));
	AUTO(auto_free) size_t *tails = xcalloc(n, sizeof(*tails));
	size_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		const struct log_stream *s = &d->commands[i / 2].out[i % 2];

		heads[i] = js_bytes_cost(buf_data(&s->head),
		    at_most(buf_len(&s->head), wish->stream_max));
		tails[i] = js_bytes_cost(buf_data(&s->tail), buf_len(&s->tail));
		sum += tails[i];
	}
	at->tail = LOG_TAIL_BYTES;
	if (sum > max / 2) {
		at->tail = view_share(tails, n, max / 2) / COST_MAX;
		sum = max / 2;
	}
	at->heads = view_share(heads, n, max - sum);
}

/* What of a stream is shown: its first bytes and, if there are more, its last.
 * Both are cut to whole characters. */
struct piece {
	const uint8_t *head, *tail;
	size_t nhead, ntail;
};

/* A tail of at most max bytes that begins with a character. */
static void
cut_tail(struct piece *p, size_t max)
{
	size_t skip = p->ntail > max ? p->ntail - max : 0;

	p->tail += skip;
	p->ntail -= skip;
	skip = utf8_broken_start_len(p->tail, p->ntail);
	p->tail += skip;
	p->ntail -= skip;
}

/*
 *	whole	there is no more of it than the head
 *	fit	bytes of the head that the answer has room for
 *	max	of both; 0: no limit
 */
static void
cut_piece(struct piece *p, bool whole, size_t fit, size_t max)
{
	bool is_long = max > 0 && p->nhead + p->ntail > max;

	if (is_long && p->ntail == 0 && whole) {
		p->tail = p->head + max / 2;
		p->ntail = p->nhead - max / 2;
	}
	if (is_long) { /* a short tail leaves more to the head */
		size_t room = max - (p->ntail < max / 2 ? p->ntail : max / 2);

		fit = fit < room ? fit : room;
	}
	if (fit >= p->nhead && whole)
		return;
	p->nhead = utf8_complete_len(p->head, fit < p->nhead ? fit : p->nhead);
	if (p->ntail > 0)
		cut_tail(p, is_long ? max / 2 : p->ntail);
}

static const struct stream_keys {
	const char *head, *bytes, *cut, *tail, *dropped;
} stream_keys[] = {{"stdout", "stdout_bytes", "stdout_truncated", "stdout_tail",
		       "stdout_dropped"},
    {"stderr", "stderr_bytes", "stderr_truncated", "stderr_tail",
	"stderr_dropped"}};

/* What of total bytes is not in the head. */
static void
set_rest(json_t *o, const char *tail, const char *dropped,
    const struct piece *p, uint64_t total)
{
	if (total == p->nhead)
		return;
	if (p->ntail > 0)
		set_bytes(o, tail, p->tail, p->ntail);
	json_object_set_new(o, dropped,
	    json_integer((json_int_t)(total - p->nhead - p->ntail)));
}

static void
set_stream(json_t *o, const struct stream_keys *keys,
    const struct log_stream *s, uint64_t total, const struct view_levels *at)
{
	size_t n = buf_len(&s->head);
	struct piece p = {
	    buf_data(&s->head), buf_data(&s->tail), n, buf_len(&s->tail)};

	if (p.ntail > at->tail)
		cut_tail(&p, at->tail);
	if (total < s->bytes)
		total = s->bytes; /* it runs: its row does not know yet */
	cut_piece(
	    &p, total == n, js_bytes_fit(p.head, n, at->heads), at->stream);
	json_object_set_new(o, keys->bytes, json_integer((json_int_t)total));
	json_object_set_new(o, keys->cut, json_boolean(total > p.nhead));
	set_bytes(o, keys->head, p.head, p.nhead);
	set_rest(o, keys->tail, keys->dropped, &p, total);
}

void
view_merged(json_t *o, const struct log_digest *d, size_t stream_max)
{
	size_t n = buf_len(&d->merged);
	struct piece p = {buf_data(&d->merged), NULL, n, 0};
	uint64_t total = 0;

	for (uint32_t i = 0; i < d->ncommands; i++)
		total +=
		    d->commands[i].out[0].bytes + d->commands[i].out[1].bytes;
	cut_piece(&p, total == n, js_bytes_fit(p.head, n, VIEW_OUTPUT_MAX),
	    stream_max);
	set_bytes(o, "output", p.head, p.nhead);
	json_object_set_new(
	    o, "output_truncated", json_boolean(total > p.nhead));
	set_rest(o, "output_tail", "output_dropped", &p, total);
}

/* ---- commands */

/* argv_json and env_json are JSON already. */
static size_t
wish_cost(const struct store_command *c)
{
	return js_bytes_cost(c->shell, strlen(c->shell)) +
	    strlen(c->argv_json) + strlen(c->env_json) +
	    js_bytes_cost(c->cwd, strlen(c->cwd)) +
	    js_bytes_cost(c->error, strlen(c->error));
}

size_t
view_wishes_level(const struct store_run *row, enum view_size size)
{
	AUTO(auto_free)
	size_t *wants = xcalloc(row->ncommands, sizeof(*wants));

	for (uint32_t i = 0; i < row->ncommands; i++)
		wants[i] = wish_cost(&row->commands[i]);
	return view_share(
	    wants, row->ncommands, part_of(VIEW_WISHES_MAX, size));
}

/* What was asked for; of what is too long for its share, the beginning of the
 * shell's text alone. */
void
view_asked(json_t *o, const struct store_command *c, size_t level)
{
	size_t n;

	if (wish_cost(c) <= level) {
		if (store_command_is_cut(c))
			json_object_set_new(
			    o, "request_truncated", json_true());
		set_text(o, "shell", c->shell);
		set_parsed(o, "argv", c->argv_json);
		set_text(o, "cwd", c->cwd);
		set_parsed(o, "env", c->env_json);
		set_text(o, "error", c->error);
		return;
	}
	n = js_bytes_fit(c->shell, strlen(c->shell), level);
	n = utf8_complete_len(c->shell, n);
	if (n > 0)
		json_object_set_new(
		    o, "shell", js_string_bytes(c->shell, n, NULL));
	json_object_set_new(o, "request_truncated", json_true());
}

void
view_note_line_ends(json_t *o)
{
	json_object_set_new(o, "note", json_string(LINE_ENDS_NOTE));
}

void
view_note_old_files(json_t *o)
{
	json_object_set_new(o, "sandbox_note", json_string(OLD_FILES_NOTE));
}

static json_t *
view_left_one(const struct runlog_left_one *one)
{
	return json_pack("{s:o, s:I, s:s}", "process",
	    json_sprintf("p%lu", (unsigned long)one->id), "pid",
	    (json_int_t)one->pid, "command_line", one->text);
}

void
view_left(
    json_t *o, const struct store_command *c, const struct log_command *log)
{
	struct runlog_left left = {.count = c->left_running};
	json_t *list, *of;
	struct err e;

	if (c->left_running == 0 && buf_len(&log->left) == 0)
		return;
	list = json_array();
	/* The log says which; when it is evicted, the row how many. */
	if (buf_len(&log->left) > 0 &&
	    runlog_parse_left(
		buf_data(&log->left), buf_len(&log->left), &left, &e) != 0)
		left.nshown = 0;
	for (uint32_t i = 0; i < left.nshown; i++)
		json_array_append_new(list, view_left_one(&left.shown[i]));
	of = json_pack(
	    "{s:I, s:o}", "count", (json_int_t)left.count, "processes", list);
	if (left.killed)
		json_object_set_new(of, "killed", json_true());
	if (left.count > 0)
		json_object_set_new(o, "left_running", of);
	else
		json_decref(of);
}

/* Of code another language may have it, and its own call says so. */
static void
set_note(json_t *o, const struct store_run *row, const struct store_command *c)
{
	if (row->language[0] == '\0' &&
	    line_ends_are_crlf(c->shell, strlen(c->shell)))
		view_note_line_ends(o);
}

/* The log knows first, and the row when it is evicted. */
void
view_memory_kills(
    json_t *o, const struct store_command *c, const struct log_command *log)
{
	uint32_t n = log->state == LOG_COMMAND_ENDED ? log->end.memory_kills :
						       c->memory_kills;

	if (n > 0)
		json_object_set_new(o, "memory_kills", json_integer(n));
}

static json_t *
view_command(const struct store_command *c, const struct log_command *log,
    const struct view_levels *at)
{
	json_t *o = json_object();

	json_object_set_new(o, "index", json_integer(c->index));
	view_asked(o, c, at->wishes);
	set_text(o, "status", command_status_word(c->status));
	set_text(o, "end_reason", runlog_reason_word(c->end_reason));
	json_object_set_new(o, "exit_code",
	    c->end_reason == 0 ? json_null() : json_integer(c->exit_code));
	if (c->signal != 0)
		json_object_set_new(o, "signal", json_integer(c->signal));
	json_object_set_new(o, "timeout_ms", json_integer(c->timeout_ms));
	json_object_set_new(o, "started_at", view_time(c->started_ms));
	json_object_set_new(o, "ended_at", view_time(c->ended_ms));
	set_stream(o, &stream_keys[0], &log->out[0], c->stdout_bytes, at);
	set_stream(o, &stream_keys[1], &log->out[1], c->stderr_bytes, at);
	view_memory_kills(o, c, log);
	view_left(o, c, log);
	return o;
}

/* ---- artifacts */

static json_t *
view_artifact(const struct store_artifact *a)
{
	json_t *o = json_object();
	char digest[HEX_BYTES(sizeof(a->sha256))];

	hex_encode(a->sha256, sizeof(a->sha256), digest);
	json_object_set_new(o, "path", json_string(a->path));
	json_object_set_new(o, "size", json_integer((json_int_t)a->size));
	json_object_set_new(o, "sha256", json_string(digest));
	if (a->lost_ms != 0)
		json_object_set_new(o, "lost", json_true());
	return o;
}

#define ARTIFACT_WORDS 140 /* beside its path: keys, size, digest */

/* From wish->artifacts_from on, as many as there is room for. */
static void
set_artifacts(
    json_t *o, const struct store_run *row, const struct view_wish *wish)
{
	const size_t max = part_of(VIEW_ARTIFACTS_MAX, wish->size);
	json_t *list = json_array();
	size_t sum = 0, cost;
	uint32_t i = wish->artifacts_from;

	for (; i >= row->artifacts_from &&
	     i - row->artifacts_from < row->nartifacts;
	     i++) {
		const struct store_artifact *a =
		    &row->artifacts[i - row->artifacts_from];

		cost = js_bytes_cost(a->path, strlen(a->path)) + ARTIFACT_WORDS;
		if (sum + cost > max)
			break;
		sum += cost;
		json_array_append_new(list, view_artifact(a));
	}
	json_object_set_new(o, "artifacts", list);
	if (wish->artifacts_from > 0 && wish->size == VIEW_FOR_TOOL)
		json_object_set_new(
		    o, "artifacts_from", json_integer(wish->artifacts_from));
	if (i >= row->artifacts_total)
		return;
	json_object_set_new(
	    o, "artifacts_dropped", json_integer(row->artifacts_total - i));
	json_object_set_new(o, "artifacts_next", json_integer(i));
}

void
view_artifacts(json_t *o, const struct store_run *row)
{
	set_artifacts(o, row, &(struct view_wish){.size = VIEW_FOR_TOOL});
}

static void
view_head(json_t *o, const struct store_run *row)
{
	json_object_set_new(o, "run_id", view_uuid(&row->uuid));
	set_text(o, "tool", row->tool);
	set_text(o, "identifier", row->identifier);
	set_text(o, "state", run_state_word(row->state));
	set_text(o, "end_reason", runlog_reason_word(row->end_reason));
	json_object_set_new(o, "created_at", view_time(row->created_ms));
	json_object_set_new(o, "started_at", view_time(row->started_ms));
	json_object_set_new(o, "ended_at", view_time(row->ended_ms));
	if (row->evicted_ms != 0)
		json_object_set_new(
		    o, "output_evicted_at", view_time(row->evicted_ms));
	if (row->lost_ms != 0)
		json_object_set_new(
		    o, "output_lost_at", view_time(row->lost_ms));
	json_object_set_new(
	    o, "sandbox_container_id", json_string(row->container_id));
	json_object_set_new(o, "sandbox_name", json_string(row->sandbox_name));
}

const char *
view_wait_word(enum sched_wait waits)
{
	switch (waits) {
	case SCHED_WAITS_FOR_SANDBOX:
		return "sandbox";
	case SCHED_WAITS_FOR_RUNS:
		return "other_runs";
	case SCHED_WAITS_FOR_LOCK:
		return "lock";
	case SCHED_WAITS_FOR_DAY:
		return "quota run_seconds_per_day";
	case SCHED_WAITS_FOR_QUOTA:
		return "quota runs_running";
	case SCHED_WAITS_FOR_PLACE:
		return "other_tenants";
	default:
		return "";
	}
}

json_t *
view_run(const struct store_run *row, const struct log_digest *d,
    const struct view_wish *wish)
{
	struct view_levels at = {.stream = wish->stream_max};
	json_t *o = json_object(), *commands = json_array();

	at.wishes = view_wishes_level(row, wish->size);
	share_output(&at, row, d, wish);
	view_head(o, row);
	set_text(o, "waits_for", view_wait_word(wish->waits));
	for (uint32_t i = 0; i < row->ncommands; i++) {
		const struct store_command *c = &row->commands[i];
		json_t *command = view_command(c, &d->commands[i], &at);

		set_note(command, row, c);
		json_array_append_new(commands, command);
	}
	json_object_set_new(o, "commands", commands);
	set_artifacts(o, row, wish);
	set_text(o, "artifacts_error", row->artifacts_error);
	set_text(o, "error", row->error);
	return o;
}

/* ---- a run that goes on */

/* The command that runs, or will next. */
static uint32_t
current_command(const struct store_run *row, const struct log_digest *d)
{
	uint32_t i = 0;

	while (
	    i + 1 < row->ncommands && d->commands[i].state == LOG_COMMAND_ENDED)
		i++;
	return i;
}

/* The last bytes that there are of a stream: the tail, or of a short one the
 * head. */
static void
set_last(json_t *o, const struct stream_keys *keys, const struct log_stream *s,
    size_t max)
{
	const struct buf *b = buf_len(&s->tail) > 0 ? &s->tail : &s->head;
	struct piece p = {.tail = buf_data(b), .ntail = buf_len(b)};
	struct buf both;

	json_object_set_new(o, keys->bytes, json_integer((json_int_t)s->bytes));
	if (s->bytes == 0)
		return;
	buf_init(&both, 0);
	/* A short tail follows the head at once. */
	if (buf_len(&s->head) + buf_len(&s->tail) == s->bytes &&
	    buf_len(&s->tail) < max) {
		(void)!buf_append(&both, buf_data(&s->head), buf_len(&s->head));
		(void)!buf_append(&both, buf_data(&s->tail), buf_len(&s->tail));
		p.tail = buf_data(&both);
		p.ntail = buf_len(&both);
	}
	cut_tail(&p, max);
	set_bytes(o, keys->tail, p.tail, p.ntail);
	buf_clear(&both);
}

static void
set_current(json_t *o, const struct store_run *row, const struct log_digest *d,
    int64_t now_ms, size_t tail_max)
{
	const uint32_t i = current_command(row, d);
	const struct log_command *log = &d->commands[i];
	const int64_t started_ms = log->started_us / 1000;
	size_t wants[2], level;
	int64_t left_ms;

	json_object_set_new(o, "command", json_integer(i));
	json_object_set_new(o, "commands", json_integer(row->ncommands));
	if (log->state == LOG_COMMAND_RUNNING && started_ms > 0) {
		left_ms = started_ms + row->commands[i].timeout_ms - now_ms;
		json_object_set_new(
		    o, "killed_in_ms", json_integer(left_ms > 0 ? left_ms : 0));
	}
	if (tail_max == 0)
		return;
	for (size_t k = 0; k < 2; k++)
		wants[k] = log->out[k].bytes < tail_max ?
		    (size_t)log->out[k].bytes :
		    tail_max;
	level = view_share(wants, 2, tail_max);
	for (size_t k = 0; k < 2; k++)
		set_last(o, &stream_keys[k], &log->out[k], level);
}

json_t *
view_so_far(const struct store_run *row, const struct log_digest *d,
    enum sched_wait waits, size_t tail_max)
{
	const int64_t now_ms = clock_wall_ms();
	int64_t since_ms =
	    row->started_ms > 0 ? row->started_ms : row->created_ms;
	json_t *o = json_object();

	set_text(o, "state", run_state_word(row->state));
	set_text(o, "waits_for", view_wait_word(waits));
	json_object_set_new(o, "elapsed_ms",
	    json_integer(now_ms > since_ms ? now_ms - since_ms : 0));
	if (d != NULL && row->state == RUN_STATE_RUNNING)
		set_current(o, row, d, now_ms, tail_max);
	return o;
}

const char *
view_sandbox_state(const struct sandbox *sb)
{
	return sb->state == SANDBOX_READY ? SANDBOX_IS_READY_WORD :
					    SANDBOX_IS_CREATING_WORD;
}

json_t *
view_sandbox(const struct sandbox *sb)
{
	const struct store_sandbox *row = &sb->row;

	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:o}",
	    "identifier", row->identifier, "state", view_sandbox_state(sb),
	    "name", row->name, "image", row->image, "active_runs",
	    (json_int_t)sched_queue_count(&sb->queue), "left_running",
	    (json_int_t)sb->left, "created_at", view_time(row->created_ms),
	    "expires_at", view_time(row->expires_ms));
}
