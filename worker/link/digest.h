/* digest.h - SHA-256 in pieces. */
#ifndef WORKER_LINK_DIGEST_H
#define WORKER_LINK_DIGEST_H

#include "common/base.h"
#include "common/hex.h"

#define DIGEST_BYTES 32
#define DIGEST_HEX_BYTES HEX_BYTES(DIGEST_BYTES)

struct digest;

/* One at a time from begin to end or drop; ends the process without memory. */
struct digest *digest_begin(void);
void digest_add(struct digest *d, const void *p, size_t n);
void digest_end(struct digest *d, uint8_t out[DIGEST_BYTES]); /* frees */
void digest_drop(struct digest *d);                           /* NULL: fine */

void digest_hex(const void *p, size_t n, char out[DIGEST_HEX_BYTES]);

#endif
