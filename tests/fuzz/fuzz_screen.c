/* fuzz_screen.c - what a terminal would show is text, no longer than what was
 * printed, without a control character but tab and line feed; and a piece that
 * is cut where the module says so shows nothing of a sequence.
 * libs: tools */
#include "common/utf8.h"
#include "supervisor/tools/screen.h"
#include "tests/fuzz/fuzz.h"

static void
check_shown(const struct buf *out)
{
	const uint8_t *p = buf_data(out);

	REQUIRE(utf8_is_valid(p, buf_len(out)));
	for (size_t i = 0; i < buf_len(out); i++)
		if ((p[i] < ' ' && p[i] != '\n' && p[i] != '\t') ||
		    p[i] == 0x7f || (p[i] == 0xc2 && p[i + 1] < 0xa0))
			abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out, text;

	buf_init(&out, 0);
	buf_init(&text, 0);
	REQUIRE(utf8_append_repaired(&text, data, size) == 0);
	screen_show(&out, data, size);
	check_shown(&out);
	if (buf_len(&out) > buf_len(&text) ||
	    screen_unfinished_len(data, size) > size ||
	    screen_unfinished_len(data, size) > SCREEN_SEQUENCE_MAX ||
	    screen_broken_start_len(data, size) > size)
		abort();
	buf_clear(&out);
	buf_clear(&text);
	return 0;
}
