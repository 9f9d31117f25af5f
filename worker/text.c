#include "worker/text.h"

#include "common/utf8.h"

void
text_clean(char *to, size_t size, const void *from, size_t n)
{
	const unsigned char *s = from;
	bool is_utf8 = utf8_is_valid(from, n);
	size_t used = 0;

	for (size_t i = 0; i < n && used + 1 < size; i++) {
		bool plain = s[i] >= 0x20 && s[i] < 0x7f;

		if (plain || (is_utf8 && s[i] >= 0x80))
			to[used++] = (char)s[i];
		else if (used > 0 && to[used - 1] != ' ')
			to[used++] = ' ';
	}
	if (is_utf8)
		used = utf8_complete_len(to, used);
	while (used > 0 && to[used - 1] == ' ')
		used--;
	to[used] = '\0';
}
