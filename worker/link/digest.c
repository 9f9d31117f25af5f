#include "worker/link/digest.h"

#include <openssl/evp.h>

#include "common/exit.h"
#include "common/hex.h"
#include "common/log.h"

/* struct digest is OpenSSL's context under our name. */
static EVP_MD_CTX *
context(struct digest *d)
{
	return (EVP_MD_CTX *)d;
}

struct digest *
digest_begin(void)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();

	if (c == NULL || EVP_DigestInit_ex(c, EVP_sha256(), NULL) != 1)
		fatal(EXIT_MEMORY, "no SHA-256");
	return (struct digest *)c;
}

void
digest_add(struct digest *d, const void *p, size_t n)
{
	if (EVP_DigestUpdate(context(d), p, n) != 1)
		fatal(EXIT_MEMORY, "SHA-256 failed");
}

void
digest_end(struct digest *d, uint8_t out[DIGEST_BYTES])
{
	if (EVP_DigestFinal_ex(context(d), out, NULL) != 1)
		fatal(EXIT_MEMORY, "SHA-256 failed");
	digest_drop(d);
}

void
digest_drop(struct digest *d)
{
	EVP_MD_CTX_free(context(d));
}

void
digest_hex(const void *p, size_t n, char out[DIGEST_HEX_BYTES])
{
	uint8_t sum[DIGEST_BYTES];
	struct digest *d = digest_begin();

	digest_add(d, p, n);
	digest_end(d, sum);
	hex_encode(sum, sizeof(sum), out);
}
