/* fuzz.h - what every fuzz target has */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "common/xmalloc.h"

/* Of libFuzzer, or of replay.c. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A condition that no input may break. */
#define REQUIRE(cond)                                                          \
	do {                                                                   \
		if (!(cond))                                                   \
			abort();                                               \
	} while (0)

/* Ends text at its first line and gives what follows, NULL for nothing. */
static inline char *
fuzz_cut_line(char *text)
{
	char *end = strchr(text, '\n');

	if (end == NULL)
		return NULL;
	*end = '\0';
	return end + 1;
}

#endif
