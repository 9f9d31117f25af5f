#include "worker/doctor/version.h"

#include <ctype.h>
#include <stdio.h>

#define VERSION_MAX 128

/* ---- deb-version(7) */

static int
order(char c)
{
	if (c == '~')
		return -1;
	if (c == '\0' || isdigit((unsigned char)c))
		return 0;
	if (isalpha((unsigned char)c))
		return (unsigned char)c;
	return (unsigned char)c + 256;
}

static bool
is_word_char(char c)
{
	return c != '\0' && !isdigit((unsigned char)c);
}

/* The next run of what is no digit. */
static int
compare_words(const char **a, const char **b)
{
	while (is_word_char(**a) || is_word_char(**b)) {
		int diff = order(**a) - order(**b);

		if (diff != 0)
			return diff;
		(*a)++;
		(*b)++;
	}
	return 0;
}

/* The next run of digits, however long. */
static int
compare_numbers(const char **a, const char **b)
{
	int first = 0;

	while (**a == '0')
		(*a)++;
	while (**b == '0')
		(*b)++;
	while (isdigit((unsigned char)**a) && isdigit((unsigned char)**b)) {
		if (first == 0)
			first = **a - **b;
		(*a)++;
		(*b)++;
	}
	if (isdigit((unsigned char)**a))
		return 1;
	if (isdigit((unsigned char)**b))
		return -1;
	return first;
}

int
version_compare(const char *a, const char *b)
{
	while (*a != '\0' || *b != '\0') {
		int diff = compare_words(&a, &b);

		if (diff == 0)
			diff = compare_numbers(&a, &b);
		if (diff != 0)
			return diff;
	}
	return 0;
}

/* ---- branches */

void
version_upstream(const char *version, char *out, size_t size)
{
	size_t n = 0;

	if (*version == 'v')
		version++;
	while (n + 1 < size &&
	    (isdigit((unsigned char)version[n]) || version[n] == '.')) {
		out[n] = version[n];
		n++;
	}
	/* A candidate comes before its release. */
	if ((version[n] == '-' || version[n] == '~') &&
	    (strncmp(version + n + 1, "rc", 2) == 0 ||
		strncmp(version + n + 1, "beta", 4) == 0)) {
		size_t more = strcspn(version + n + 1, "+-");

		(void)snprintf(
		    out + n, size - n, "~%.*s", (int)more, version + n + 1);
		return;
	}
	out[n] = '\0';
}

bool
version_is_debians(const char *version)
{
	return strstr(version, "+ds") != NULL ||
	    strstr(version, "~ds") != NULL || strstr(version, "+dfsg") != NULL;
}

/* The first two numbers: how much of it that is. */
static size_t
branch_len(const char *v)
{
	size_t n = strspn(v, "0123456789");

	if (v[n] == '.')
		n += 1 + strspn(v + n + 1, "0123456789");
	return n;
}

static size_t
release_len(const char *v)
{
	return strcspn(v, "u");
}

static bool
is_same_branch(const char *a, const char *b)
{
	size_t n = branch_len(a);

	return n == branch_len(b) && strncmp(a, b, n) == 0;
}

/* "+deb12u" of both; a package without it belongs to no stable release. */
static bool
is_same_release(const char *a, const char *b)
{
	const char *x = strstr(a, "+deb"), *y = strstr(b, "+deb");

	return x != NULL && y != NULL && release_len(x) == release_len(y) &&
	    strncmp(x, y, release_len(x)) == 0;
}

/* One item of a list; false at its end. */
static bool
next_item(const char **list, char item[VERSION_MAX])
{
	size_t n = strcspn(*list, ",");

	if (n == 0)
		return false;
	(void)snprintf(item, VERSION_MAX, "%.*s", (int)n, *list);
	*list += n + ((*list)[n] == ',');
	return true;
}

bool
version_is_fixed(const char *version, const char *fixed)
{
	char item[VERSION_MAX];
	bool above_all = true;

	while (next_item(&fixed, item)) {
		bool good = version_compare(version, item) >= 0;

		if (is_same_branch(version, item))
			return good;
		above_all = above_all && good;
	}
	return above_all;
}

bool
version_is_packaged_fixed(const char *version, const char *fixed)
{
	char item[VERSION_MAX];

	while (next_item(&fixed, item))
		if (is_same_release(version, item) &&
		    version_compare(version, item) >= 0)
			return true;
	return false;
}
