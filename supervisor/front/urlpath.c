#include "supervisor/front/urlpath.h"

#include "common/utf8.h"
#include "common/uuid.h"
#include "common/xmalloc.h"

#define IDENTIFIER_MAX 36

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* In place; what is decoded is never longer. */
static int
decode(char *s)
{
	char *to = s;

	for (const char *p = s; *p != '\0'; p++) {
		if (*p != '%') {
			*to++ = *p;
			continue;
		}
		int hi = hex_digit(p[1]);
		int lo = hi < 0 ? -1 : hex_digit(p[2]);

		if (lo < 0 || (hi == 0 && lo == 0))
			return -1;
		*to++ = (char)(hi * 16 + lo);
		p += 2;
	}
	*to = '\0';
	return utf8_is_valid(s, (size_t)(to - s)) ? 0 : -1;
}

static bool
is_identifier(const char *s)
{
	static const char good[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	size_t n = strlen(s);

	return n >= 1 && n <= IDENTIFIER_MAX && strspn(s, good) == n;
}

static bool
is_plain_path(const char *path)
{
	const char *p = path;
	size_t n;

	for (;;) {
		n = strcspn(p, "/");
		if (n == 0 || (n == 1 && p[0] == '.') ||
		    (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		if (p[n] == '\0')
			return true;
		p += n + 1;
	}
}

/* The part before the next slash; the rest begins behind it. */
static char *
take_part(char **rest)
{
	char *part = *rest;
	char *slash = strchr(part, '/');

	if (slash == NULL)
		return NULL;
	*slash = '\0';
	*rest = slash + 1;
	return part;
}

char *
urlpath_artifact_parse(const char *text, struct urlpath_artifact *out)
{
	AUTO(auto_free) char *copy = NULL;
	char *identifier, *run, *rest, *mem;
	struct uuid id;

	if (strlen(text) > 3 * URLPATH_MAX)
		return NULL;
	copy = xstrdup(text);
	rest = copy;
	identifier = take_part(&rest);
	run = identifier != NULL ? take_part(&rest) : NULL;
	if (run == NULL || decode(identifier) != 0 || decode(run) != 0 ||
	    decode(rest) != 0)
		return NULL;
	if (!is_identifier(identifier) || !is_plain_path(rest) ||
	    strlen(rest) > URLPATH_MAX ||
	    (strcmp(run, "latest") != 0 && uuid_parse(run, &id) != 0))
		return NULL;
	*out = (struct urlpath_artifact){identifier, run, rest};
	mem = copy; /* the caller frees it */
	copy = NULL;
	return mem;
}
