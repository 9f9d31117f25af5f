/*
 * audit_walk.h - the audit's chain of hashes: its links, its two ends, and
 * whether it is as it was written
 *
 * hash = SHA-256(hash before, seq, at_ms, times, and each other column: its
 * length and its bytes), numbers as 8 bytes, the lowest first; a length of
 * 2^64 - 1 is SQL's NULL.  The row before the first has 32 zeros.
 *
 * What a check finds wrong is in struct store_audit_check, and is no failure
 * of the work.  Any thread, with a connection of its own.
 */
#ifndef STORE_AUDIT_WALK_H
#define STORE_AUDIT_WALK_H

#include "supervisor/store/store.h"

struct db;

#define AUDIT_CHAIN_TEXTS 9

struct audit_content {
	uint64_t seq;
	int64_t at_ms;
	uint64_t times;
	/* what .. detail, digest, in the table's order; p NULL: SQL's NULL */
	struct span texts[AUDIT_CHAIN_TEXTS];
};

/* audit_chain_next - hash may be before */
void audit_chain_next(
    const uint8_t before[32], const struct audit_content *c, uint8_t hash[32]);

struct audit_ends {                   /* in the first tenant's row */
	struct store_audit_mark head; /* the newest row */
	struct store_audit_mark base; /* the newest that was trimmed */
};
/* audit_ends_get - ERR_NOTFOUND: they are missing */
int audit_ends_get(
    struct db *db, struct audit_ends *out, struct err *e) MUSTCHECK;
int audit_ends_put(
    struct db *db, const struct audit_ends *ends, struct err *e) MUSTCHECK;

struct audit_walk {
	bool is_first;
	struct store_audit_mark at; /* checked so far */
	uint8_t known[32];
	struct store_audit_check found;
};

/* audit_walk_init - after NULL: from the beginning; known: a hash that is
 * looked for on the way, or NULL */
void audit_walk_init(struct audit_walk *k, const struct store_audit_mark *after,
    const uint8_t *known);
/* audit_walk_piece - the next STORE_AUDIT_PIECE rows */
int audit_walk_piece(
    struct db *db, struct audit_walk *k, struct err *e) MUSTCHECK;
/* audit_walk_file - all of dir's database, of which nothing is changed;
 * ERR_NOTFOUND: there is none */
int audit_walk_file(const char *dir, const uint8_t *known,
    struct store_audit_check *out, struct err *e) MUSTCHECK;

#endif
