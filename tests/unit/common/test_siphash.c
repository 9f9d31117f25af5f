#include "common/siphash.h"
#include "tests/unit/test.h"

/* Of the paper's appendix and of its authors' vectors: key and text are the
 * bytes 0, 1, 2, ... */
TEST(known_texts_have_their_known_hashes)
{
	static const struct {
		size_t n;
		uint64_t want;
	} known[] = {
	    {0, UINT64_C(0x726fdb47dd0e0e31)},
	    {1, UINT64_C(0x74f839c593dc67fd)},
	    {8, UINT64_C(0x93f5f5799a932462)},
	    {15, UINT64_C(0xa129ca6149be45e5)},
	};
	uint8_t bytes[16];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		assert_true(siphash(bytes, bytes, known[i].n) == known[i].want);
}

TEST_MAIN(NULL, NULL)
