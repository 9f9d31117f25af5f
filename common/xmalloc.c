#include "common/xmalloc.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/exit.h"
#include "common/log.h"

NORETURN static void
xmalloc_fail(size_t n, size_t size)
{
	fatal(EXIT_MEMORY, "out of memory (%zu times %zu bytes)", n, size);
}

void *
xmalloc(size_t size)
{
	void *p = malloc(size != 0 ? size : 1);

	if (p == NULL)
		xmalloc_fail(1, size);
	return p;
}

void *
xcalloc(size_t n, size_t size)
{
	void *p;

	if (n == 0 || size == 0)
		n = size = 1;
	p = calloc(n, size);
	if (p == NULL)
		xmalloc_fail(n, size);
	return p;
}

void *
xreallocarray(void *p, size_t n, size_t size)
{
	void *q;

	/* Zero would free p, or not: no two C libraries agree. */
	if (n == 0 || size == 0)
		n = size = 1;
	q = reallocarray(p, n, size);
	if (q == NULL)
		xmalloc_fail(n, size);
	return q;
}

char *
xstrdup(const char *s)
{
	return xstrndup(s, strlen(s));
}

char *
xstrndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *p = xmalloc(len + 1);

	memcpy(p, s, len);
	p[len] = '\0';
	return p;
}

void
xset_text(char **at, const char *text)
{
	char *copy = xstrdup(text);

	free(*at);
	*at = copy;
}

void *
xmemdup(const void *p, size_t n)
{
	void *q = xmalloc(n);

	if (n != 0)
		memcpy(q, p, n);
	return q;
}

char *
xasprintf(const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0 || s == NULL)
		xmalloc_fail(1, strlen(fmt));
	return s;
}
