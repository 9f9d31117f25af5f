/*
 * credit.h - how far a stream may be sent: one rule for every channel
 *
 * Offsets are absolute.  The receiver grants a stream up to limit, and says up
 * to where it has taken it for good; the sender never sends beyond.  Both ends
 * of a stream keep one of these, of their own half.  schema/frame.txt has the
 * rule in words.
 */
#ifndef COMMON_CREDIT_H
#define COMMON_CREDIT_H

#include "common/base.h"
#include "common/err.h"

/* Where a stream's sender is. */
struct credit {
	uint64_t sent;
	uint64_t taken; /* all before it need not be kept */
	uint64_t limit;
};

/* credit_open - sent and taken are at from */
void credit_open(struct credit *c, uint64_t from, uint64_t limit);
/* credit_left - what may be sent now */
static inline uint64_t
credit_left(const struct credit *c)
{
	return c->limit > c->sent ? c->limit - c->sent : 0;
}
/* credit_grant - from the receiver: ERR_PROTO when it took what was not sent.
 * What goes back is old news and changes nothing. */
int credit_grant(
    struct credit *c, uint64_t taken, uint64_t limit, struct err *e) MUSTCHECK;

/* Where a stream's receiver is. */
struct grant {
	uint64_t got;
	uint64_t limit;
};

/* grant_open - it begins at from; limit is granted with that */
void grant_open(struct grant *g, uint64_t from, uint64_t limit);
/* grant_take - n units came, the first at offset: ERR_PROTO when they are not
 * the next ones, are none, or go beyond what was granted */
int grant_take(
    struct grant *g, uint64_t offset, uint64_t n, struct err *e) MUSTCHECK;

#endif
