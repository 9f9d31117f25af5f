#include "supervisor/store/audit_chain.h"

#include <openssl/evp.h>
#include <pthread.h>

#include "common/exit.h"
#include "common/log.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static EVP_MD *sha256; /* to look for it costs as much as to use it */

static void
find_sha256(void)
{
	sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (sha256 == NULL)
		fatal(EXIT_BUG, "no SHA-256");
}

static void
add_bytes(EVP_MD_CTX *ctx, const void *p, size_t n)
{
	if (EVP_DigestUpdate(ctx, p, n) != 1)
		fatal(EXIT_BUG, "SHA-256 failed");
}

static void
add_number(EVP_MD_CTX *ctx, uint64_t v)
{
	uint8_t b[8];

	for (size_t i = 0; i < sizeof(b); i++)
		b[i] = (uint8_t)(v >> (8 * i));
	add_bytes(ctx, b, sizeof(b));
}

static void
add_text(EVP_MD_CTX *ctx, const struct span *s)
{
	add_number(ctx, s->p == NULL ? UINT64_MAX : s->n);
	if (s->p != NULL)
		add_bytes(ctx, s->p, s->n);
}

void
audit_chain_next(
    const uint8_t before[32], const struct audit_content *c, uint8_t hash[32])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	(void)pthread_once(&once, find_sha256);
	if (ctx == NULL || EVP_DigestInit_ex2(ctx, sha256, NULL) != 1)
		fatal(EXIT_BUG, "SHA-256 failed");
	add_bytes(ctx, before, 32);
	add_number(ctx, c->seq);
	add_number(ctx, (uint64_t)c->at_ms);
	add_number(ctx, c->times);
	for (size_t i = 0; i < AUDIT_CHAIN_TEXTS; i++)
		add_text(ctx, &c->texts[i]);
	if (EVP_DigestFinal_ex(ctx, hash, NULL) != 1)
		fatal(EXIT_BUG, "SHA-256 failed");
	EVP_MD_CTX_free(ctx);
}
