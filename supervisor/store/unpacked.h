/* unpacked.h - a database out of a backup, before a server begins with it */
#ifndef STORE_UNPACKED_H
#define STORE_UNPACKED_H

#include "common/base.h"
#include "common/err.h"

struct db;

/*
 * unpacked_check - it can be this program's: it is whole and not of a newer
 * version
 *
 * instance, of size bytes, is what it says whose it is; "" when nothing.
 */
int unpacked_check(
    const char *dir, char *instance, size_t size, struct err *e) MUSTCHECK;
/* unpacked_check_integrity - integrity_check; ERR_DAMAGED says what is wrong */
int unpacked_check_integrity(struct db *db, struct err *e) MUSTCHECK;
/* unpacked_lose_blobs - it is brought up to this program's version, and says
 * that these artifacts are lost */
struct unpacked_blob {
	uint64_t tenant;
	uint8_t sha256[32];
};
int unpacked_lose_blobs(const char *dir, const struct unpacked_blob *blobs,
    size_t n, struct err *e) MUSTCHECK;

#endif
