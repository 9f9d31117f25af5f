/*
 * tenant_lines.h - TENANTS_FILE as lines of words, for the supervisor and the
 * front
 *
 * Words stand between blanks, "#" begins a comment, a line has at most
 * TENANT_LINES_BYTES bytes and TENANT_LINES_WORDS words.  What they mean is in
 * core/tenants_file.h and master/bounds.h.
 */
#ifndef COMMON_TENANT_LINES_H
#define COMMON_TENANT_LINES_H

#include "common/base.h"
#include "common/err.h"

#define TENANT_LINES_FILE_MAX (4u << 20)
#define TENANT_LINES_BYTES 1024
#define TENANT_LINES_WORDS 64

struct stat;

/* n > 0; words may be changed.  0, or *e says what is wrong with the line */
typedef int (*tenant_lines_cb)(
    char *const *words, size_t n, void *arg, struct err *e);

/* tenant_lines_read - all of the file, ended by a NUL; the caller's
 *
 *	st	the file's, as it was opened; or NULL */
int tenant_lines_read(
    const char *path, struct stat *st, char **out, struct err *e) MUSTCHECK;
/* tenant_lines_each - each line that has words, in order; text is changed.
 * ERR_INVAL names path and line */
int tenant_lines_each(const char *path, char *text, tenant_lines_cb cb,
    void *arg, struct err *e) MUSTCHECK;

#endif
