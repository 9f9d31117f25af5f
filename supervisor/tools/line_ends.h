/*
 * line_ends.h - shell text whose lines end as on Windows
 *
 * A shell takes the CR of a CRLF for the last character of a word: "> name\r".
 * So where a line ends, the text's own end included, one CR goes; any other CR
 * stays.  That holds in a quoted text and a here-document as well: a shell's
 * text cannot have CRLF in it, and printf '\r\n' prints one.  Whoever said such
 * a text is told (LINE_ENDS_NOTE), and it is recorded as it was said, so that
 * a rerun runs the same.
 */
#ifndef TOOLS_LINE_ENDS_H
#define TOOLS_LINE_ENDS_H

#include "common/base.h"

#define LINE_ENDS_NOTE                                                         \
	"line ends CRLF of this text were taken as LF; "                       \
	"printf '\\r\\n' prints a CRLF"

/* line_ends_are_crlf - whether line_ends_take would change anything */
bool line_ends_are_crlf(const char *text, size_t n);
/* line_ends_take - in place; how many bytes are left */
size_t line_ends_take(char *text, size_t n);

#endif
