/* uuid.h - UUIDs, RFC 9562: random ones, and random ones in order of time. */
#ifndef COMMON_UUID_H
#define COMMON_UUID_H

#include "common/base.h"

#define UUID_TEXT_LEN 36

struct uuid {
	uint8_t b[16];
};

void uuid_random(struct uuid *u); /* getrandom(2); ends the process if none */
/* uuid_timed - version 7: milliseconds of the wall clock, then 74 random bits;
 * rows of an index by it that are made together lie together */
void uuid_timed(struct uuid *u);
static inline bool
uuid_is_timed(const struct uuid *u)
{
	return u->b[6] >> 4 == 7;
}
void uuid_format(const struct uuid *u, char out[UUID_TEXT_LEN + 1]);
/* uuid_parse - strict: 36 characters, either case; -1 when not one */
int uuid_parse(const char *text, struct uuid *u) MUSTCHECK;
static inline bool
uuid_is_equal(const struct uuid *a, const struct uuid *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}
/* uuid_is_zero - it stands for none */
static inline bool
uuid_is_zero(const struct uuid *u)
{
	static const struct uuid zero;

	return uuid_is_equal(u, &zero);
}

#endif
