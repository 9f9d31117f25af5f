#include "common/utf8.h"

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/*
 * Which second bytes may follow a first one (RFC 3629 section 4): this is
 * where overlong forms, surrogates and what lies above U+10FFFF are told.
 * Returns the length of the character, 0 when c starts none.
 */
static size_t
utf8_first(uint8_t c, uint8_t *low, uint8_t *high)
{
	*low = 0x80;
	*high = 0xbf;
	if (c < 0x80)
		return 1;
	if (c < 0xc2)
		return 0;
	if (c < 0xe0)
		return 2;
	if (c < 0xf0) {
		if (c == 0xe0)
			*low = 0xa0;
		if (c == 0xed)
			*high = 0x9f;
		return 3;
	}
	if (c > 0xf4)
		return 0;
	if (c == 0xf0)
		*low = 0x90;
	if (c == 0xf4)
		*high = 0x8f;
	return 4;
}

/*
 * Length of the character at p, 0 when there is none.  *whole is its length
 * if the n bytes are only its beginning (and the result is 0), else 0.
 */
static size_t
utf8_char(const uint8_t *p, size_t n, size_t *whole)
{
	uint8_t low, high;
	size_t len = utf8_first(p[0], &low, &high);

	*whole = 0;
	for (size_t i = 1; i < len; i++) {
		if (i == n) {
			*whole = len;
			return 0;
		}
		if (p[i] < low || p[i] > high)
			return 0;
		low = 0x80;
		high = 0xbf;
	}
	return len;
}

/* Bytes of plain ASCII at p, eight at a time. */
static size_t
utf8_ascii_len(const uint8_t *p, size_t n)
{
	const uint64_t top = UINT64_C(0x8080808080808080);
	size_t i = 0;
	uint64_t w;

	for (; n - i >= sizeof(w); i += sizeof(w)) {
		memcpy(&w, p + i, sizeof(w));
		if ((w & top) != 0)
			break;
	}
	while (i < n && p[i] < 0x80)
		i++;
	return i;
}

/* Bytes of valid text at p. */
static size_t
utf8_valid_len(const uint8_t *p, size_t n)
{
	size_t i = 0, whole, len;

	while (i < n) {
		i += utf8_ascii_len(p + i, n - i);
		if (i == n)
			break;
		len = utf8_char(p + i, n - i, &whole);
		if (len == 0)
			break;
		i += len;
	}
	return i;
}

bool
utf8_is_valid(const void *p, size_t n)
{
	return n == 0 || utf8_valid_len(p, n) == n;
}

size_t
utf8_complete_len(const void *p, size_t n)
{
	const uint8_t *s = p;
	size_t whole;

	for (size_t k = 1; k <= 3 && k <= n; k++) {
		if ((s[n - k] & 0xc0) == 0x80)
			continue; /* inside a character, look before it */
		(void)utf8_char(s + n - k, k, &whole);
		return whole != 0 ? n - k : n;
	}
	return n;
}

void
utf8_copy(char *out, size_t size, const char *text)
{
	size_t n = strlen(text);

	if (n > size - 1)
		n = utf8_complete_len(text, size - 1);
	memcpy(out, text, n);
	out[n] = '\0';
}

size_t
utf8_broken_start_len(const void *p, size_t n)
{
	const uint8_t *b = p;
	size_t i = 0;

	while (i < 3 && i < n && (b[i] & 0xc0) == 0x80)
		i++;
	return i;
}

int
utf8_append_repaired(struct buf *b, const void *p, size_t n)
{
	const uint8_t *s = p;
	size_t i = 0, len;

	while (i < n) {
		len = utf8_valid_len(s + i, n - i);
		if (buf_append(b, s + i, len) != 0)
			return -1;
		i += len;
		if (i == n)
			break;
		if (buf_append(b, UTF8_REPLACEMENT, 3) != 0)
			return -1;
		i++;
	}
	return 0;
}

size_t
utf8_control_len(const void *p, size_t n)
{
	const unsigned char *s = p;

	if (n > 0 && (s[0] < ' ' || s[0] == 0x7f))
		return 1;
	if (n > 1 && s[0] == 0xc2 && s[1] >= 0x80 && s[1] <= 0x9f)
		return 2;
	if (n > 2 && s[0] == 0xe2 &&
	    ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
		(s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9)))
		return 3;
	return 0;
}

size_t
utf8_mask_controls(char *text, size_t n)
{
	size_t used = 0, i = 0;

	while (i < n) {
		size_t control = utf8_control_len(text + i, n - i);

		text[used++] = control > 0 ? '?' : text[i];
		i += control > 0 ? control : 1;
	}
	return used;
}
