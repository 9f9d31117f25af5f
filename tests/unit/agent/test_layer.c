#include "common/clock.h"
#include "images/agent/layer.h"
#include "tests/unit/test.h"

#define MIB (UINT64_C(1) << 20)
#define FIRST_MS 62 /* a sixteenth of a second, for 10 GiB */

static struct layer layer;
static uint64_t now;

static int
setup(void **state)
{
	(void)state;
	layer_init(
	    &layer, "/", (struct layer_use){.bytes = UINT64_C(10240) * MIB});
	now = clock_mono_ms();
	return 0;
}

static void
tick(uint64_t at_ms, bool busy)
{
	now = at_ms;
	assert_int_equal(layer_tick(&layer, now, busy), LAYER_FINE);
	/* somebody else filled the disk, at a bad moment for this test */
	if (layer_count_is_running(&layer.count))
		skip();
}

TEST(an_end_is_looked_behind_at_once)
{
	tick(now, true);
	tick(now + 1000, false);
	assert_int_equal(layer.looked_ms, now);
	assert_int_equal(layer_next_ms(&layer), UINT64_MAX);
}

TEST(a_program_behind_another_is_looked_at_after_a_while)
{
	tick(now, true);
	tick(now + 1000, false);
	tick(now + 500, true);
	assert_int_equal(layer_next_ms(&layer), now + FIRST_MS);
	tick(now + FIRST_MS - 1, true);
	assert_int_not_equal(layer.looked_ms, now);
	tick(now + 1, true);
	assert_int_equal(layer.looked_ms, now);
}

TEST(short_programs_in_a_row_share_a_look)
{
	uint64_t looked;

	tick(now, true);
	tick(now + 1000, false);
	looked = layer.looked_ms;
	while (now + 2 < looked + FIRST_MS) {
		tick(now + 1, true);
		tick(now + 1, false);
		assert_int_equal(layer.looked_ms, looked);
		assert_int_equal(layer_next_ms(&layer), looked + FIRST_MS);
	}
	tick(looked + FIRST_MS, true); /* runs or not */
	assert_int_equal(layer.looked_ms, looked + FIRST_MS);
}

TEST(the_last_of_them_is_looked_behind_when_nothing_runs)
{
	uint64_t looked;

	tick(now, true);
	tick(now + 1000, false);
	looked = layer.looked_ms;
	tick(now + 1, true);
	tick(now + 1, false);
	tick(looked + FIRST_MS - 1, false);
	assert_int_equal(layer.looked_ms, looked);
	tick(looked + FIRST_MS, false);
	assert_int_equal(layer.looked_ms, now);
	assert_int_equal(layer_next_ms(&layer), UINT64_MAX);
}

TEST(a_small_limit_is_looked_at_sooner)
{
	layer.max.bytes = 128 * MIB;
	layer.allowed.bytes = 128 * MIB;
	tick(now, true);
	tick(now + 1000, false);
	tick(now + 1, true);
	assert_int_equal(layer_next_ms(&layer), now + 10);
}

TEST(without_a_limit_nobody_looks)
{
	layer_init(&layer, "/", (struct layer_use){0});
	tick(now, true);
	tick(now + 1000, false);
	assert_int_equal(layer.looked_ms, 0);
	assert_int_equal(layer_next_ms(&layer), UINT64_MAX);
}

TEST_MAIN(setup, NULL)
