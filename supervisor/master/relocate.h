/*
 * relocate.h - a DATA_DIR of the layout before common/layout.h
 *
 * There the front's things lay in DATA_DIR itself, which was the front's.
 * They are renamed into DATA_DIR/front, one by one; a start that was broken
 * off goes on at the next.  links/ stays where it is: sandboxes that run have
 * it mounted.
 */
#ifndef MASTER_RELOCATE_H
#define MASTER_RELOCATE_H

#include "common/base.h"
#include "common/err.h"

/*
 * relocate_data - from DATA_DIR to its front directory, both open
 *
 * keep is the directory of artifacts that the operator has set, -1 for none:
 * what it is stays.  Nothing is moved unless all can be.  ERR_POLICY when a
 * thing is in both places (somebody started an older server here since), or
 * is a mount of its own; the text says what to do.  Returns how many were
 * moved.
 */
int relocate_data(
    int data, int front, int keep, const char *path, struct err *e) MUSTCHECK;

#endif
