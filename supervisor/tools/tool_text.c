/*
 * tool_text.c - results as text for a model: what a terminal would show
 *
 *	run 3f0c... completed
 *	exit code 0
 *	hi
 *	artifacts:
 *	http://127.0.0.1:8080/artifacts/demo/3f0c.../plot.png (20114 bytes)
 *	image 1: plot.png
 *
 * One line says how it stands; then comes each command with its end and its
 * output as a terminal shows it (screen.h); then the files it left, and last
 * which calls give what is left out here.  Nothing is said twice, and there is
 * no JSON: structured content is for programs.
 *
 * The text has at most TOOL_TEXT_MAX bytes and TOOL_TEXT_LINES_MAX lines.  What
 * must be there (ends, names, hints) is made first, without any output, to see
 * how much it is; output shares what is left (struct layout), so that what is
 * short is whole, and long output is a head and a tail with the exact number
 * of bytes between them.
 */
#include "supervisor/tools/tool_text.h"

#include <stdio.h>

#include <openssl/evp.h>

#include "common/js.h"
#include "common/percent.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/tools/page.h"
#include "supervisor/tools/screen.h"
#include "supervisor/tools/tool.h"
#include "supervisor/tools/view.h"

#define SUMMARY_MAX 1024
#define CUT_WORDS_MAX 256
#define CUT_LINES_MAX 2
#define ARTIFACTS_MAX 20 /* that are named */
#define ARTIFACTS_ROOM 4096
#define MESSAGES_ROOM 4096 /* of why commands ended as they did */
#define LEFT_ROOM 4096     /* of command lines of processes */

/* How much of a kind may be shown of one. */
struct layout {
	size_t part;      /* bytes of a head or a tail of output */
	size_t lines;     /* of these */
	size_t message;   /* bytes of an error */
	size_t left;      /* bytes of a process's command line */
	const char *line; /* the first one: its reason is not said again */
	bool has_ended;   /* the run: what has not begun will not */
	bool is_cut;      /* some output is left out */
	bool has_left;    /* processes are left running */
};

/* ---- names and messages, in a line with others */

#define NAME_SHOWN 200    /* bytes of a file's name */
#define MESSAGE_SHOWN 700 /* of why something is as it is */

static size_t
at_most(size_t n, size_t max)
{
	return n < max ? n : max;
}

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

/* Lines of a text, the last one also without its end. */
static size_t
lines_of(const char *p, size_t n)
{
	size_t lines = n > 0 && p[n - 1] != '\n';

	for (size_t i = 0; i < n; i++)
		lines += p[i] == '\n';
	return lines;
}

/* Does what a terminal would show of it have room?  Most does as it is. */
static bool
fits(const char *p, size_t n, size_t room, size_t lines)
{
	struct buf text;
	bool does;

	if (n <= room && n <= lines)
		return true;
	buf_init(&text, 0);
	screen_show(&text, p, n);
	does = buf_len(&text) <= room &&
	    lines_of((const char *)buf_data(&text), buf_len(&text)) <= lines;
	buf_clear(&text);
	return does;
}

/* Where the line number lines + 1 begins, or n; the first is number 1. */
static size_t
behind_lines(const char *p, size_t n, size_t lines)
{
	size_t i = 0;

	for (; i < n && lines > 0; i++)
		lines -= p[i] == '\n';
	return i;
}

/* The first bytes of n that make at most so many lines as a terminal shows
 * them: what sends its cursor about may make more than it has line feeds. */
static size_t
first_lines(const char *p, size_t n, size_t lines)
{
	size_t less;

	while (!fits(p, n, SIZE_MAX, lines)) {
		less = behind_lines(p, n, lines);
		n = less < n ? less : n / 2;
	}
	return n;
}

/* Where the last of n bytes begin that make at most so many lines. */
static size_t
last_lines(const char *p, size_t n, size_t lines)
{
	size_t from = 0, all;

	while (!fits(p + from, n - from, SIZE_MAX, lines)) {
		all = lines_of(p + from, n - from);
		from += all > lines ?
		    behind_lines(p + from, n - from, all - lines) :
		    (n - from + 1) / 2;
		while (from < n && ((unsigned char)p[from] & 0xc0) == 0x80)
			from++;
	}
	return from;
}

