/* percent.h - percent-encoding (RFC 3986, section 2.1) of UTF-8. */
#ifndef COMMON_PERCENT_H
#define COMMON_PERCENT_H

#include "common/base.h"
#include "common/buf.h"

enum percent_plus {
	PERCENT_PLUS_IS_PLUS,
	PERCENT_PLUS_IS_SPACE /* in a query of a form */
};

/* percent_decode - once, in place: what is decoded is never longer.  -1: a
 * bad escape, a NUL, or no UTF-8 */
int percent_decode(char *s, enum percent_plus plus) MUSTCHECK;
/* percent_add_path - all but unreserved characters and "/" is escaped */
void percent_add_path(struct buf *b, const char *path);

#endif
