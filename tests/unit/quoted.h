/* quoted.h - JSON in C, with ' for " */
#ifndef TESTS_UNIT_QUOTED_H
#define TESTS_UNIT_QUOTED_H

#include <jansson.h>

#include "common/xmalloc.h"
#include "tests/unit/test.h"

/* The text with its quotes; the caller frees. */
static inline char *
quoted(const char *text)
{
	char *copy = xstrdup(text);

	for (char *p = copy; *p != '\0'; p++)
		*p = (char)(*p == '\'' ? '"' : *p);
	return copy;
}

/* What it says; the caller's. */
static inline json_t *
quoted_json(const char *text)
{
	AUTO(auto_free) char *copy = quoted(text);
	json_t *j = json_loads(copy, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

	assert_non_null(j);
	return j;
}

#endif
