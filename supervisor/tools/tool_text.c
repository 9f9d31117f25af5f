/*
 * tool_text.c - results as text for a model: what a terminal would show
 *
 *	run 3f0c... completed
 *	exit code 0
 *	hi
 *	artifacts below /artifacts/demo/3f0c...: plot.png (20114 bytes)
 *
 * One line says how it stands; then comes each command with its end and its
 * output as a terminal shows it (screen.h); then the files it left.  Long
 * output is a head and a tail with the exact number of bytes between them.
 * Nothing is said twice, and there is no JSON: structured content is for
 * programs.
 */
#include "supervisor/tools/tool_text.h"

#include <stdio.h>

#include <openssl/evp.h>

#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/tools/page.h"
#include "supervisor/tools/screen.h"
#include "supervisor/tools/tool.h"
#include "supervisor/tools/view.h"

#define SUMMARY_MAX 1024
#define CUT_WORDS_MAX 256
#define OUTPUT_MAX (TOOL_TEXT_MAX / 2) /* bytes of all output, about */
#define ARTIFACTS_MAX 20               /* that are named */
#define CURSOR_HINT "get_run with cursor \"0\" pages through all"

/* ---- names and messages, in a line with others */

#define NAME_SHOWN 200    /* bytes of a file's name */
#define MESSAGE_SHOWN 700 /* of why something is as it is */

/* The first bytes of it, as many as out has room for: whole characters, and
 * none that would end the line or that a terminal would take for itself. */
static const char *
in_line(char *out, size_t size, const char *text)
{
	utf8_copy(out, size, text);
	out[utf8_mask_controls(out, strlen(out))] = '\0';
	return out;
}

/* ---- output */

static size_t
tail_start(const char *p, size_t n, size_t part)
{
	size_t at = n > part ? n - part : 0;

	while (at < n && ((unsigned char)p[at] & 0xc0) == 0x80)
		at++;
	return at;
}

/* What the result holds of a stream, and how much of it is in neither.  The
 * bytes as they were printed are there where text cannot say them. */
struct shown {
	const char *head, *tail;
	const char *head_base64, *tail_base64; /* or NULL */
	size_t nhead, ntail;
	uint64_t dropped;
};

/* How many bytes were printed for the first n of text: U+FFFD stands for one,
 * unless it was printed itself. */
static size_t
printed_len(const char *text, size_t n, const char *base64)
{
	static const char mark[] = "\xef\xbf\xbd";
	size_t len = base64 == NULL ? 0 : strlen(base64), at = 0, printed = 0;
	AUTO(auto_free) unsigned char *bytes = NULL;

	if (base64 == NULL)
		return n;
	bytes = xcalloc(1, len / 4 * 3 + 3);
	(void)EVP_DecodeBlock(
	    bytes, (const unsigned char *)base64, (int)(len / 4 * 4));
	len = len / 4 * 3;
	for (; at < n; at++, printed++)
		if (n - at >= 3 && memcmp(text + at, mark, 3) == 0 &&
		    (printed >= len || memcmp(bytes + printed, mark, 3) != 0))
			at += 2;
	return printed;
}

/* Does what a terminal would show of it have room?  Most does as it is. */
static bool
fits(const char *p, size_t n, size_t room)
{
	struct buf text;
	bool does;

	if (n <= room)
		return true;
	buf_init(&text, 0);
	screen_show(&text, p, n);
	does = buf_len(&text) <= room;
	buf_clear(&text);
	return does;
}

/* The last bytes of what is shown; none where only a beginning was kept. */
static size_t
take_end(const struct shown *s, size_t part, const char **end)
{
	const char *p = s->ntail > 0 ? s->tail : s->head;
	size_t n = s->ntail > 0 ? s->ntail : s->nhead;
	size_t from = tail_start(p, n, part);

	if (s->ntail == 0 && s->dropped > 0)
		from = n;
	else if (s->ntail > 0 && fits(p, n, part))
		from = 0;
	*end = p + from;
	return n - from;
}

/* As many bytes as were printed between the head that is shown and the end. */
static uint64_t
left_out(const struct shown *s, size_t head, size_t end)
{
	size_t shown = printed_len(s->head, head, s->head_base64);

	if (s->ntail == 0)
		return s->dropped +
		    printed_len(s->head, s->nhead - end, s->head_base64) -
		    shown;
	return s->dropped + printed_len(s->head, s->nhead, s->head_base64) -
	    shown + printed_len(s->tail, s->ntail - end, s->tail_base64);
}

