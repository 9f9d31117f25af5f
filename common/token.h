/*
 * token.h - the text by which a tenant is known
 *
 *	mcps_<id>_<secret>	12 and 43 letters and digits
 *
 * The id is no secret: it finds the token, and stands in lists and logs.  The
 * secret has 256 bits; what is kept of it is its SHA-256, which is enough for
 * a secret that nobody can guess.
 */
#ifndef COMMON_TOKEN_H
#define COMMON_TOKEN_H

#include "common/base.h"

#define TOKEN_PREFIX "mcps_"
#define TOKEN_ID_LEN 12
#define TOKEN_SECRET_LEN 43 /* of base 62: 256 bits */
#define TOKEN_TEXT_LEN                                                         \
	(sizeof(TOKEN_PREFIX) - 1 + TOKEN_ID_LEN + 1 + TOKEN_SECRET_LEN)
#define TOKEN_DIGEST_LEN 32

struct token_text {
	char id[TOKEN_ID_LEN + 1];
	uint8_t digest[TOKEN_DIGEST_LEN]; /* of its secret */
};

bool token_is_id(const char *s);
/* token_make - a new one; text is shown once and wiped by the caller */
void token_make(struct token_text *out, char text[TOKEN_TEXT_LEN + 1]);
/* token_parse - false when it has not the form of one; *out is filled all the
 * same, with what belongs to no token, in the same time */
bool token_parse(const char *text, struct token_text *out);
/* token_digest_is_equal - in a time that does not depend on where they differ
 */
bool token_digest_is_equal(
    const uint8_t a[TOKEN_DIGEST_LEN], const uint8_t b[TOKEN_DIGEST_LEN]);

#endif
