/*
 * reader.h - the thread that reads; each op in a transaction of its own, so
 * that what it sees of several tables fits together
 */
#ifndef STORE_READER_H
#define STORE_READER_H

#include "supervisor/store/op.h"

struct db;
struct done;
struct reader;

int reader_start(struct db *db, struct done *done, struct reader **out,
    struct err *e) MUSTCHECK; /* takes db */
/* reader_stop - what is queued is released, not run */
void reader_stop(struct reader *r);
void reader_submit(struct reader *r, struct op *op);

#endif
