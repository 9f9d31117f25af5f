/*
 * audit_chain.h - how a row of the audit hangs on the one before it
 *
 * hash = SHA-256(hash before, seq, at_ms, times, and each other column: its
 * length and its bytes), numbers as 8 bytes, the lowest first; a length of
 * 2^64 - 1 is SQL's NULL.  The row before the first has 32 zeros.
 */
#ifndef STORE_AUDIT_CHAIN_H
#define STORE_AUDIT_CHAIN_H

#include "common/base.h"

#define AUDIT_CHAIN_TEXTS 9

struct audit_content {
	uint64_t seq;
	int64_t at_ms;
	uint64_t times;
	/* what .. detail, digest, in the table's order; p NULL: SQL's NULL */
	struct span texts[AUDIT_CHAIN_TEXTS];
};

/* audit_chain_next - from any thread; hash may be before */
void audit_chain_next(
    const uint8_t before[32], const struct audit_content *c, uint8_t hash[32]);

#endif
