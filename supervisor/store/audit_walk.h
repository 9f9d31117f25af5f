/*
 * audit_walk.h - whether the audit is as it was written, piece by piece
 *
 * What is wrong is found (struct store_audit_check), not a failure of the
 * work.  Any thread, with a connection of its own.
 */
#ifndef STORE_AUDIT_WALK_H
#define STORE_AUDIT_WALK_H

#include "supervisor/store/store.h"

struct db;

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