/* Head and tail that meet are one, and fewer bytes when a terminal shows them.
 * False: too many. */
static bool
add_whole(struct buf *b, const struct shown *s, size_t room)
{
	struct buf all, text;
	bool does;

	if (s->dropped > 0)
		return false;
	buf_init(&all, 0);
	buf_init(&text, 0);
	(void)!buf_append(&all, s->head, s->nhead);
	(void)!buf_append(&all, s->tail, s->ntail);
	screen_show_block(&text, buf_data(&all), buf_len(&all));
	does = buf_len(&all) <= room || buf_len(&text) <= room;
	if (does)
		(void)!buf_append(b, buf_data(&text), buf_len(&text));
	buf_clear(&all);
	buf_clear(&text);
	return does;
}

/* Cut where neither a character nor a sequence is; what is counted as left out
 * are bytes as they were printed. */
static void
add_cut(struct buf *b, const struct shown *s, size_t part)
{
	size_t head = fits(s->head, s->nhead, part) ? s->nhead : part;
	const char *end;
	size_t n, skip;
	uint64_t out;

	head = utf8_complete_len(s->head, head);
	head -= screen_unfinished_len(s->head, head);
	n = take_end(s, part, &end);
	skip = screen_broken_start_len(end, n);
	out = left_out(s, head, n - skip);
	screen_show_block(b, s->head, head);
	if (out > 0)
		(void)buf_printf(b, "[... %llu bytes left out; %s ...]\n",
		    (unsigned long long)out, CURSOR_HINT);
	screen_show_block(b, end + skip, n - skip);
}

static void
add_stream(struct buf *b, const struct shown *s, size_t part)
{
	if (s->dropped == 0 && s->ntail == 0 && s->nhead <= 2 * part)
		screen_show_block(b, s->head, s->nhead);
	else if (!add_whole(b, s, 2 * part))
		add_cut(b, s, part);
}

static const json_t *
member(const json_t *o, const char *name, const char *what)
{
	char key[32];

	(void)snprintf(key, sizeof(key), "%s_%s", name, what);
	return json_object_get(o, key);
}

static void
take_stream(const json_t *o, const char *name, struct shown *s)
{
	const json_t *head = json_object_get(o, name);
	const json_t *tail = member(o, name, "tail");
	const json_t *left = member(o, name, "dropped");
	uint64_t total = (uint64_t)json_integer_value(member(o, name, "bytes"));

	*s = (struct shown){.head = js_text(o, name),
	    .head_base64 = json_string_value(member(o, name, "base64")),
	    .tail_base64 = json_string_value(member(o, name, "tail_base64")),
	    .nhead = json_string_length(head),
	    .tail = json_string_value(tail),
	    .ntail = json_string_length(tail)};
	if (left != NULL)
		s->dropped = (uint64_t)json_integer_value(left);
	else if (json_is_true(member(o, name, "truncated")) && total > s->nhead)
		s->dropped = total - s->nhead;
}

/* ---- commands */

static void
add_end(struct buf *b, const json_t *c)
{
	const char *reason = js_text(c, "end_reason");
	char shown[MESSAGE_SHOWN + 1];
	const char *error = in_line(shown, sizeof(shown), js_text(c, "error"));
	json_int_t code = json_integer_value(json_object_get(c, "exit_code"));
	json_int_t signal = json_integer_value(json_object_get(c, "signal"));

	if (reason[0] == '\0')
		(void)buf_printf(b, "%.40s\n", js_text(c, "status"));
	else if (strcmp(reason, "exit") == 0)
		(void)buf_printf(b, "exit code %lld\n", (long long)code);
	else if (strcmp(reason, "signal") == 0)
		(void)buf_printf(
		    b, "ended by signal %lld\n", (long long)signal);
	else if (strcmp(reason, "timeout") == 0)
		(void)buf_printf(b, "killed after %lld ms (timeout)\n",
		    (long long)json_integer_value(
			json_object_get(c, "timeout_ms")));
	else
		(void)buf_printf(b, "ended by %.40s%s%s\n", reason,
		    error[0] != '\0' ? ": " : "", error);
}

