/* replay.c - runs a fuzz target over files, for compilers without libFuzzer:
 * link it with fuzz_X.c and call it with the files of a corpus. */
#include <stdio.h>

#include "common/fd.h"

#define REPLAY_MAX (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		AUTO(auto_free) char *text = NULL;
		size_t len = 0;
		struct err e;

		if (fd_read_file(argv[i], REPLAY_MAX, &text, &len, &e) != 0) {
			(void)fprintf(stderr, "replay: %s\n", e.msg);
			return 1;
		}
		(void)LLVMFuzzerTestOneInput((const uint8_t *)text, len);
	}
	(void)printf("%d inputs passed\n", argc - 1);
	return 0;
}
