/* embed.h - files built into a program by schema/gen.py. */
#ifndef COMMON_EMBED_H
#define COMMON_EMBED_H

#include "common/base.h"

struct embed_file {
	const char *name; /* the last part of its path; NULL ends the table */
	const char *data; /* a NUL stands behind it */
	size_t len;
};

extern const struct embed_file embed_sql[];   /* schema/sql/ in order */
extern const struct embed_file embed_tools[]; /* schema/tools/, see there */
extern const struct embed_file embed_data[];  /* languages.json */
extern const struct embed_file embed_advisories[];
extern const struct embed_file embed_openapi[]; /* openapi.json */
extern const struct embed_file embed_seccomp[]; /* made of seccomp.txt */

#endif
