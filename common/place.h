/*
 * place.h - a directory that may not be there yet: where it will be, and
 * whether this process may make and use it
 *
 * Nothing is changed: a start asks before it makes one, and --check-config
 * instead of it.
 */
#ifndef COMMON_PLACE_H
#define COMMON_PLACE_H

#include "common/base.h"
#include "common/err.h"

enum place_state {
	PLACE_IS_THERE,
	PLACE_IS_MISSING
};

/* place_resolve - the path absolute, without links in what exists of it; the
 * caller frees.  *above is how much of it exists, in bytes.  NULL and *e,
 * ERR_INVAL, when what exists is no directory or leads nowhere. */
char *place_resolve(const char *path, size_t *above, struct err *e) MUSTCHECK;
/* place_check - 0 where this process may make what is missing and write into
 * it; else ERR_INVAL, which names what is in the way */
int place_check(
    const char *path, enum place_state *state, struct err *e) MUSTCHECK;
/* place_check_way - 0 where this process may pass through each directory above
 * path, as far as they exist; else ERR_INVAL, which names the first that is
 * shut for it.  What path itself is is not looked at. */
int place_check_way(const char *path, struct err *e) MUSTCHECK;

/* place_beside - the path of a name in the directory of the running program;
 * the caller frees */
char *place_beside(const char *name);
/* place_find - that, or the path where it was installed: the first that can be
 * read; the caller frees.  NULL: neither. */
char *place_find(const char *name, const char *installed);

#endif
