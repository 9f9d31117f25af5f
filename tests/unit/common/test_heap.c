/* test_heap.c - much is taken and freed with holes, and most of it goes back */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <stdio.h>

#include "common/heap.h"
#include "common/xmalloc.h"

#define MIB (1u << 20)
#define BLOCK 1000
#define BLOCKS (500u * MIB / BLOCK)
#define KEPT_EVERY 997 /* a block that stays, as a session would */

static size_t
resident_bytes(void)
{
	unsigned long all, resident;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &all, &resident), 2);
	(void)fclose(f);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void
test_what_a_burst_took_goes_back(void **state)
{
	void **blocks = xcalloc(BLOCKS, sizeof(*blocks));
	size_t before = resident_bytes(), full;

	(void)state;
	for (size_t i = 0; i < BLOCKS; i++) {
		blocks[i] = xmalloc(BLOCK);
		memset(blocks[i], 1, BLOCK);
	}
	full = resident_bytes();
	assert_true(full > before + 400u * MIB);
	for (size_t i = 0; i < BLOCKS; i++)
		if (i % KEPT_EVERY != 0)
			free(blocks[i]);
	heap_tick();
	heap_tick();
	/* The table of blocks is 4 MiB, those that stay have a page each. */
	assert_true(resident_bytes() < before + 32u * MIB);
	for (size_t i = 0; i < BLOCKS; i += KEPT_EVERY)
		free(blocks[i]);
	free(blocks);
}

/* So it is under the sanitizers, whose malloc has no such numbers and keeps
 * what is freed. */
static void
test_a_tick_beside_another_malloc_does_no_harm(void **state)
{
	uint8_t *block = xmalloc(5 * MIB);

	(void)state;
	memset(block, 1, 5 * MIB);
	heap_tick();
	assert_int_equal(block[5 * MIB - 1], 1);
	free(block);
	heap_tick();
}

static bool
malloc_is_glibc(void)
{
	void *p = xmalloc(BLOCK);
	bool is = mallinfo2().uordblks > 0;

	free(p);
	return is;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_what_a_burst_took_goes_back),
	};
	const struct CMUnitTest others[] = {
	    cmocka_unit_test(test_a_tick_beside_another_malloc_does_no_harm),
	};

	heap_init();
	if (!malloc_is_glibc())
		return cmocka_run_group_tests_name("heap", others, NULL, NULL);
	return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
