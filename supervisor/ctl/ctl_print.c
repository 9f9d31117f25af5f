#include "supervisor/ctl/ctl_print.h"

#include <stdio.h>

#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

/* 0.025, and not 0.025000000000000001. */
#define REAL_DIGITS JSON_REAL_PRECISION(15)

void
ctl_print_json(const json_t *o)
{
	(void)json_dumpf(o, stdout, JSON_INDENT(2) | REAL_DIGITS);
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

static size_t
width_of(const json_t *list, const struct ctl_column *c)
{
	size_t width = strlen(c->head), i;
	const json_t *o;

	json_array_foreach (list, i, o) {
		char *text = text_of(json_object_get(o, c->member));

		if (strlen(text) > width)
			width = strlen(text);
		free(text);
	}
	return width;
}

static void
print_cell(const char *text, size_t width, bool is_last)
{
	if (is_last)
		(void)printf("%s\n", text);
	else
		(void)printf("%-*s  ", (int)width, text);
}

void
ctl_print_table(const json_t *list, const struct ctl_column *columns, size_t n)
{
	size_t *width = xcalloc(n, sizeof(*width));
	const json_t *o;
	size_t i;

	for (size_t c = 0; c < n; c++)
		width[c] = width_of(list, &columns[c]);
	for (size_t c = 0; c < n; c++)
		print_cell(columns[c].head, width[c], c + 1 == n);
	json_array_foreach (list, i, o)
		for (size_t c = 0; c < n; c++) {
			char *text =
			    text_of(json_object_get(o, columns[c].member));

			print_cell(text, width[c], c + 1 == n);
			free(text);
		}
	free(width);
}

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
