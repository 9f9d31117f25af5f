#include "common/moment.h"

#include <ctype.h>
#include <time.h>

#define SECONDS_DIGITS 12
#define LAST_MS INT64_C(253402300799000) /* of the year 9999 */

/* n digits of *p, which goes on behind them. */
static bool
take_digits(const char **p, size_t n, int *out)
{
	*out = 0;
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)**p))
			return false;
		*out = *out * 10 + (*(*p)++ - '0');
	}
	return true;
}

static bool
take_char(const char **p, const char *any_of)
{
	if (**p == '\0' || strchr(any_of, **p) == NULL)
		return false;
	(*p)++;
	return true;
}

/* Behind the seconds; what is finer than a millisecond is cut. */
static bool
take_fraction(const char **p, int *ms)
{
	int scale = 100;

	*ms = 0;
	if (**p != '.')
		return true;
	(*p)++;
	if (!isdigit((unsigned char)**p))
		return false;
	for (; isdigit((unsigned char)**p); (*p)++, scale /= 10)
		*ms += (**p - '0') * scale;
	return true;
}

/* A "+" that was not escaped has become a space. */
static bool
take_zone(const char **p, int *minutes)
{
	bool is_east = **p == '+' || **p == ' ';
	int hour, minute;

	*minutes = 0;
	if (take_char(p, "Zz"))
		return true;
	if (!take_char(p, "+ -") || !take_digits(p, 2, &hour) ||
	    !take_char(p, ":") || !take_digits(p, 2, &minute) || hour > 23 ||
	    minute > 59)
		return false;
	*minutes = (is_east ? 1 : -1) * (hour * 60 + minute);
	return true;
}

/* RFC 3339, 5.6: a date-time. */
static bool
parse_date_time(const char *p, int64_t *out)
{
	struct tm tm = {0}, again;
	int ms, minutes;
	time_t at;

	if (!take_digits(&p, 4, &tm.tm_year) || !take_char(&p, "-") ||
	    !take_digits(&p, 2, &tm.tm_mon) || !take_char(&p, "-") ||
	    !take_digits(&p, 2, &tm.tm_mday) || !take_char(&p, "Tt") ||
	    !take_digits(&p, 2, &tm.tm_hour) || !take_char(&p, ":") ||
	    !take_digits(&p, 2, &tm.tm_min) || !take_char(&p, ":") ||
	    !take_digits(&p, 2, &tm.tm_sec) || !take_fraction(&p, &ms) ||
	    !take_zone(&p, &minutes) || *p != '\0')
		return false;
	if (tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	again = tm;
	again.tm_hour = 0;
	again.tm_min = 0;
	again.tm_sec = 0;
	/* A day that the month does not have becomes another. */
	(void)timegm(&again);
	if (again.tm_mday != tm.tm_mday || again.tm_mon != tm.tm_mon)
		return false;
	at = timegm(&tm);
	*out = ((int64_t)at - (int64_t)minutes * 60) * 1000 + ms;
	return true;
}

/* "-90s", "-30m", "-2h", "-7d", "-4w". */
static bool
parse_ago(const char *text, int64_t now_ms, int64_t *out)
{
	static const struct {
		char letter;
		int64_t ms;
	} units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000},
	    {'w', 7 * (int64_t)86400000}};
	size_t n = strspn(text + 1, "0123456789");
	const char *unit = text + 1 + n;

	if (n == 0 || n > 7 || unit[0] == '\0' || unit[1] != '\0')
		return false;
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (units[i].letter != unit[0])
			continue;
		*out = now_ms - strtoll(text + 1, NULL, 10) * units[i].ms;
		return true;
	}
	return false;
}

bool
moment_parse(const char *text, int64_t now_ms, int64_t *out)
{
	size_t n = strspn(text, "0123456789");

	if (text[0] == '-')
		return parse_ago(text, now_ms, out);
	if (n == 0 || text[n] != '\0')
		return parse_date_time(text, out);
	if (n > SECONDS_DIGITS)
		return false;
	*out = strtoll(text, NULL, 10) * 1000;
	return *out <= LAST_MS;
}
