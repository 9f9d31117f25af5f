/*
 * conf_file.h - the lines of a configuration file
 *
 * systemd's EnvironmentFile format: KEY=value, blank lines, comments that
 * start with # or ;.  Blanks around the value are dropped.  Without quotes a
 * backslash takes the next character as it is; inside single quotes nothing
 * is special; inside double quotes a backslash takes only " \ ` and $.
 * Quoted text may go over several lines, a backslash at the end of a line
 * joins it with the next.
 */
#ifndef COMMON_CONF_FILE_H
#define COMMON_CONF_FILE_H

#include "common/base.h"
#include "common/err.h"

/*
 * conf_file_parse - call cb for each assignment in order
 *
 * cb gets the line that the key is on; non-zero from it ends the parse and is
 * returned.  ERR_PARSE for text that is no assignment.  Errors, those of cb
 * too, begin with "name:line".
 */
int conf_file_parse(const char *text, size_t len, const char *name,
    int (*cb)(const char *key, const char *value, void *arg, struct err *e),
    void *arg, struct err *e) MUSTCHECK;

#endif
