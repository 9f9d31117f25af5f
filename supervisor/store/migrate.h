/*
 * migrate.h - bring a database up to the schema this program knows
 *
 * files: the migrations (embed_sql), named NNNN_what.sql from 0001 without
 * gaps; see schema/README.md for what they may do.
 */
#ifndef STORE_MIGRATE_H
#define STORE_MIGRATE_H

#include "common/base.h"
#include "common/embed.h"
#include "common/err.h"

struct db;
struct store_progress;

/* migrate_check - whether the file is new or ours, and not newer than us;
 * changes nothing.  ERR_WRONG_STATE when it is not for us. */
int migrate_check(
    struct db *db, const struct embed_file *files, struct err *e) MUSTCHECK;
/* migrate_run - the missing ones, each in a transaction with its number: all
 * of it or nothing of it is there afterwards.  p may be NULL. */
int migrate_run(struct db *db, const struct embed_file *files,
    const struct store_progress *p, struct err *e) MUSTCHECK;

#endif
