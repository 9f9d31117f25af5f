#include "supervisor/http/range.h"

#include <strings.h>

#define DIGITS_MAX 18

/* Digits at *p, at most so many that they fit; -1 when there are none. */
static int
take_number(const char **p, uint64_t *out)
{
	size_t n = strspn(*p, "0123456789");

	if (n == 0 || n > DIGITS_MAX)
		return -1;
	*out = 0;
	for (size_t i = 0; i < n; i++)
		*out = *out * 10 + (uint64_t)((*p)[i] - '0');
	*p += n;
	return 0;
}

static enum range_result
range_suffix(const char *p, uint64_t size, struct range *out)
{
	uint64_t n;

	if (take_number(&p, &n) != 0 || *p != '\0')
		return RANGE_NONE;
	if (n == 0 || size == 0)
		return RANGE_BAD;
	if (n > size)
		n = size;
	*out = (struct range){size - n, n};
	return RANGE_PART;
}

enum range_result
range_parse(const char *text, uint64_t size, struct range *out)
{
	uint64_t first, last = UINT64_MAX - 1;
	const char *p = text;

	if (strncasecmp(p, "bytes=", 6) != 0)
		return RANGE_NONE;
	p += 6;
	if (*p == '-')
		return range_suffix(p + 1, size, out);
	if (take_number(&p, &first) != 0 || *p++ != '-')
		return RANGE_NONE;
	if (*p != '\0' && (take_number(&p, &last) != 0 || *p != '\0'))
		return RANGE_NONE;
	if (last < first)
		return RANGE_NONE;
	if (first >= size)
		return RANGE_BAD;
	if (last >= size)
		last = size - 1;
	*out = (struct range){first, last - first + 1};
	return RANGE_PART;
}
