/* fuzz_runspec.c - what decodes must encode again to the same bytes.
 * libs: common */
#include "common/runspec.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct runspec s;
	struct buf b;
	struct err e;

	if (runspec_decode(data, size, &s, &e) != 0) {
		if (e.code >= 0 || e.msg[0] == '\0')
			abort();
		return 0;
	}
	buf_init(&b, RUNSPEC_BYTES_MAX);
	if (runspec_encode(&s, &b, &e) != 0 || buf_len(&b) != size ||
	    memcmp(buf_data(&b), data, size) != 0)
		abort();
	for (uint32_t i = 0; i < s.ncommands; i++)
		if (s.commands[i].argv[s.commands[i].argc] != NULL ||
		    s.commands[i].env[s.commands[i].nenv] != NULL)
			abort();
	buf_clear(&b);
	runspec_clear(&s);
	return 0;
}
