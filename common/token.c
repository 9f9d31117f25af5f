#include "common/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "common/exit.h"
#include "common/log.h"

#define ID_AT (sizeof(TOKEN_PREFIX) - 1)
#define SECRET_AT (ID_AT + TOKEN_ID_LEN + 1)

static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			      "abcdefghijklmnopqrstuvwxyz";
#define NLETTERS (sizeof(letters) - 1)

/* Bytes at and above the largest multiple of 62 are thrown away: each letter
 * is as likely as any other. */
static void
random_letters(char *out, size_t n)
{
	uint8_t bytes[64];
	size_t at = sizeof(bytes);

	while (n > 0) {
		if (at == sizeof(bytes)) {
			if (RAND_bytes(bytes, sizeof(bytes)) != 1)
				fatal(EXIT_BUG, "no random bytes for a token");
			at = 0;
		}
		if (bytes[at] < 256 / NLETTERS * NLETTERS) {
			*out++ = letters[bytes[at] % NLETTERS];
			n--;
		}
		at++;
	}
	OPENSSL_cleanse(bytes, sizeof(bytes));
}

static void
digest(const char *secret, uint8_t out[TOKEN_DIGEST_LEN])
{
	size_t len = 0;

	if (EVP_Q_digest(NULL, "SHA256", NULL, secret, TOKEN_SECRET_LEN, out,
		&len) != 1 ||
	    len != TOKEN_DIGEST_LEN)
		fatal(EXIT_BUG, "SHA-256 failed");
}

void
token_make(struct token_text *out, char text[TOKEN_TEXT_LEN + 1])
{
	memcpy(text, TOKEN_PREFIX, ID_AT);
	random_letters(text + ID_AT, TOKEN_ID_LEN);
	text[SECRET_AT - 1] = '_';
	random_letters(text + SECRET_AT, TOKEN_SECRET_LEN);
	text[TOKEN_TEXT_LEN] = '\0';
	memcpy(out->id, text + ID_AT, TOKEN_ID_LEN);
	out->id[TOKEN_ID_LEN] = '\0';
	digest(text + SECRET_AT, out->digest);
}

bool
token_is_id(const char *s)
{
	return strlen(s) == TOKEN_ID_LEN && strspn(s, letters) == TOKEN_ID_LEN;
}

static bool
has_form(const char *text)
{
	return strnlen(text, TOKEN_TEXT_LEN + 1) == TOKEN_TEXT_LEN &&
	    strncmp(text, TOKEN_PREFIX, ID_AT) == 0 &&
	    strspn(text + ID_AT, letters) == TOKEN_ID_LEN &&
	    text[SECRET_AT - 1] == '_' &&
	    strspn(text + SECRET_AT, letters) == TOKEN_SECRET_LEN;
}

bool
token_parse(const char *text, struct token_text *out)
{
	static const char nobody[TOKEN_TEXT_LEN + 1] =
	    TOKEN_PREFIX "____________"
			 "_"
			 "___________________________________________";
	bool good = has_form(text);
	const char *from = good ? text : nobody;

	memcpy(out->id, from + ID_AT, TOKEN_ID_LEN);
	out->id[TOKEN_ID_LEN] = '\0';
	digest(from + SECRET_AT, out->digest);
	return good;
}

bool
token_digest_is_equal(
    const uint8_t a[TOKEN_DIGEST_LEN], const uint8_t b[TOKEN_DIGEST_LEN])
{
	return CRYPTO_memcmp(a, b, TOKEN_DIGEST_LEN) == 0;
}