/* The last bytes of what is shown; none where only a beginning was kept. */
static size_t
take_end(const struct shown *s, const struct layout *at, const char **end)
{
	const char *p = s->ntail > 0 ? s->tail : s->head;
	size_t n = s->ntail > 0 ? s->ntail : s->nhead;
	size_t from = tail_start(p, n, at->part);

	if (s->ntail == 0 && s->dropped > 0)
		from = n;
	else if (s->ntail > 0 && fits(p, n, at->part, at->lines))
		from = 0;
	from += last_lines(p + from, n - from, at->lines);
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
add_whole(struct buf *b, const struct shown *s, const struct layout *at)
{
	const size_t room = 2 * at->part, lines = 2 * at->lines;
	struct buf all, text;
	bool does;

	if (s->dropped > 0)
		return false;
	buf_init(&all, 0);
	buf_init(&text, 0);
	(void)!buf_append(&all, s->head, s->nhead);
	(void)!buf_append(&all, s->tail, s->ntail);
	screen_show_block(&text, buf_data(&all), buf_len(&all));
	does = (buf_len(&all) <= room || buf_len(&text) <= room) &&
	    lines_of((const char *)buf_data(&text), buf_len(&text)) <= lines;
	if (does)
		(void)!buf_append(b, buf_data(&text), buf_len(&text));
	buf_clear(&all);
	buf_clear(&text);
	return does;
}

/* Cut where neither a character nor a sequence is; what is counted as left out
 * are bytes as they were printed. */
static void
add_cut(struct buf *b, const struct shown *s, struct layout *at)
{
	size_t head =
	    fits(s->head, s->nhead, at->part, at->lines) ? s->nhead : at->part;
	const char *end;
	size_t n, skip;
	uint64_t out;

	head = utf8_complete_len(s->head, at_most(head, s->nhead));
	head -= screen_unfinished_len(s->head, head);
	head = first_lines(s->head, head, at->lines);
	head = utf8_complete_len(s->head, head);
	n = take_end(s, at, &end);
	if (s->ntail == 0 && end < s->head + head) {
		n -= (size_t)(s->head + head - end);
		end = s->head + head;
	}
	skip = screen_broken_start_len(end, n);
	out = left_out(s, head, n - skip);
	screen_show_block(b, s->head, head);
	if (out > 0) {
		(void)buf_printf(b, "[... %llu bytes left out ...]\n",
		    (unsigned long long)out);
		at->is_cut = true;
	}
	screen_show_block(b, end + skip, n - skip);
}

static void
add_stream(struct buf *b, const struct shown *s, struct layout *at)
{
	if (!add_whole(b, s, at))
		add_cut(b, s, at);
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

static const char *
status_word(const json_t *c, const struct layout *at)
{
	const char *word = js_text(c, "status");

	return at->has_ended && strcmp(word, "queued") == 0 ? "not run" : word;
}

static void
add_end(struct buf *b, const json_t *c, const struct layout *at)
{
	const char *reason = js_text(c, "end_reason");
	char shown[MESSAGE_SHOWN + 1];
	const char *error = in_line(shown,
	    at_most(at->message, MESSAGE_SHOWN) + 1, js_text(c, "error"));
	json_int_t code = json_integer_value(json_object_get(c, "exit_code"));
	json_int_t signal = json_integer_value(json_object_get(c, "signal"));

	if (error[0] != '\0' && strstr(at->line, error) != NULL)
		error = "";
	if (reason[0] == '\0')
		(void)buf_printf(b, "%.40s\n", status_word(c, at));
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

/* What is left running; a line at the end of the text says what can be done. */
static void
add_left(struct buf *b, const json_t *c, struct layout *at)
{
	const json_t *left = json_object_get(c, "left_running"), *p;
	long long n = json_integer_value(json_object_get(left, "count"));
	bool is_killed = json_is_true(json_object_get(left, "killed"));
	const json_t *list = json_object_get(left, "processes");
	char shown[NAME_SHOWN + 1];
	size_t i;

	if (!json_is_object(left))
		return;
	at->has_left = at->has_left || !is_killed;
	(void)buf_printf(b, "%lld process%s %s", n, n == 1 ? "" : "es",
	    is_killed ? "that it left running would be one group too many "
			"in this sandbox and were killed" :
			"left running");
	json_array_foreach (list, i, p)
		(void)buf_printf(b, "%s %s `%s`", i == 0 ? ":" : ",",
		    js_text(p, "process"),
		    in_line(shown, at_most(at->left, NAME_SHOWN) + 1,
			js_text(p, "command_line")));
	if (n > (long long)json_array_size(list))
		(void)buf_printf(
		    b, " and %lld more", n - (long long)json_array_size(list));
	(void)buf_printf(b, "\n");
}

static void
add_note(struct buf *b, const json_t *o, const char *name)
{
	const char *note = js_text(o, name);

	if (note[0] != '\0')
		(void)buf_printf(b, "[%.200s]\n", note);
}

static void
add_command(
    struct buf *b, const json_t *c, size_t i, size_t n, struct layout *at)
{
	struct shown out, err;

	if (n > 1)
		(void)buf_printf(b, "command %zu: ", i);
	add_end(b, c, at);
	take_stream(c, "stdout", &out);
	take_stream(c, "stderr", &err);
	add_stream(b, &out, at);
	if (err.nhead > 0 || err.dropped > 0) {
		(void)buf_printf(b, "stderr:\n");
		add_stream(b, &err, at);
	}
	add_note(b, c, "note");
	add_memory_kills(b, c);
	add_left(b, c, at);
}

/* ---- artifacts */

/* As curl opens it; where nobody knows how this server is reached, its path. */
static void
add_address(struct buf *b, const json_t *run, const char *path,
    const struct tool_text_wish *wish)
{
	(void)buf_printf(b, "%s/artifacts/", wish->server_url);
	percent_add_path(b, js_text(run, "identifier"));
	(void)buf_printf(b, "/%s/", js_text(run, "run_id"));
	percent_add_path(b, path);
}

static void
add_artifact(struct buf *b, const json_t *run, const json_t *a,
    const struct tool_text_wish *wish)
{
	add_address(b, run, js_text(a, "path"), wish);
	(void)buf_printf(b, " (%lld bytes%s)\n",
	    (long long)json_integer_value(json_object_get(a, "size")),
	    json_object_get(a, "lost") != NULL ? ", lost" : "");
}

/* Returns how many of the list were named. */
static size_t
add_artifact_names(struct buf *b, const json_t *run, const json_t *all,
    const struct tool_text_wish *wish)
{
	size_t n = json_array_size(all), i;

	(void)buf_printf(b, "artifacts:\n");
	for (i = 0; i < n && i < ARTIFACTS_MAX; i++) {
		struct buf one;
		bool has_room;

		buf_init(&one, 0);
		add_artifact(&one, run, json_array_get(all, i), wish);
		has_room =
		    i == 0 || buf_len(b) + buf_len(&one) <= ARTIFACTS_ROOM;
		if (has_room)
			(void)!buf_append(b, buf_data(&one), buf_len(&one));
		buf_clear(&one);
		if (!has_room)
			break;
	}
	return i;
}

/* Into a buffer of its own: its length counts. */
static void
add_artifacts(
    struct buf *b, const json_t *run, const struct tool_text_wish *wish)
{
	const json_t *all = json_object_get(run, "artifacts");
	size_t n = json_array_size(all), named;
	long long from =
	    json_integer_value(json_object_get(run, "artifacts_from"));
	long long more =
	    json_integer_value(json_object_get(run, "artifacts_dropped"));
	char shown[MESSAGE_SHOWN + 1];

	if (js_text(run, "artifacts_error")[0] != '\0')
		(void)buf_printf(b, "artifacts were left out: %s\n",
		    in_line(
			shown, sizeof(shown), js_text(run, "artifacts_error")));
	if (n == 0)
		return;
	named = add_artifact_names(b, run, all, wish);
	more += (long long)(n - named);
	if (more > 0)
		(void)buf_printf(b,
		    "[... %lld more artifacts; call get_run with run_id %s and "
		    "artifacts_from %lld ...]\n",
		    more, js_text(run, "run_id"), from + (long long)named);
	for (size_t i = 0; i < wish->nimages; i++)
		(void)buf_printf(b, "image %zu: %s\n", i + 1,
		    in_line(shown, NAME_SHOWN + 1, wish->images[i]));
}

/* ---- a run that has not ended */

static void
add_last_printed(struct buf *b, const json_t *o, const char *name)
{
	uint64_t total = (uint64_t)json_integer_value(member(o, name, "bytes"));
	const json_t *text = member(o, name, "tail");
	const char *tail = json_string_value(text);
	size_t n = json_string_length(text), skip = 0;

	if (total == 0 || tail == NULL)
		return;
	(void)buf_printf(
	    b, "%s so far, %llu bytes", name, (unsigned long long)total);
	if (printed_len(tail, n,
		json_string_value(member(o, name, "tail_base64"))) < total) {
		(void)buf_printf(b, ", the end of it");
		skip = screen_broken_start_len(tail, n);
	}
	(void)buf_printf(b, ":\n");
	screen_show_block(b, tail + skip, n - skip);
}

static void
add_seconds(struct buf *b, const json_t *o, const char *name)
{
	(void)buf_printf(b, "%lld s",
	    (long long)json_integer_value(json_object_get(o, name)) / 1000);
}

/* When its command ends at the latest. */
static void
add_limit(struct buf *b, const json_t *o)
{
	long long n = json_integer_value(json_object_get(o, "commands"));

	(void)buf_printf(b, "it has run for ");
	add_seconds(b, o, "elapsed_ms");
	if (json_is_integer(json_object_get(o, "killed_in_ms"))) {
		if (n > 1)
			(void)buf_printf(b, "; its command %lld of 0 to %lld",
			    (long long)json_integer_value(
				json_object_get(o, "command")),
			    n - 1);
		else
			(void)buf_printf(b, "; it");
		(void)buf_printf(b, " is killed unless it ends within ");
		add_seconds(b, o, "killed_in_ms");
	}
	(void)buf_printf(b, "\n");
}

static void
add_so_far(struct buf *b, const json_t *result)
{
	const json_t *o = json_object_get(result, "so_far");
	const char *waits_for = js_text(o, "waits_for");

	if (!json_is_object(o))
		return;
	if (strcmp(js_text(o, "state"), "queued") == 0) {
		(void)buf_printf(b, "it has not begun for ");
		add_seconds(b, o, "elapsed_ms");
		(void)buf_printf(b, "%s%s\n",
		    waits_for[0] != '\0' ? ": it waits for " : "", waits_for);
		return;
	}
	add_limit(b, o);
	add_last_printed(b, o, "stdout");
	add_last_printed(b, o, "stderr");
	if (json_is_integer(member(o, "stdout", "bytes")) &&
	    json_integer_value(member(o, "stdout", "bytes")) == 0 &&
	    json_integer_value(member(o, "stderr", "bytes")) == 0)
		(void)buf_printf(b, "nothing printed yet\n");
}

/* ---- what control_run found */

static void
add_process(struct buf *b, const json_t *o, const struct layout *at)
{
	char shown[NAME_SHOWN + 1];

	(void)buf_printf(b, "%s pid %lld of command %lld `%s`\n",
	    js_text(o, "process"),
	    (long long)json_integer_value(json_object_get(o, "pid")),
	    (long long)json_integer_value(json_object_get(o, "command")),
	    in_line(shown, at_most(at->left, NAME_SHOWN) + 1,
		js_text(o, "command_line")));
}

/* The last of what is there, as dropped is what came before it. */
static void
add_printed_since(struct buf *b, const json_t *o, const struct layout *at)
{
	uint64_t dropped =
	    (uint64_t)json_integer_value(json_object_get(o, "dropped"));
	struct shown s;
	size_t from;

	(void)buf_printf(b, "printed since command %lld ended (%s):\n",
	    (long long)json_integer_value(json_object_get(o, "command")),
	    js_text(o, "state"));
	take_stream(o, "text", &s);
	from = tail_start(s.head, s.nhead, 2 * at->part);
	from += last_lines(s.head + from, s.nhead - from, 2 * at->lines);
	if (from > 0 || dropped > 0)
		from += screen_broken_start_len(s.head + from, s.nhead - from);
	dropped += printed_len(s.head, from, s.head_base64);
	if (dropped > 0)
		(void)buf_printf(b, "[... %llu bytes dropped ...]\n",
		    (unsigned long long)dropped);
	screen_show_block(b, s.head + from, s.nhead - from);
}

static void
add_processes(struct buf *b, const json_t *result, const struct layout *at)
{
	const json_t *o;
	size_t i;

	json_array_foreach (json_object_get(result, "processes"), i, o)
		add_process(b, o, at);
	json_array_foreach (json_object_get(result, "output"), i, o)
		add_printed_since(b, o, at);
}

/* ---- code */

static void
add_code(struct buf *b, const json_t *result, struct layout *at)
{
	struct shown s;

	if (json_is_array(json_object_get(result, "processes"))) {
		add_processes(b, result, at);
		return;
	}
	if (json_is_array(json_object_get(result, "output"))) {
		page_write(b, result);
		return;
	}
	if (!json_is_string(json_object_get(result, "output")))
		return;
	take_stream(result, "output", &s);
	add_stream(b, &s, at);
	add_note(b, result, "note");
	add_memory_kills(b, result);
	add_left(b, result, at);
}

/* ---- lists of runs and sandboxes: a line for each */

/* How it stands; why, where that says more; its exit code and how long. */
static void
add_run(struct buf *b, const json_t *o, size_t level)
{
	const char *state = js_text(o, "state");
	const char *reason = js_text(o, "end_reason");
	const char *command = js_text(o, "command");
	const json_t *code = json_object_get(o, "exit_code");
	const json_t *ms = json_object_get(o, "duration_ms");
	bool exited = strcmp(reason, "exit") == 0;
	char shown[NAME_SHOWN + 1];

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
	if (command[0] != '\0' && level > 0)
		(void)buf_printf(b, ": %s",
		    in_line(shown, at_most(level, NAME_SHOWN) + 1, command));
	(void)buf_printf(b, "\n");
}

static void
add_sandbox(struct buf *b, const json_t *o, size_t level)
{
	long long left = json_integer_value(json_object_get(o, "left_running"));
	long long active =
	    json_integer_value(json_object_get(o, "active_runs"));
	char shown[NAME_SHOWN + 1];

	(void)buf_printf(b, "%s %s, %lld active run%s, ",
	    js_text(o, "identifier"), js_text(o, "state"), active,
	    active == 1 ? "" : "s");
	if (left > 0)
		(void)buf_printf(b, "%lld process%s left running, ", left,
		    left == 1 ? "" : "es");
	(void)buf_printf(b, "expires %s", js_text(o, "expires_at"));
	if (level > 0)
		(void)buf_printf(b, ", image %s",
		    in_line(shown, at_most(level, NAME_SHOWN) + 1,
			js_text(o, "image")));
	(void)buf_printf(b, "\n");
}

/* A list, and the member of each of its objects that may be cut. */
static const struct list_kind {
	const char *name, *cut;
	void (*add)(struct buf *b, const json_t *o, size_t level);
} list_kinds[] = {
    {"runs", "command", add_run}, {"sandboxes", "image", add_sandbox}};

/* As many as there is room for, which is all of them but for long names of
 * very many. */
static void
add_lines(struct buf *b, const struct list_kind *k, const json_t *list,
    size_t room, size_t level)
{
	const size_t n = json_array_size(list), start = buf_len(b);
	size_t i;

	for (i = 0; i < n; i++) {
		const size_t before = buf_len(b);

		k->add(b, json_array_get(list, i), level);
		if (buf_len(b) - start <= room)
			continue;
		buf_truncate(b, before);
		(void)buf_printf(b,
		    "[... %zu more of this page have no room; ask with limit "
		    "%zu ...]\n",
		    n - i, i);
		return;
	}
}

static void
add_list(struct buf *b, const json_t *result, const struct list_kind *k)
{
	const json_t *list = json_object_get(result, k->name), *o;
	const size_t n = json_array_size(list);
	const size_t all = TOOL_TEXT_MAX - CUT_WORDS_MAX - buf_len(b);
	AUTO(auto_free) size_t *wants = xcalloc(n, sizeof(*wants));
	struct buf least;
	size_t i, room = 0;

	buf_init(&least, 0);
	json_array_foreach (list, i, o) {
		wants[i] = strlen(js_text(o, k->cut)) + 10;
		k->add(&least, o, 0);
	}
	if (buf_len(&least) < all)
		room = all - buf_len(&least);
	buf_clear(&least);
	room = view_share(wants, n, room);
	add_lines(b, k, list, all, room > 10 ? room - 10 : 0);
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

/* ---- all of it */

/* What is above the bounds is counted, in words of at most CUT_WORDS_MAX. */
static void
cut(struct buf *b)
{
	const char *p = (const char *)buf_data(b);
	const size_t n = buf_len(b);
	size_t kept = n;

	if (n > TOOL_TEXT_MAX)
		kept = TOOL_TEXT_MAX - CUT_WORDS_MAX;
	if (lines_of(p, kept) > TOOL_TEXT_LINES_MAX - CUT_LINES_MAX)
		kept =
		    behind_lines(p, kept, TOOL_TEXT_LINES_MAX - CUT_LINES_MAX);
	if (kept == n)
		return;
	kept = utf8_complete_len(p, kept);
	buf_truncate(b, kept);
	(void)buf_printf(b,
	    "\n[... %zu bytes of this text left out: it has a bound; ask for "
	    "less at once, or for one run's output with get_run ...]\n",
	    n - kept);
}

static const json_t *
run_of(const json_t *result)
{
	const json_t *final = json_object_get(result, "final");

	return json_is_object(final) ? final : result;
}

static bool
run_has_ended(const json_t *run)
{
	const char *state = js_text(run, "state");

	return state[0] != '\0' && strcmp(state, "queued") != 0 &&
	    strcmp(state, "running") != 0;
}

/* The calls that give what is not here, once. */
static void
add_calls(struct buf *b, const json_t *result, const struct layout *at)
{
	const char *id = js_text(run_of(result), "run_id");

	if (id[0] == '\0')
		id = js_text(result, "run_id");
	if (at->is_cut)
		(void)buf_printf(b,
		    "[output left out: call get_run with run_id %s and cursor "
		    "\"0\" for all of it, in pages]\n",
		    id);
	if (at->has_left)
		(void)buf_printf(b,
		    "[left running: control_run with run_id %s and action list "
		    "shows it and what it prints, kill ends it]\n",
		    id);
}

/* With as much of all output as *at says, which learns what was left out. */
static void
write_all(struct buf *b, const char *line, const json_t *result,
    const struct tool_text_wish *wish, struct layout *at)
{
	const json_t *run = run_of(result);
	const json_t *commands = json_object_get(run, "commands");
	const size_t n = json_array_size(commands);
	struct buf artifacts;

	at->line = line;
	at->has_ended = run_has_ended(run);
	at->is_cut = false;
	at->has_left = false;
	(void)buf_printf(b, "%s\n", line);
	add_note(b, result, "sandbox_note");
	add_so_far(b, result);
	add_fate(b, run);
	for (size_t i = 0; i < n; i++)
		add_command(b, json_array_get(commands, i), i, n, at);
	add_code(b, result, at);
	buf_init(&artifacts, 0);
	add_artifacts(&artifacts, run, wish);
	(void)!buf_append(b, buf_data(&artifacts), buf_len(&artifacts));
	buf_clear(&artifacts);
	for (size_t i = 0; i < ARRAY_LEN(list_kinds); i++)
		if (json_is_array(json_object_get(result, list_kinds[i].name)))
			add_list(b, result, &list_kinds[i]);
	add_calls(b, result, at);
}

/* ---- how much of each there is room for */

struct wants { /* of all that is cut, to be shared out */
	size_t *bytes, *lines;
	size_t n;
};

/* Every line feed, and every sequence: some of these begin a line. */
static size_t
lines_wanted(const char *p, size_t n)
{
	size_t lines = 1;

	for (size_t i = 0; i < n; i++)
		lines += p[i] == '\n' || p[i] == '\v' || p[i] == '\f' ||
		    p[i] == '\x1b';
	return lines;
}

static void
want_stream(struct wants *w, const json_t *o, const char *name)
{
	struct shown s;

	take_stream(o, name, &s);
	w->bytes[w->n] = s.nhead + s.ntail;
	w->lines[w->n++] =
	    lines_wanted(s.head, s.nhead) + lines_wanted(s.tail, s.ntail);
}

static void
want_all(struct wants *w, const json_t *result)
{
	const json_t *commands = json_object_get(run_of(result), "commands");
	const json_t *output = json_object_get(result, "output"), *o;
	size_t i;

	w->bytes =
	    xcalloc(2 * json_array_size(commands) + json_array_size(output) + 1,
		sizeof(*w->bytes));
	w->lines =
	    xcalloc(2 * json_array_size(commands) + json_array_size(output) + 1,
		sizeof(*w->lines));
	json_array_foreach (commands, i, o) {
		want_stream(w, o, "stdout");
		want_stream(w, o, "stderr");
	}
	if (json_is_string(output))
		want_stream(w, result, "output");
	if (json_is_array(json_object_get(result, "processes")))
		json_array_foreach (output, i, o)
			want_stream(w, o, "text");
}

/* How long the text of one of many may be, so that all have room together. */
static size_t
level_of(const json_t *list, const char *name, size_t room)
{
	const size_t n = json_array_size(list);
	AUTO(auto_free) size_t *wants = xcalloc(n, sizeof(*wants));
	const json_t *o;
	size_t i;

	json_array_foreach (list, i, o)
		wants[i] = json_string_length(json_object_get(o, name));
	return view_share(wants, n, room);
}

/* Processes of all commands share one room. */
static size_t
left_level(const json_t *commands)
{
	AUTO(auto_json) json_t *all = json_array();
	const json_t *c;
	size_t i;

	json_array_foreach (commands, i, c)
		json_array_extend(all,
		    json_object_get(
			json_object_get(c, "left_running"), "processes"));
	return level_of(all, "command_line", LEFT_ROOM);
}

/* Whoever is cut may have a line feed at the end of both parts. */
#define STREAM_MORE 3

static void
share_room(struct layout *at, const struct wants *w, const struct buf *least)
{
	const size_t more = STREAM_MORE * w->n;
	const size_t bytes = buf_len(least) + more;
	const size_t lines =
	    lines_of((const char *)buf_data(least), buf_len(least)) + more;

	if (bytes < TOOL_TEXT_MAX)
		at->part =
		    (view_share(w->bytes, w->n, TOOL_TEXT_MAX - bytes) + 1) / 2;
	if (lines < TOOL_TEXT_LINES_MAX)
		at->lines =
		    (view_share(w->lines, w->n, TOOL_TEXT_LINES_MAX - lines) +
			1) /
		    2;
}

static void
lay_out(struct layout *at, const char *line, const json_t *result,
    const struct tool_text_wish *wish)
{
	const json_t *commands = json_object_get(run_of(result), "commands");
	const json_t *processes = json_object_get(result, "processes");
	struct wants w = {0};
	struct buf least;

	*at = (struct layout){
	    .message = level_of(commands, "error", MESSAGES_ROOM),
	    .left = json_is_array(processes) ?
		level_of(processes, "command_line", LEFT_ROOM) :
		left_level(commands)};
	want_all(&w, result);
	if (w.n > 0) {
		buf_init(&least, 0);
		write_all(&least, line, result, wish, at);
		share_room(at, &w, &least);
		buf_clear(&least);
	}
	free(w.bytes);
	free(w.lines);
}

static char *
transcript(
    const char *line, const json_t *result, const struct tool_text_wish *wish)
{
	struct layout at;
	struct buf b;
	char *out;

	lay_out(&at, line, result, wish);
	/* No limit: buf would drop what is above it, without a word. */
	buf_init(&b, 0);
	write_all(&b, line, result, wish, &at);
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
	AUTO(auto_free) char *text = xmalloc(TOOL_JSON_MAX + 1);
	struct dump d = {text, TOOL_JSON_MAX};

	if (dump_cb(first, strlen(first), &d) != 0 ||
	    json_dump_callback(result, dump_cb, &d, JSON_INDENT(2)) != 0)
		return NULL;
	return xstrndup(text, (size_t)(d.at - text));
}

char *
tool_text(const struct tool *tool, const json_t *result,
    const struct tool_text_wish *wish)
{
	AUTO(auto_free) char *line = summary_line(tool, result, wish->form);
	char *text = NULL;

	if (wish->form == TOOL_TEXT_JSON)
		text = summary_and_json(tool, line, result);
	return text != NULL ? text : transcript(line, result, wish);
}
