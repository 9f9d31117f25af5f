#include "supervisor/store/first_words.h"

#include "common/utf8.h"
#include "common/xmalloc.h"

struct first_words {
	char text[FIRST_WORDS_MAX];
	size_t n;
	bool is_full;
};

/* Blanks are one blank, and none at the beginning. */
static void
add_byte(struct first_words *w, char c)
{
	if (c == ' ' && (w->n == 0 || w->text[w->n - 1] == ' '))
		return;
	if (w->n == FIRST_WORDS_MAX)
		w->is_full = true;
	else
		w->text[w->n++] = c;
}

/* One byte of p, or a control character, which is a blank: its length. */
static size_t
add_some(struct first_words *w, const char *p, size_t n)
{
	size_t control = utf8_control_len(p, n);

	add_byte(w, control > 0 ? ' ' : *p);
	return control > 0 ? control : 1;
}

static void
add_shell(struct first_words *w, const char *p, size_t n)
{
	size_t len;

	for (; n > 0 && !w->is_full; p += len, n -= len)
		len = add_some(w, p, n);
}

/* The backslash at p begins "\n" or "\u001b": how long it is. */
static size_t
escape_len(const char *p, size_t n)
{
	size_t len = p[1] == 'u' ? strlen("\\u0000") : 2;

	return len < n ? len : n;
}

/* ["a","b c"]: what an escape stands for is a blank, but for a quote and a
 * backslash.  It may end anywhere. */
static void
add_argv(struct first_words *w, const char *p, size_t n)
{
	bool is_within = false;
	size_t len;

	for (; n > 0 && !w->is_full; p += len, n -= len) {
		len = 1;
		if (*p == '"') {
			is_within = !is_within;
			add_byte(w, ' ');
		} else if (is_within && *p == '\\' && n > 1) {
			len = escape_len(p, n);
			add_byte(w, p[1] == '"' || p[1] == '\\' ? p[1] : ' ');
		} else if (is_within) {
			len = add_some(w, p, n);
		}
	}
}

char *
first_words_of(const char *shell, const char *argv_json)
{
	struct first_words w = {.n = 0};

	if (shell[0] != '\0')
		add_shell(&w, shell, strlen(shell));
	else
		add_argv(&w, argv_json, strlen(argv_json));
	if (w.is_full)
		w.n = utf8_complete_len(w.text, w.n);
	while (w.n > 0 && w.text[w.n - 1] == ' ')
		w.n--;
	return xasprintf("%.*s%s", (int)w.n, w.text, w.is_full ? "..." : "");
}
