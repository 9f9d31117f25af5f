/*
 * bounds.h - what TENANTS_FILE says that workers hold the front to
 *
 * The words "ceiling.KEY=VALUE" and "rule.KEY=VALUE" of its lines "tenant
 * NAME ...".  The supervisor reads them itself, at its start: a front that has
 * fallen has no say in them.  All else in that file is the front's.
 */
#ifndef MASTER_BOUNDS_H
#define MASTER_BOUNDS_H

#include "common/base.h"
#include "common/err.h"

struct ipc_chan;

struct bounds_item {
	char *tenant;
	char *word;
};
/* Zeroed has none. */
struct bounds {
	struct bounds_item *items;
	size_t n;
};

/* bounds_read - path "": none.  ERR_INVAL, ERR_POLICY (others may write it)
 * name the file and the line */
int bounds_read(const char *path, struct bounds *out, struct err *e) MUSTCHECK;
void bounds_clear(struct bounds *b);
/* bounds_send - to a worker, before it is configured */
void bounds_send(const struct bounds *b, struct ipc_chan *chan);

#endif
