/* moment.h - times as people write them */
#ifndef COMMON_MOMENT_H
#define COMMON_MOMENT_H

#include "common/base.h"

#define MOMENT_WANT                                                            \
	"a time as in RFC 3339 (2026-01-31T18:00:00Z), seconds since 1970, "   \
	"or one before now (-30m, -2h, -7d)"

/* moment_parse - milliseconds since 1970; false: it is none of MOMENT_WANT.
 * A "+" of an offset may have become a space, as in a query. */
bool moment_parse(const char *text, int64_t now_ms, int64_t *out) MUSTCHECK;

#endif
