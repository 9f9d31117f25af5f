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

/* Many small pieces are given to the digest as one. */
struct pieces {
	EVP_MD_CTX *ctx;
	size_t n;
	uint8_t bytes[1024];
};

static void
update(const struct pieces *to, const void *p, size_t n)
{
	if (EVP_DigestUpdate(to->ctx, p, n) != 1)
		fatal(EXIT_BUG, "SHA-256 failed");
}

static void
add_bytes(struct pieces *to, const void *p, size_t n)
{
	if (n > sizeof(to->bytes) - to->n) {
		update(to, to->bytes, to->n);
		to->n = 0;
	}
	if (n > sizeof(to->bytes)) {
		update(to, p, n);
		return;
	}
	memcpy(to->bytes + to->n, p, n);
	to->n += n;
}

static void
add_number(struct pieces *to, uint64_t v)
{
	uint8_t b[8];

	for (size_t i = 0; i < sizeof(b); i++)
		b[i] = (uint8_t)(v >> (8 * i));
	add_bytes(to, b, sizeof(b));
}

static void
add_text(struct pieces *to, const struct span *s)
{
	add_number(to, s->p == NULL ? UINT64_MAX : s->n);
	if (s->p != NULL)
		add_bytes(to, s->p, s->n);
}

void
audit_chain_next(
    const uint8_t before[32], const struct audit_content *c, uint8_t hash[32])
{
	struct pieces to;

	(void)pthread_once(&once, find_sha256);
	to.n = 0;
	to.ctx = EVP_MD_CTX_new();
	if (to.ctx == NULL || EVP_DigestInit_ex2(to.ctx, sha256, NULL) != 1)
		fatal(EXIT_BUG, "SHA-256 failed");
	add_bytes(&to, before, 32);
	add_number(&to, c->seq);
	add_number(&to, (uint64_t)c->at_ms);
	add_number(&to, c->times);
	for (size_t i = 0; i < AUDIT_CHAIN_TEXTS; i++)
		add_text(&to, &c->texts[i]);
	update(&to, to.bytes, to.n);
	if (EVP_DigestFinal_ex(to.ctx, hash, NULL) != 1)
		fatal(EXIT_BUG, "SHA-256 failed");
	EVP_MD_CTX_free(to.ctx);
}
