#include "common/text.h"

#include "common/utf8.h"

void
text_clean(char *to, size_t size, const void *from, size_t n)
{
	const unsigned char *s = from;
	bool is_utf8 = utf8_is_valid(from, n);
	size_t used = 0, i = 0;

	while (i < n && used + 1 < size) {
		size_t control = utf8_control_len(s + i, n - i);

		if (control == 0 && (is_utf8 || s[i] < 0x80))
			to[used++] = (char)s[i];
		else if (used > 0 && to[used - 1] != ' ')
			to[used++] = ' ';
		i += control > 0 ? control : 1;
	}
	if (is_utf8)
		used = utf8_complete_len(to, used);
	while (used > 0 && to[used - 1] == ' ')
		used--;
	to[used] = '\0';
}