/* Processes of a command that ended otherwise; its own kill is its end. */
static void
add_memory_kills(struct buf *b, const json_t *c)
{
	long long n = json_integer_value(json_object_get(c, "memory_kills"));

	if (n == 0 ||
	    (n == 1 && strcmp(js_text(c, "end_reason"), "memory") == 0))
		return;
	(void)buf_printf(b,
	    "the sandbox's memory limit killed %lld process%s meanwhile\n", n,
	    n == 1 ? "" : "es");
}

/* What is left running, in words that a model can act on. */
static void
add_left(struct buf *b, const json_t *c)
{
	const json_t *left = json_object_get(c, "left_running"), *p;
	long long n = json_integer_value(json_object_get(left, "count"));
	bool is_killed = json_is_true(json_object_get(left, "killed"));
	const json_t *list = json_object_get(left, "processes");
	size_t i;

	if (!json_is_object(left))
		return;
	(void)buf_printf(b, "%lld process%s %s", n, n == 1 ? "" : "es",
	    is_killed ? "that it left running would be one group too many "
			"in this sandbox and were killed" :
			"left running");
	json_array_foreach (list, i, p)
		(void)buf_printf(b, "%s %s `%.200s`", i == 0 ? ":" : ",",
		    js_text(p, "process"), js_text(p, "command_line"));
	if (n > (long long)json_array_size(list))
		(void)buf_printf(
		    b, " and %lld more", n - (long long)json_array_size(list));
	(void)buf_printf(b, "%s\n",
	    is_killed ? "" :
			"; control_run with this run_id and action list "
			"shows them and what they print, kill ends them");
}

static void
add_note(struct buf *b, const json_t *o)
{
	const char *note = js_text(o, "note");

	if (note[0] != '\0')
		(void)buf_printf(b, "[%.200s]\n", note);
}

static void
add_command(struct buf *b, const json_t *c, size_t i, size_t n, size_t part)
{
	struct shown out, err;

	if (n > 1)
		(void)buf_printf(b, "command %zu: ", i);
	add_end(b, c);
	take_stream(c, "stdout", &out);
	take_stream(c, "stderr", &err);
	add_stream(b, &out, part);
	if (err.nhead > 0 || err.dropped > 0) {
		(void)buf_printf(b, "stderr:\n");
		add_stream(b, &err, part);
	}
	add_note(b, c);
	add_memory_kills(b, c);
	add_left(b, c);
}

/* How long a head or a tail may be: the room is shared among all streams so
 * that what is short is whole, and no stream takes more than a half. */
static size_t
part_of_each(const json_t *commands)
{
	const size_t n = json_array_size(commands);
	AUTO(auto_free) size_t *wants = xcalloc(2 * n, sizeof(*wants));
	const json_t *c;
	struct shown s;
	size_t i, level;

	json_array_foreach (commands, i, c) {
		take_stream(c, "stdout", &s);
		wants[2 * i] = s.nhead + s.ntail;
		take_stream(c, "stderr", &s);
		wants[2 * i + 1] = s.nhead + s.ntail;
	}
	level = view_share(wants, 2 * n, OUTPUT_MAX);
	return (level < OUTPUT_MAX / 2 ? level : OUTPUT_MAX / 2) / 2;
}

/* ---- artifacts */

static void
add_artifacts(struct buf *b, const json_t *run)
{
	const json_t *all = json_object_get(run, "artifacts");
	size_t n = json_array_size(all);
	json_int_t more =
	    json_integer_value(json_object_get(run, "artifacts_dropped"));
	char shown[MESSAGE_SHOWN + 1];

	if (js_text(run, "artifacts_error")[0] != '\0')
		(void)buf_printf(b, "artifacts were left out: %s\n",
		    in_line(
			shown, sizeof(shown), js_text(run, "artifacts_error")));
	if (n == 0)
		return;
	(void)buf_printf(b, "artifacts below /artifacts/%.40s/%.40s:",
	    js_text(run, "identifier"), js_text(run, "run_id"));
	for (size_t i = 0; i < n && i < ARTIFACTS_MAX; i++) {
		const json_t *a = json_array_get(all, i);

		(void)buf_printf(b, "%s %s (%lld bytes%s)", i == 0 ? "" : ",",
		    in_line(shown, NAME_SHOWN + 1, js_text(a, "path")),
		    (long long)json_integer_value(json_object_get(a, "size")),
		    json_object_get(a, "lost") != NULL ? ", lost" : "");
	}
	if (n > ARTIFACTS_MAX)
		more += (json_int_t)(n - ARTIFACTS_MAX);
	if (more > 0)
		(void)buf_printf(b, " and %lld more", (long long)more);
	(void)buf_printf(b, "\n");
}

