/*
 * siphash.h - SipHash-2-4 (Aumasson and Bernstein, 2012): 64 bits that nobody
 * without the key can guess, of a short text
 *
 * By hand: agent and supervisor have no OpenSSL.
 */
#ifndef COMMON_SIPHASH_H
#define COMMON_SIPHASH_H

#include "common/base.h"

#define SIPHASH_KEY_BYTES 16

uint64_t siphash(const uint8_t key[SIPHASH_KEY_BYTES], const void *p, size_t n);

#endif
