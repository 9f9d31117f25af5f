/* base64url.h - RFC 4648, section 5, without padding, as JOSE has it */
#ifndef FRONT_BASE64URL_H
#define FRONT_BASE64URL_H

#include "common/base.h"

/* base64url_decode - n characters into out, which has room for n * 3 / 4.
 * False for any other character, padding, or bits that are not zero at the
 * end: one value has one text. */
bool base64url_decode(
    const char *text, size_t n, uint8_t *out, size_t *out_len) MUSTCHECK;

#endif
