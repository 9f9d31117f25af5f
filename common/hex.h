/* hex.h - bytes as digits 0-9a-f. */
#ifndef COMMON_HEX_H
#define COMMON_HEX_H

#include "common/base.h"
#include "common/err.h"

#define HEX_BYTES(n) (2 * (n) + 1) /* of the text of n bytes, with its NUL */

/* hex_encode - writes HEX_BYTES(n) bytes to out */
void hex_encode(const void *p, size_t n, char *out);
/* hex_decode - text is n bytes in digits of either case and nothing more; else
 * ERR_PARSE, and out is changed in part */
int hex_decode(const char *text, void *out, size_t n) MUSTCHECK;
/* hex_value - 0 to 15 for a digit of either case, else -1 */
int hex_value(char c);

#endif
