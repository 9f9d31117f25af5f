#include "common/percent.h"

#include <ctype.h>

#include "common/hex.h"
#include "common/utf8.h"

int
percent_decode(char *s, enum percent_plus plus)
{
	char *to = s;
	int high, low;

	for (const char *p = s; *p != '\0'; p++) {
		if (*p == '+' && plus == PERCENT_PLUS_IS_SPACE) {
			*to++ = ' ';
		} else if (*p != '%') {
			*to++ = *p;
		} else {
			high = hex_value(p[1]);
			low = high < 0 ? -1 : hex_value(p[2]);
			if (low < 0 || (high == 0 && low == 0))
				return -1;
			*to++ = (char)(high << 4 | low);
			p += 2;
		}
	}
	*to = '\0';
	return utf8_is_valid(s, (size_t)(to - s)) ? 0 : -1;
}

void
percent_add_path(struct buf *b, const char *path)
{
	for (const char *p = path; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;

		if (c < 0x80 && (isalnum(c) || strchr("-._~/", c) != NULL))
			(void)!buf_append(b, p, 1);
		else
			(void)buf_printf(b, "%%%02X", c);
	}
}
