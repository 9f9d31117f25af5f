#include "supervisor/mcp/base64.h"

#include <limits.h>

#include <openssl/evp.h>

#include "common/err.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"

char *
base64_write(const void *bytes, size_t n)
{
	char *out;

	if (n > INT_MAX / 2)
		fatal(EXIT_BUG, "%zu bytes are too many for base64", n);
	out = xcalloc(1, (n + 2) / 3 * 4 + 1);
	(void)EVP_EncodeBlock((unsigned char *)out, bytes, (int)n);
	return out;
}

/* Bytes that fill up the last three of a text of whole fours. */
static size_t
padding(const char *text, size_t len)
{
	if (len == 0 || text[len - 1] != '=')
		return 0;
	return text[len - 2] == '=' ? 2 : 1;
}

int
base64_read(const char *text, uint8_t **out, size_t *n)
{
	size_t len = strlen(text);
	AUTO(auto_free) uint8_t *bytes = NULL;
	AUTO(auto_free) char *again = NULL;

	if (len % 4 != 0 || len > INT_MAX / 2)
		return ERR_INVAL;
	bytes = xcalloc(1, len / 4 * 3 + 1);
	if (EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)len) < 0)
		return ERR_INVAL;
	/* OpenSSL lets pass blanks around the text and bits that do not count:
	 * one spelling is enough. */
	again = base64_write(bytes, len / 4 * 3 - padding(text, len));
	if (strcmp(again, text) != 0)
		return ERR_INVAL;
	*n = len / 4 * 3 - padding(text, len);
	*out = bytes;
	bytes = NULL;
	return 0;
}
