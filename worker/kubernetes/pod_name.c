#include "worker/kubernetes/pod_name.h"

#include <ctype.h>
#include <stdio.h>

#include <openssl/sha.h>

#include "common/hex.h"

#define DIGEST_BYTES 4
#define KEPT_MAX (POD_NAME_MAX - 1 - 2 * DIGEST_BYTES)
#define LETTERS "abcdefghijklmnopqrstuvwxyz0123456789"

bool
pod_name_is_label(const char *s)
{
	size_t n = strlen(s);

	return n >= 1 && n <= POD_NAME_MAX && strspn(s, LETTERS "-") == n &&
	    s[0] != '-' && s[n - 1] != '-';
}

void
pod_name(const char *box_name, char out[POD_NAME_MAX + 1])
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	char digits[HEX_BYTES(DIGEST_BYTES)];
	size_t n = 0;

	if (pod_name_is_label(box_name)) {
		memcpy(out, box_name, strlen(box_name) + 1);
		return;
	}
	for (const char *p = box_name; *p != '\0' && n < KEPT_MAX; p++) {
		int c = tolower((unsigned char)*p);
		bool fits = c != '\0' && strchr(LETTERS, c) != NULL;

		if (fits || n > 0)
			out[n++] = fits ? (char)c : '-';
	}
	(void)SHA256((const uint8_t *)box_name, strlen(box_name), digest);
	hex_encode(digest, DIGEST_BYTES, digits);
	(void)snprintf(
	    out + n, POD_NAME_MAX + 1 - n, "%s%s", n == 0 ? "x-" : "-", digits);
}
