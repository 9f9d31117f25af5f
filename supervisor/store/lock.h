/*
 * lock.h - one server per data directory
 *
 * An flock on dir/mcp-sandboxd.lock; the kernel gives it back whatever way
 * the process ends.  The file holds the owner's pid, for the message only.
 */
#ifndef STORE_LOCK_H
#define STORE_LOCK_H

#include "common/base.h"
#include "common/err.h"

#define LOCK_FILE "mcp-sandboxd.lock"

/* lock_take - a descriptor to keep open, or ERR_CONFLICT when another holds
 * it, ERR_SYS when the directory cannot be written */
int lock_take(const char *dir, struct err *e) MUSTCHECK;

#endif
