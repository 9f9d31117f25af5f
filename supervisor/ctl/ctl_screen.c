#include "supervisor/ctl/ctl_screen.h"

#include <sys/ioctl.h>
#include <locale.h>
#include <unistd.h>
#include <wchar.h>

#include "common/xmalloc.h"

#define ELLIPSIS "\xe2\x80\xa6" /* one column */
#define COLUMNS_LEAST 20
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define RED "\033[31m"

static size_t
number_of(const char *text)
{
	char *end = NULL;
	unsigned long n = text == NULL ? 0 : strtoul(text, &end, 10);

	return end != text && end != NULL && *end == '\0' && n <= 10000 ? n : 0;
}

struct ctl_screen
ctl_screen_look(void)
{
	struct ctl_screen s = {.is_terminal = isatty(STDOUT_FILENO) == 1};
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
	struct winsize size;

	if (!s.is_terminal)
		return s;
	s.has_colours = (none == NULL || none[0] == '\0') &&
	    (term == NULL || strcmp(term, "dumb") != 0);
	s.columns = number_of(getenv("COLUMNS"));
	s.lines = number_of(getenv("LINES"));
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
		s.columns = s.columns > 0 ? s.columns : size.ws_col;
		s.lines = s.lines > 0 ? s.lines : size.ws_row;
	}
	if (s.columns > 0 && s.columns < COLUMNS_LEAST)
		s.columns = COLUMNS_LEAST;
	return s;
}

/* Our texts are UTF-8, whatever the user's locale is. */
static void
use_utf8(void)
{
	static bool is_set;

	if (!is_set)
		(void)setlocale(LC_CTYPE, "C.UTF-8");
	is_set = true;
}

/* The first character of text: its bytes, and its columns. */
static size_t
step(const char *text, mbstate_t *state, size_t *columns)
{
	wchar_t c;
	size_t n = mbrtowc(&c, text, strlen(text), state);
	int wide;

	if (n == 0 || n == (size_t)-1 || n == (size_t)-2) {
		memset(state, 0, sizeof(*state));
		*columns = 1;
		return 1;
	}
	wide = wcwidth(c);
	*columns = wide > 0 ? (size_t)wide : 0;
	return n;
}

size_t
ctl_screen_width(const char *text)
{
	mbstate_t state = {0};
	size_t all = 0, columns;

	use_utf8();
	while (*text != '\0') {
		text += step(text, &state, &columns);
		all += columns;
	}
	return all;
}

char *
ctl_screen_cut(const char *text, size_t columns)
{
	mbstate_t state = {0};
	size_t at = 0, used = 0, wide;

	if (ctl_screen_width(text) <= columns)
		return xstrdup(text);
	while (text[at] != '\0') {
		size_t n = step(text + at, &state, &wide);

		if (used + wide > columns - 1)
			break;
		at += n;
		used += wide;
	}
	return xasprintf("%.*s" ELLIPSIS, (int)at, text);
}

const char *
ctl_screen_paint(const char *word)
{
	static const struct {
		const char *word, *colour;
	} colours[] = {{"ready", GREEN}, {"up", GREEN}, {"good", GREEN},
	    {"completed", GREEN}, {"enabled", GREEN}, {"running", GREEN},
	    {"queued", YELLOW}, {"starting", YELLOW}, {"creating", YELLOW},
	    {"removing", YELLOW}, {"deleting", YELLOW}, {"quiet", YELLOW},
	    {"unknown", YELLOW}, {"stopping", YELLOW}, {"canceled", YELLOW},
	    {"expired", YELLOW}, {"disabled", YELLOW}, {"down", RED},
	    {"away", RED}, {"throttled", RED}, {"refused", RED},
	    {"failed", RED}, {"revoked", RED}, {"lost", RED},
	    {"not ready", RED}, {"warn", YELLOW}, {"fail", RED}};

	for (size_t i = 0; i < ARRAY_LEN(colours); i++)
		if (strcmp(word, colours[i].word) == 0)
			return colours[i].colour;
	return "";
}
