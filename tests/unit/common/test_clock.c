#include <stdio.h>
#include <time.h>

#include "common/clock.h"
#include "tests/unit/test.h"

TEST(the_epoch_and_known_dates)
{
	static const struct {
		int64_t ms;
		const char *text;
	} known[] = {
	    {0, "1970-01-01T00:00:00.000Z"},
	    {INT64_C(1795201200123), "2026-11-20T19:00:00.123Z"},
	    {INT64_C(951782399999), "2000-02-28T23:59:59.999Z"},
	    {INT64_C(951782400000), "2000-02-29T00:00:00.000Z"},
	    {INT64_C(4107542400000), "2100-03-01T00:00:00.000Z"},
	    {-1, "1969-12-31T23:59:59.999Z"},
	    {INT64_MAX, "9999-12-31T23:59:59.999Z"},
	    {INT64_MIN, "0001-01-01T00:00:00.000Z"},
	};
	char text[CLOCK_TEXT_MAX];

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		clock_format(known[i].ms, text);
		assert_string_equal(text, known[i].text);
	}
}

TEST(every_day_agrees_with_the_c_library)
{
	char text[CLOCK_TEXT_MAX], want[80];
	struct tm tm;

	for (time_t t = -86400 * 200000L; t < 86400 * 400000L; t += 86400) {
		assert_non_null(gmtime_r(&t, &tm));
		(void)snprintf(want, sizeof(want),
		    "%04d-%02d-%02dT%02d:%02d:%02d.000Z", tm.tm_year + 1900,
		    tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
		    tm.tm_sec);
		clock_format((int64_t)t * 1000, text);
		assert_string_equal(text, want);
	}
}

TEST(clocks_advance_and_agree)
{
	uint64_t us = clock_mono_us(), ms = clock_mono_ms();
	int64_t wall = clock_wall_ms();

	assert_true(ms >= us / 1000);
	assert_true(ms - us / 1000 < 60000);
	assert_true(clock_wall_us() / 1000 >= wall);
	assert_true(wall > INT64_C(1700000000000));
	while (clock_mono_us() == us)
		;
}

TEST_MAIN(NULL, NULL)
