#include "common/uuid.h"

#include "common/clock.h"
#include "common/exit.h"
#include "common/hex.h"
#include "common/random.h"
#include "common/log.h"

static void
uuid_fill(struct uuid *u, uint8_t version)
{
	random_fill(u->b, sizeof(u->b));
	u->b[6] = (uint8_t)((u->b[6] & 0x0f) | version << 4);
	u->b[8] = (uint8_t)((u->b[8] & 0x3f) | 0x80);
}

void
uuid_random(struct uuid *u)
{
	uuid_fill(u, 4);
}

void
uuid_timed(struct uuid *u)
{
	uint64_t ms = (uint64_t)clock_wall_ms();

	uuid_fill(u, 7);
	for (size_t i = 0; i < 6; i++)
		u->b[i] = (uint8_t)(ms >> (40 - 8 * i));
}

/* 8-4-4-4-12 digits: a dash stands before bytes 4, 6, 8 and 10. */
static bool
uuid_is_dash_before(size_t i)
{
	return i == 4 || i == 6 || i == 8 || i == 10;
}

void
uuid_format(const struct uuid *u, char out[UUID_TEXT_LEN + 1])
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < sizeof(u->b); i++) {
		if (uuid_is_dash_before(i))
			*out++ = '-';
		*out++ = hex[u->b[i] >> 4];
		*out++ = hex[u->b[i] & 15];
	}
	*out = '\0';
}

int
uuid_parse(const char *text, struct uuid *u)
{
	struct uuid got;

	for (size_t i = 0; i < sizeof(got.b); i++) {
		int high, low;

		if (uuid_is_dash_before(i) && *text++ != '-')
			return -1;
		/* A NUL is no digit, so text is never read behind its end. */
		high = hex_value(*text++);
		if (high < 0)
			return -1;
		low = hex_value(*text++);
		if (low < 0)
			return -1;
		got.b[i] = (uint8_t)(high << 4 | low);
	}
	if (*text != '\0')
		return -1;
	*u = got;
	return 0;
}