/* ---- what control_run found */

static void
add_process(struct buf *b, const json_t *o)
{
	(void)buf_printf(b, "%s pid %lld of command %lld `%.200s`\n",
	    js_text(o, "process"),
	    (long long)json_integer_value(json_object_get(o, "pid")),
	    (long long)json_integer_value(json_object_get(o, "command")),
	    js_text(o, "command_line"));
}

/* The last of what is there, as dropped is what came before it. */
static void
add_printed_since(struct buf *b, const json_t *o, size_t room)
{
	uint64_t dropped =
	    (uint64_t)json_integer_value(json_object_get(o, "dropped"));
	struct shown s;
	size_t from;

	(void)buf_printf(b, "printed since command %lld ended (%s):\n",
	    (long long)json_integer_value(json_object_get(o, "command")),
	    js_text(o, "state"));
	take_stream(o, "text", &s);
	from = tail_start(s.head, s.nhead, room);
	if (from > 0 || dropped > 0)
		from += screen_broken_start_len(s.head + from, s.nhead - from);
	dropped += printed_len(s.head, from, s.head_base64);
	if (dropped > 0)
		(void)buf_printf(b, "[... %llu bytes dropped ...]\n",
		    (unsigned long long)dropped);
	screen_show_block(b, s.head + from, s.nhead - from);
}

static void
add_processes(struct buf *b, const json_t *result)
{
	const json_t *output = json_object_get(result, "output"), *o;
	const size_t n = json_array_size(output);
	AUTO(auto_free) size_t *wants = xcalloc(n, sizeof(*wants));
	size_t i, room;

	json_array_foreach (json_object_get(result, "processes"), i, o)
		add_process(b, o);
	json_array_foreach (output, i, o)
		wants[i] = json_string_length(json_object_get(o, "text"));
	room = view_share(wants, n, OUTPUT_MAX);
	json_array_foreach (output, i, o)
		add_printed_since(b, o, room);
}

/* ---- code */

static void
add_code(struct buf *b, const json_t *result)
{
	struct shown s;

	if (json_is_array(json_object_get(result, "processes"))) {
		add_processes(b, result);
		return;
	}
	if (json_is_array(json_object_get(result, "output"))) {
		page_write(b, result);
		return;
	}
	if (!json_is_string(json_object_get(result, "output")))
		return;
	take_stream(result, "output", &s);
	add_stream(b, &s, OUTPUT_MAX / 2);
	add_note(b, result);
	add_memory_kills(b, result);
	add_left(b, result);
}

/* ---- lists of runs and sandboxes: a line for each */

/* How it stands; why, where that says more; its exit code and how long. */
static void
add_run(struct buf *b, const json_t *o)
{
	const char *state = js_text(o, "state");
	const char *reason = js_text(o, "end_reason");
	const char *command = js_text(o, "command");
	const json_t *code = json_object_get(o, "exit_code");
	const json_t *ms = json_object_get(o, "duration_ms");
	bool exited = strcmp(reason, "exit") == 0;

	(void)buf_printf(b, "%s %s", js_text(o, "run_id"), state);
	if (exited && json_is_integer(code))
		(void)buf_printf(b, " with exit code %lld",
		    (long long)json_integer_value(code));
	else if (reason[0] != '\0' && !exited && strcmp(reason, state) != 0)
		(void)buf_printf(b, " by %s", reason);
	if (json_is_integer(ms))
		(void)buf_printf(
		    b, " after %lld ms", (long long)json_integer_value(ms));
	(void)buf_printf(b, " in %s, made %s", js_text(o, "identifier"),
	    js_text(o, "created_at"));
	if (command[0] != '\0')
		(void)buf_printf(b, ": %s", command);
	(void)buf_printf(b, "\n");
}

static void
add_sandbox(struct buf *b, const json_t *o)
{
	long long left = json_integer_value(json_object_get(o, "left_running"));
	long long active =
	    json_integer_value(json_object_get(o, "active_runs"));

	(void)buf_printf(b, "%s %s, %lld active run%s, ",
	    js_text(o, "identifier"), js_text(o, "state"), active,
	    active == 1 ? "" : "s");
	if (left > 0)
		(void)buf_printf(b, "%lld process%s left running, ", left,
		    left == 1 ? "" : "es");
	(void)buf_printf(b, "expires %s, image %.200s\n",
	    js_text(o, "expires_at"), js_text(o, "image"));
}

