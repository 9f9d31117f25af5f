/*
 * complaint.h - what a program in a box writes to its standard error, where its
 * standard output is the stream of somebody else
 *
 * One line at most, for the log: words for a person, and never data.
 */
#ifndef WORKER_COMPLAINT_H
#define WORKER_COMPLAINT_H

#include "common/base.h"

#define COMPLAINT_MAX 1024 /* bytes of one program, in all */
#define COMPLAINT_KEPT 128
#define COMPLAINT_TOO_MUCH                                                     \
	"the program in the sandbox writes too much to its stderr"

struct complaint {
	size_t n;
	char first[COMPLAINT_KEPT]; /* of them */
};

/* complaint_add - n more bytes; -1: more than COMPLAINT_MAX */
int complaint_add(struct complaint *c, const uint8_t *p, size_t n) MUSTCHECK;
/* complaint_log - the words that came, if any */
void complaint_log(const struct complaint *c);

#endif
