#include "supervisor/front/base64url.h"

static int
digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '-' ? 62 : c == '_' ? 63 : -1;
}

bool
base64url_decode(const char *text, size_t n, uint8_t *out, size_t *out_len)
{
	unsigned int bits = 0, nbits = 0;
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		int d = digit(text[i]);

		if (d < 0)
			return false;
		bits = bits << 6 | (unsigned int)d;
		nbits += 6;
		if (nbits < 8)
			continue;
		nbits -= 8;
		out[len++] = (uint8_t)(bits >> nbits);
		bits &= (1u << nbits) - 1;
	}
	*out_len = len;
	return nbits < 6 && bits == 0;
}