static void
add_list(struct buf *b, const json_t *result)
{
	const json_t *o;
	size_t i;

	json_array_foreach (json_object_get(result, "runs"), i, o)
		add_run(b, o);
	json_array_foreach (json_object_get(result, "sandboxes"), i, o)
		add_sandbox(b, o);
}

/* Else a run that printed looks like one that did not. */
static void
add_fate(struct buf *b, const json_t *run)
{
	if (js_text(run, "output_lost_at")[0] != '\0')
		(void)buf_printf(b,
		    "the output is lost: the server's disk lost its power, or "
		    "failed, before it had all of it\n");
	else if (js_text(run, "output_evicted_at")[0] != '\0')
		(void)buf_printf(
		    b, "long output and artifacts gave room to newer runs'\n");
}

/* ---- the first line: one line, whole characters, none that a terminal would
 * take for itself */

static char *
summary_line(
    const struct tool *tool, const json_t *result, enum tool_text_form form)
{
	struct buf line;
	char *out;

	buf_init(&line, SUMMARY_MAX);
	if (form == TOOL_TEXT_JSON && tool->summary_json != NULL)
		tool->summary_json(result, &line);
	else
		tool->summary(result, &line);
	out = xstrndup((const char *)buf_data(&line), buf_len(&line));
	buf_clear(&line);
	for (char *p = out; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == '\x7f')
			*p = ' ';
	out[utf8_complete_len(out, strlen(out))] = '\0';
	return out;
}

/* jansson hands out a few bytes at a time, so this is kept short. */
struct dump {
	char *at;
	size_t room;
};

static int
dump_cb(const char *p, size_t n, void *arg)
{
	struct dump *d = arg;

	if (n > d->room)
		return -1; /* stops where the room ends */
	memcpy(d->at, p, n);
	d->at += n;
	d->room -= n;
	return 0;
}

/* What is above the bound is counted, in words of at most CUT_WORDS_MAX. */
static void
cut(struct buf *b)
{
	const size_t n = buf_len(b);
	size_t kept;

	if (n <= TOOL_TEXT_MAX)
		return;
	kept = utf8_complete_len(buf_data(b), TOOL_TEXT_MAX - CUT_WORDS_MAX);
	buf_truncate(b, kept);
	(void)buf_printf(b,
	    "\n[... %zu bytes of this text left out: it has a bound; ask for "
	    "less at once, or for one run's output with get_run ...]\n",
	    n - kept);
}

static char *
transcript(const char *line, const json_t *result)
{
	const json_t *final = json_object_get(result, "final");
	const json_t *run = json_is_object(final) ? final : result;
	const json_t *commands = json_object_get(run, "commands");
	const size_t n = json_array_size(commands);
	const size_t part = part_of_each(commands);
	struct buf b;
	char *out;

	/* No limit: buf would drop what is above it, without a word. */
	buf_init(&b, 0);
	(void)buf_printf(&b, "%s\n", line);
	add_fate(&b, run);
	for (size_t i = 0; i < n; i++)
		add_command(&b, json_array_get(commands, i), i, n, part);
	add_artifacts(&b, run);
	add_list(&b, result);
	add_code(&b, result);
	cut(&b);
	out = xstrndup((const char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	return out;
}

static char *
summary_and_json(
    const struct tool *tool, const char *line, const json_t *result)
{
	AUTO(auto_free) char *first = xasprintf("%s: %s\n", tool->name, line);
	AUTO(auto_free) char *text = xmalloc(TOOL_TEXT_MAX + 1);
	struct dump d = {text, TOOL_TEXT_MAX};

	if (dump_cb(first, strlen(first), &d) != 0 ||
	    json_dump_callback(result, dump_cb, &d, JSON_INDENT(2)) != 0)
		return NULL;
	return xstrndup(text, (size_t)(d.at - text));
}

char *
tool_text(
    const struct tool *tool, const json_t *result, enum tool_text_form form)
{
	AUTO(auto_free) char *line = summary_line(tool, result, form);
	char *text = NULL;

	if (form == TOOL_TEXT_JSON)
		text = summary_and_json(tool, line, result);
	return text != NULL ? text : transcript(line, result);
}
