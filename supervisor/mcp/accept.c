#include "supervisor/mcp/accept.h"

#include <strings.h>

static const struct accept_range {
	const char *name;
	unsigned int forms;
} ranges[] = {{"application/json", ACCEPT_JSON}, {"application/*", ACCEPT_JSON},
    {"*/*", ACCEPT_JSON}, {"text/event-stream", ACCEPT_STREAM},
    {"text/*", ACCEPT_STREAM}};

static const char *
skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

static bool
is_name(const char *p, const char *end, const char *name)
{
	while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return (size_t)(end - p) == strlen(name) &&
	    strncasecmp(p, name, (size_t)(end - p)) == 0;
}

/* RFC 9110, section 12.4.2: a weight of 0 is "not acceptable". */
static bool
is_refused(const char *p, const char *end)
{
	while (p < end && (p = memchr(p, ';', (size_t)(end - p))) != NULL) {
		p = skip_blanks(p + 1, end);
		if (end - p < 3 || (*p != 'q' && *p != 'Q') || p[1] != '=')
			continue;
		for (p += 2; p < end && (*p == '0' || *p == '.'); p++)
			;
		return p == end || *p == ' ' || *p == ';' || *p == '\t';
	}
	return false;
}

static unsigned int
range_forms(const char *p, const char *end)
{
	const char *name_end = memchr(p, ';', (size_t)(end - p));

	p = skip_blanks(p, end);
	if (name_end == NULL || name_end < p)
		name_end = end;
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (is_name(p, name_end, ranges[i].name))
			return is_refused(name_end, end) ? 0 : ranges[i].forms;
	return 0;
}

unsigned int
accept_forms(const char *accept)
{
	unsigned int forms = 0;
	const char *end;

	if (accept == NULL || *accept == '\0')
		return ACCEPT_JSON;
	for (;; accept = end + 1) {
		end = strchrnul(accept, ',');
		forms |= range_forms(accept, end);
		if (*end == '\0')
			return forms;
	}
}

bool
accept_is_json(const char *content_type)
{
	const char *end, *p;

	if (content_type == NULL)
		return false;
	end = strchrnul(content_type, ';');
	p = skip_blanks(content_type, end);
	return is_name(p, end, "application/json");
}
