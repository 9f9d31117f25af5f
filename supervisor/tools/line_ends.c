#include "supervisor/tools/line_ends.h"

/* A CR at i is part of a line's end. */
static bool
ends_line(const char *text, size_t n, size_t i)
{
	return i + 1 == n || text[i + 1] == '\n';
}

bool
line_ends_are_crlf(const char *text, size_t n)
{
	const char *p = text;

	while ((p = memchr(p, '\r', n - (size_t)(p - text))) != NULL) {
		if (ends_line(text, n, (size_t)(p - text)))
			return true;
		p++;
	}
	return false;
}

size_t
line_ends_take(char *text, size_t n)
{
	size_t out = 0;

	for (size_t i = 0; i < n; i++)
		if (text[i] != '\r' || !ends_line(text, n, i))
			text[out++] = text[i];
	return out;
}
