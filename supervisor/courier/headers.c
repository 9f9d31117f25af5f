#include "supervisor/courier/headers.h"

#include <errno.h>
#include <fcntl.h>

#include "common/xmalloc.h"

void
headers_clear(struct headers *h)
{
	for (size_t i = 0; i < HEADERS_MAX; i++) {
		free(h->lines[i]);
		h->lines[i] = NULL;
	}
}

/* RFC 9110: a name is a token, a value is printable. */
static bool
is_header(const char *p, size_t n)
{
	static const char token[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "!#$%&'*+-.^_`|~";
	const char *colon = memchr(p, ':', n);
	size_t name = colon == NULL ? 0 : (size_t)(colon - p);

	if (name == 0 || strspn(p, token) < name)
		return false;
	for (size_t i = name; i < n; i++)
		if ((p[i] < ' ' && p[i] != '\t') || p[i] == 0x7f)
			return false;
	return true;
}

int
headers_parse(const char *text, size_t n, struct headers *out, struct err *e)
{
	const char *end = text + n;
	size_t number = 0, count = 0;

	*out = (struct headers){{NULL}};
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t len =
		    stop == NULL ? (size_t)(end - text) : (size_t)(stop - text);
		size_t kept = len;

		number++;
		if (kept > 0 && text[kept - 1] == '\r')
			kept--;
		if (kept > 0 && text[0] != '#') {
			if (!is_header(text, kept) || count == HEADERS_MAX)
				return err_set(e, ERR_PARSE,
				    "line %zu: want NAME: VALUE, %d lines at "
				    "most",
				    number, HEADERS_MAX);
			out->lines[count++] = xstrndup(text, kept);
		}
		text += len + (stop != NULL);
	}
	return 0;
}

int
headers_read(const char *path, struct headers *out, struct err *e)
{
	AUTO(auto_close) int fd = -1;
	char text[HEADERS_FILE_MAX + 1];
	ssize_t n;
	int rc;

	*out = (struct headers){{NULL}};
	if (path[0] == '\0')
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd == -1 ? -1 : read(fd, text, sizeof(text));
	if (n == -1)
		return err_errno(e, "OTLP_HEADERS_FILE: %.200s", path);
	if (n > HEADERS_FILE_MAX)
		rc = err_set(e, ERR_LIMIT, "it has more than %d bytes",
		    HEADERS_FILE_MAX);
	else
		rc = headers_parse(text, (size_t)n, out, e);
	explicit_bzero(text, sizeof(text));
	return rc == 0 ? 0 : err_wrap(e, "OTLP_HEADERS_FILE: %.200s", path);
}
