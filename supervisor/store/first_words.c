#include "supervisor/store/first_words.h"

#include "common/utf8.h"
#include "common/xmalloc.h"

struct first_words {
	char text[FIRST_WORDS_MAX];
	size_t n;
	bool is_full;
};

/* Blanks and controls are one blank, and none at the beginning. */
static void
add_byte(struct first_words *w, char c)
{
	bool is_blank = (unsigned char)c <= ' ' || c == 0x7f;

	if (is_blank && (w->n == 0 || w->text[w->n - 1] == ' '))
		return;
	if (w->n == FIRST_WORDS_MAX)
		w->is_full = true;
	else
		w->text[w->n++] = is_blank ? ' ' : c;
}

static void
add_shell(struct first_words *w, const char *p)
{
	while (*p != '\0' && !w->is_full)
		add_byte(w, *p++);
}

/* ["a","b c"]: what an escape stands for is a blank, but for a quote and a
 * backslash.  It may end anywhere. */
static void
add_argv(struct first_words *w, const char *p)
{
	bool is_within = false;

	for (; *p != '\0' && !w->is_full; p++)
		if (*p == '"') {
			is_within = !is_within;
			add_byte(w, ' ');
		} else if (is_within && *p == '\\' && p[1] != '\0') {
			p++;
			add_byte(w, *p == '"' || *p == '\\' ? *p : ' ');
		} else if (is_within) {
			add_byte(w, *p);
		}
}

char *
first_words_of(const char *shell, const char *argv_json)
{
	struct first_words w = {.n = 0};

	if (shell[0] != '\0')
		add_shell(&w, shell);
	else
		add_argv(&w, argv_json);
	if (w.is_full)
		w.n = utf8_complete_len(w.text, w.n);
	while (w.n > 0 && w.text[w.n - 1] == ' ')
		w.n--;
	return xasprintf("%.*s%s", (int)w.n, w.text, w.is_full ? "..." : "");
}
