#include "common/conf_near.h"

#define NAME_MAX_BYTES 64
#define NAME_MIN_BYTES 5 /* below, everything is near to something */
#define NEAR 2

static size_t
least(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Levenshtein's distance, a row at a time; both at most NAME_MAX_BYTES. */
static size_t
distance(const char *a, const char *b)
{
	size_t row[NAME_MAX_BYTES + 1] = {0}, n = strlen(b);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1] != '\0'; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t above = row[j];

			row[j] = least(above + 1, row[j - 1] + 1,
			    diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[n];
}

/* Of one word, many a variable of somebody else's is the beginning. */
static bool
is_cut_short(const char *name, size_t n, const char *key)
{
	const char *second = strchr(name, '_');

	return second != NULL && second[1] != '\0' &&
	    strncmp(name, key, n) == 0 && key[n] != '\0';
}

const char *
conf_nearest(const char *name, const char *(*key_at)(size_t i), size_t nkeys)
{
	const char *best = NULL, *whole = NULL;
	size_t n = strlen(name), least_so_far = NEAR + 1;

	if (n < NAME_MIN_BYTES || n > NAME_MAX_BYTES)
		return NULL;
	for (size_t i = 0; i < nkeys; i++) {
		const char *key = key_at(i);
		size_t d =
		    strlen(key) > NAME_MAX_BYTES ? n : distance(name, key);

		if (d == 0)
			return NULL;
		if (d < least_so_far) {
			least_so_far = d;
			best = key;
		}
		if (is_cut_short(name, n, key) &&
		    (whole == NULL || strlen(key) < strlen(whole)))
			whole = key;
	}
	return best != NULL ? best : whole;
}

bool
conf_is_foreign(const char *name)
{
	static const char *const names[] = {"DEBUG_UI_ENABLED",
	    "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "KUBECONFIG",
	    "POD_NAMESPACE"};
	static const char *const beginnings[] = {"KUBERNETES_", "K8S_"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
		if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}
