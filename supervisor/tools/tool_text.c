#include "supervisor/tools/tool_text.h"

#include "common/buf.h"
#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/tools/tool.h"

#define SUMMARY_MAX 1024
#define PART_MIN 256 /* of a head or tail, however many there are */

const char *
text_member(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text != NULL ? text : "";
}

/* ---- the first line: one line, whole characters */

static char *
summary_line(const struct tool *tool, const json_t *result)
{
	struct buf line;
	char *out;

	buf_init(&line, SUMMARY_MAX);
	(void)buf_printf(&line, "%s: ", tool->name);
	tool->summary(result, &line);
	out = xstrndup((const char *)buf_data(&line), buf_len(&line));
	buf_clear(&line);
	for (char *p = out; *p != '\0'; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	out[utf8_complete_len(out, strlen(out))] = '\0';
	return out;
}

/* ---- long results */

static void
add_part(struct buf *b, const char *p, size_t n)
{
	size_t at = buf_len(b);

	if (buf_append(b, p, n) != 0)
		return;
	for (; at < buf_len(b); at++) /* the text ends at a NUL */
		if (buf_data(b)[at] == '\0')
			buf_data(b)[at] = ' ';
}

static void
add_output(struct buf *b, const char *name, const json_t *value, size_t part)
{
	const char *p = json_string_value(value);
	size_t n = json_string_length(value), head, tail;

	if (p == NULL || n == 0)
		return;
	(void)buf_printf(b, "%s (%zu bytes):\n", name, n);
	if (n <= 2 * part) {
		add_part(b, p, n);
		(void)buf_printf(b, "\n");
		return;
	}
	head = utf8_complete_len(p, part);
	tail = n - part;
	while (tail < n && ((unsigned char)p[tail] & 0xc0) == 0x80)
		tail++;
	add_part(b, p, head);
	(void)buf_printf(b, "\n[... %zu bytes left out ...]\n", tail - head);
	add_part(b, p + tail, n - tail);
	(void)buf_printf(b, "\n");
}

static void
add_outputs(struct buf *b, const json_t *result)
{
	const json_t *final = json_object_get(result, "final");
	const json_t *commands =
	    json_object_get(final != NULL ? final : result, "commands");
	size_t n = json_array_size(commands);
	/* Two streams, a head and a tail each; half the room for words. */
	size_t part = TOOL_TEXT_MAX / 8 / (n == 0 ? 1 : n);

	if (part < PART_MIN)
		part = PART_MIN;
	for (size_t i = 0; i < n; i++) {
		const json_t *c = json_array_get(commands, i);

		(void)buf_printf(b, "command %zu: %.20s, exit code %lld\n", i,
		    text_member(c, "status"),
		    (long long)json_integer_value(
			json_object_get(c, "exit_code")));
		add_output(b, "stdout", json_object_get(c, "stdout"), part);
		add_output(b, "stderr", json_object_get(c, "stderr"), part);
	}
	add_output(
	    b, "output", json_object_get(result, "output"), TOOL_TEXT_MAX / 4);
}

/* ---- all of it */

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

static char *
outputs_text(const char *line, const json_t *result)
{
	struct buf b;
	char *out;

	buf_init(&b, TOOL_TEXT_MAX);
	(void)buf_printf(&b, "%s\n", line);
	add_outputs(&b, result);
	out = xstrndup((const char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	return out;
}

char *
tool_text(const struct tool *tool, const json_t *result)
{
	AUTO(auto_free) char *line = summary_line(tool, result);
	AUTO(auto_free) char *text = xmalloc(TOOL_TEXT_MAX + 1);
	struct dump d = {text, TOOL_TEXT_MAX};

	if (dump_cb(line, strlen(line), &d) != 0 || dump_cb("\n", 1, &d) != 0 ||
	    json_dump_callback(result, dump_cb, &d, JSON_INDENT(2)) != 0)
		return outputs_text(line, result);
	return xstrndup(text, (size_t)(d.at - text));
}
