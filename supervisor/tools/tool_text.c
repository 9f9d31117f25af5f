#include "supervisor/tools/tool_text.h"

#include "common/buf.h"
#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/tools/tool.h"
#include "supervisor/tools/transcript.h"

#define SUMMARY_MAX 1024
#define CUT_WORDS_MAX 256

/* ---- the first line: one line, whole characters, none that a terminal would
 * take for itself */

static char *
summary_line(
    const struct tool *tool, const json_t *result, enum tool_text_form form)
{
	struct buf line;
	char *out;

	buf_init(&line, SUMMARY_MAX);
	tool->summary(result, form, &line);
	out = xstrndup((const char *)buf_data(&line), buf_len(&line));
	buf_clear(&line);
	for (char *p = out; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == '\x7f')
			*p = ' ';
	out[utf8_complete_len(out, strlen(out))] = '\0';
	return out;
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
	struct buf b;
	char *out;

	/* No limit, which would drop what comes when it is reached: the result
	 * is bounded, and so is each part that is written of it. */
	buf_init(&b, 0);
	(void)buf_printf(&b, "%s\n", line);
	transcript_write(&b, result, TOOL_TEXT_MAX / 2);
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
