/* urlpath.h - names out of the paths that clients send. */
#ifndef FRONT_URLPATH_H
#define FRONT_URLPATH_H

#include "common/base.h"

#define URLPATH_MAX 4096 /* bytes, decoded */

struct urlpath_artifact {
	const char *identifier;
	const char *run; /* "latest" or a UUID */
	const char *path;
};
/*
 * urlpath_artifact_parse - "identifier/run/path...", percent-decoded once
 *
 * NULL when it cannot be one of ours: a bad escape, a NUL, bytes that are not
 * UTF-8, an identifier or run of the wrong form, or a path with an empty
 * part, "." or "..".  Else the memory that *out points into; the caller frees.
 */
char *urlpath_artifact_parse(const char *text, struct urlpath_artifact *out);

#endif
