/* range.h - the Range header (RFC 9110, section 14): one range of bytes. */
#ifndef HTTP_RANGE_H
#define HTTP_RANGE_H

#include "common/base.h"

struct range {
	uint64_t first;
	uint64_t length;
};
enum range_result {
	RANGE_NONE, /* not for us (other unit, several, malformed): send all */
	RANGE_PART,
	RANGE_BAD /* outside of the file: 416 */
};
/* range_parse - of a file of size bytes; *out is set for RANGE_PART only */
enum range_result range_parse(
    const char *text, uint64_t size, struct range *out);

#endif
