#include "supervisor/stdio/header.h"

#include "common/xmalloc.h"

#define PREFIX "=?base64?"
#define SUFFIX "?="

bool
header_is_plain(const char *text)
{
	size_t n = strlen(text);

	if (n == 0 || text[0] == ' ' || text[n - 1] == ' ')
		return false;
	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return true;
}

static bool
looks_encoded(const char *text)
{
	size_t n = strlen(text);

	return n >= strlen(PREFIX SUFFIX) &&
	    strncmp(text, PREFIX, strlen(PREFIX)) == 0 &&
	    strcmp(text + n - strlen(SUFFIX), SUFFIX) == 0;
}

/* Three bytes become four characters. */
static char *
put_group(char *out, const uint8_t *p, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = (uint32_t)p[0] << 16;

	bits |= n > 1 ? (uint32_t)p[1] << 8 : 0;
	bits |= n > 2 ? (uint32_t)p[2] : 0;
	*out++ = digits[bits >> 18];
	*out++ = digits[bits >> 12 & 63];
	*out++ = '=';
	*out++ = '=';
	if (n > 1)
		out[-2] = digits[bits >> 6 & 63];
	if (n > 2)
		out[-1] = digits[bits & 63];
	return out;
}

char *
header_encode(const char *text)
{
	AUTO(auto_free) char *digits = NULL;
	size_t n = strlen(text);
	char *out;

	if (header_is_plain(text) && !looks_encoded(text))
		return xstrdup(text);
	out = digits = xmalloc((n + 2) / 3 * 4 + 1);
	for (size_t i = 0; i < n; i += 3)
		out = put_group(out, (const uint8_t *)text + i, n - i);
	*out = '\0';
	return xasprintf(PREFIX "%s" SUFFIX, digits);
}
