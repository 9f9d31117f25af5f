#include "supervisor/ctl/ctl_print.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/ctl/ctl_screen.h"

/* 0.025, and not 0.025000000000000001. */
#define REAL_DIGITS JSON_REAL_PRECISION(15)
#define PROGRESS_MS 200
#define GAP 2       /* columns between two */
#define CUT_LEAST 4 /* no column is cut to less */

/* A terminal obeys control characters of Latin 1 as well, which JSON leaves as
 * they are. */
static size_t
for_whom(void)
{
	return isatty(STDOUT_FILENO) != 0 ? JSON_ENSURE_ASCII : 0;
}

void
ctl_print_json(const json_t *o)
{
	(void)json_dumpf(o, stdout, JSON_INDENT(2) | REAL_DIGITS | for_whom());
	(void)putchar('\n');
}

void
ctl_print_json_line(const json_t *o)
{
	(void)json_dumpf(o, stdout, JSON_COMPACT | for_whom());
	(void)putchar('\n');
}

/* Strings as they are; a control character would move the cursor. */
static char *
text_of(const json_t *v)
{
	char *text;

	if (v == NULL || json_is_null(v))
		return xstrdup("-");
	if (json_is_string(v)) {
		text = xstrdup(json_string_value(v));
		text[utf8_mask_controls(text, strlen(text))] = '\0';
		return text[0] != '\0' ? text : (free(text), xstrdup("-"));
	}
	text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | REAL_DIGITS);
	return text == NULL ? xstrdup("?") : text;
}

/* ---- tables */

static size_t
width_of(const json_t *list, const struct ctl_column *c)
{
	size_t width = strlen(c->head), i;
	const json_t *o;

	json_array_foreach (list, i, o) {
		char *text = text_of(json_object_get(o, c->member));
		size_t columns = ctl_screen_width(text);

		if (columns > width)
			width = columns;
		free(text);
	}
	return width;
}

/* The widest gives way, a column at a time, until all have room. */
static void
fit(size_t *width, size_t n, size_t columns)
{
	size_t sum = GAP * (n - 1);

	for (size_t c = 0; c < n; c++)
		sum += width[c];
	while (columns != CTL_SCREEN_WHOLE && sum > columns) {
		size_t most = 0;

		for (size_t c = 1; c < n; c++)
			if (width[c] > width[most])
				most = c;
		if (width[most] <= CUT_LEAST)
			return;
		width[most]--;
		sum--;
	}
}

struct cell {
	const char *text;
	size_t width;
	bool is_last;
	const char *paint; /* "": none */
};

static void
print_cell(const struct cell *cell)
{
	AUTO(auto_free) char *text = ctl_screen_cut(cell->text, cell->width);
	size_t wide = ctl_screen_width(text);

	(void)printf("%s%s%s", cell->paint, text,
	    cell->paint[0] != '\0' ? CTL_SCREEN_PLAIN : "");
	if (cell->is_last)
		(void)putchar('\n');
	else
		(void)printf("%*s", (int)(cell->width - wide + GAP), "");
}

static void
print_row(const json_t *o, const struct ctl_column *columns,
    const size_t *width, size_t n, bool has_colours)
{
	for (size_t c = 0; c < n; c++) {
		AUTO(auto_free)
		char *text = text_of(json_object_get(o, columns[c].member));

		print_cell(&(struct cell){.text = text,
		    .width = width[c],
		    .is_last = c + 1 == n,
		    .paint = has_colours ? ctl_screen_paint(text) : ""});
	}
}

void
ctl_print_table(const json_t *list, const struct ctl_column *columns, size_t n)
{
	const struct ctl_screen screen = ctl_screen_look();
	size_t *width = xcalloc(n, sizeof(*width));
	const json_t *o;
	size_t i;

	for (size_t c = 0; c < n; c++)
		width[c] = width_of(list, &columns[c]);
	fit(width, n, screen.columns);
	for (size_t c = 0; c < n; c++)
		print_cell(&(struct cell){.text = columns[c].head,
		    .width = width[c],
		    .is_last = c + 1 == n,
		    .paint = screen.has_colours ? CTL_SCREEN_BOLD : ""});
	json_array_foreach (list, i, o)
		print_row(o, columns, width, n, screen.has_colours);
	free(width);
}

/* ---- objects */

void
ctl_print_object(const json_t *o)
{
	const char *key, *inner;
	json_t *v, *w;

	json_object_foreach ((json_t *)(uintptr_t)o, key, v) {
		char *text;

		if (!json_is_object(v)) {
			text = text_of(v);
			(void)printf("%s: %s\n", key, text);
			free(text);
			continue;
		}
		(void)printf("%s:\n", key);
		json_object_foreach (v, inner, w) {
			text = text_of(w);
			(void)printf("  %s: %s\n", inner, text);
			free(text);
		}
	}
}

/* ---- answers */

void
ctl_print_list(const struct ctl_options *o, const json_t *answer,
    const char *member, const struct ctl_column *columns, size_t n)
{
	if (o->json)
		ctl_print_json(answer);
	else
		ctl_print_table(json_object_get(answer, member), columns, n);
}

void
ctl_print_answer(const struct ctl_options *o, const json_t *answer)
{
	if (o->json)
		ctl_print_json(answer);
	else
		ctl_print_object(answer);
}

void
ctl_print_done(
    const struct ctl_options *o, const json_t *answer, const char *fmt, ...)
{
	va_list ap;

	if (o->json) {
		ctl_print_json(answer);
		return;
	}
	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	(void)putchar('\n');
}

/* ---- values */

json_t *
ctl_print_bytes(json_int_t n)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)n;
	size_t unit = 0;

	for (; value >= 1024 && unit + 1 < ARRAY_LEN(units); unit++)
		value /= 1024;
	return json_sprintf(
	    unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

json_t *
ctl_print_seconds(json_int_t s)
{
	static const struct {
		long long of; /* seconds */
		const char *name;
	} units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};

	for (size_t i = 0; i + 1 < ARRAY_LEN(units); i++)
		if (s >= units[i].of)
			return json_sprintf("%lld %s %lld %s", s / units[i].of,
			    units[i].name, s % units[i].of / units[i + 1].of,
			    units[i + 1].name);
	return json_sprintf("%lld s", (long long)s);
}

/* ---- progress */

static uint64_t next_ms;
static bool is_shown;

void
ctl_print_progress(const char *what, uint64_t done, uint64_t all)
{
	uint64_t now_ms = clock_mono_ms();

	if (now_ms < next_ms || isatty(STDERR_FILENO) != 1)
		return;
	next_ms = now_ms + PROGRESS_MS;
	is_shown = true;
	(void)fprintf(
	    stderr, "\r\033[K%s: %llu", what, (unsigned long long)(done >> 20));
	if (all > 0)
		(void)fprintf(
		    stderr, " of %llu", (unsigned long long)(all >> 20));
	(void)fputs(" MiB", stderr);
}

void
ctl_print_progress_end(void)
{
	if (is_shown)
		(void)fputs("\r\033[K", stderr);
	is_shown = false;
}
