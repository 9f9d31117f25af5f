/* headers.h - the headers that a collector wants to see, from a file of lines
 * "NAME: VALUE"; empty ones, and those that begin with "#", are none. */
#ifndef COURIER_HEADERS_H
#define COURIER_HEADERS_H

#include "common/base.h"
#include "common/err.h"

#define HEADERS_MAX 16
#define HEADERS_FILE_MAX 16384

struct headers {
	char *lines[HEADERS_MAX + 1]; /* the last one NULL */
};

/* headers_parse - ERR_PARSE names the line.  *out is to be cleared in any
 * case */
int headers_parse(
    const char *text, size_t n, struct headers *out, struct err *e) MUSTCHECK;
/* headers_read - of a file; path "": none */
int headers_read(
    const char *path, struct headers *out, struct err *e) MUSTCHECK;
void headers_clear(struct headers *h);

#endif
