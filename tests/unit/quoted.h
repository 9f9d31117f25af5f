/* quoted.h - JSON in a C text: with ' for " */
#ifndef TESTS_UNIT_QUOTED_H
#define TESTS_UNIT_QUOTED_H

#include <jansson.h>

#include "common/xmalloc.h"
#include "tests/unit/test.h"

/* quoted_json - what the text says; the caller's */
static inline json_t *
quoted_json(const char *text)
{
	char *copy = xstrdup(text);
	json_t *j;

	for (char *p = copy; *p != '\0'; p++)
		*p = (char)(*p == '\'' ? '"' : *p);
	j = json_loads(copy, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	if (j == NULL)
		fail_msg("not JSON: %s", copy);
	free(copy);
	return j;
}

#endif
