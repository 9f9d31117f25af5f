#include "common/clock.h"

#include <stdio.h>
#include <time.h>

#define CLOCK_DAY_MS INT64_C(86400000)
/* Years 1 and 9999: what the text form can say. */
#define CLOCK_TEXT_FIRST_MS INT64_C(-62135596800000)
#define CLOCK_TEXT_LAST_MS INT64_C(253402300799999)

static int64_t
clock_us(clockid_t id)
{
	struct timespec ts;

	/* Cannot fail: both clocks exist and ts is ours. */
	(void)clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

uint64_t
clock_mono_us(void)
{
	return (uint64_t)clock_us(CLOCK_MONOTONIC);
}

uint64_t
clock_mono_ms(void)
{
	return clock_mono_us() / 1000;
}

int64_t
clock_wall_us(void)
{
	return clock_us(CLOCK_REALTIME);
}

int64_t
clock_wall_ms(void)
{
	return clock_wall_us() / 1000;
}

/*
 * Days since 1970-01-01 to a date of the Gregorian calendar.  Years are
 * counted from March, so that the leap day is the last one.
 *
 * Not gmtime_r: its first call reads /etc/localtime and so, in the agent, a
 * file that the sandbox's image brought along.
 */
static void
clock_civil(
    int64_t days, unsigned int *year, unsigned int *month, unsigned int *day)
{
	int64_t z = days + 719468; /* since 0000-03-01 */
	unsigned int era = (unsigned int)(z / 146097);
	unsigned int doe = (unsigned int)(z % 146097);
	unsigned int yoe =
	    (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	unsigned int doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	unsigned int mp = (5 * doy + 2) / 153;

	*day = doy - (153 * mp + 2) / 5 + 1;
	*month = mp < 10 ? mp + 3 : mp - 9;
	*year = yoe + era * 400 + (*month <= 2 ? 1 : 0);
}

void
clock_format(int64_t wall_ms, char out[CLOCK_TEXT_MAX])
{
	unsigned int year, month, day, ms;
	int64_t days;

	if (wall_ms < CLOCK_TEXT_FIRST_MS)
		wall_ms = CLOCK_TEXT_FIRST_MS;
	if (wall_ms > CLOCK_TEXT_LAST_MS)
		wall_ms = CLOCK_TEXT_LAST_MS;
	days = wall_ms / CLOCK_DAY_MS;
	if (wall_ms % CLOCK_DAY_MS < 0)
		days--;
	ms = (unsigned int)(wall_ms - days * CLOCK_DAY_MS);
	clock_civil(days, &year, &month, &day);
	/* %: the compiler, too, sees that it fits. */
	(void)snprintf(out, CLOCK_TEXT_MAX,
	    "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", year % 10000, month % 100,
	    day % 100, ms / 3600000 % 24, ms / 60000 % 60, ms / 1000 % 60,
	    ms % 1000);
}
