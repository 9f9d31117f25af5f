/*
 * leftovers.h - files that no row wants: found and removed, off the loop
 *
 * A crash leaves some (rows and files go one after the other), and so does a
 * run that committed blobs and then had no end with them.  All of this is done
 * on the writer's thread: between its commits no row appears or goes.
 */
#ifndef STORE_LEFTOVERS_H
#define STORE_LEFTOVERS_H

#include "common/uuid.h"

struct db;
struct store;

/* leftovers_sweep - look through all that is there, a few hundred files at a
 * time, for what an earlier opening of the store left */
void leftovers_sweep(struct store *s);

/* Blobs that no row may count: new, add up to max, submit (which takes it). */
struct leftovers;
struct leftovers *leftovers_new(struct store *s, size_t max);
void leftovers_add_blob(
    struct leftovers *l, uint64_t tenant, const uint8_t sha256[32]);
void leftovers_submit(struct leftovers *l);

/* leftovers_check_blob - on the writer's thread: it goes if no row counts it
 * and no unfinished run has it */
void leftovers_check_blob(
    struct store *s, struct db *db, uint64_t tenant, const uint8_t sha256[32]);

#endif
