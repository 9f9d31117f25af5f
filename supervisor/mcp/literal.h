/*
 * literal.h - the numbers that must come back as they were written
 *
 * A JSON parser turns 9007199254740993 into a machine number and refuses what
 * does not fit one.  This pass over the raw text finds the three numbers that
 * a client wants to see again and keeps their text.  It judges nothing else:
 * the parser that follows says whether the text is JSON at all.
 */
#ifndef MCP_LITERAL_H
#define MCP_LITERAL_H

#include "common/base.h"
#include "common/err.h"

enum literal_place {
	LITERAL_ID,             /* id */
	LITERAL_REQUEST_ID,     /* params.requestId */
	LITERAL_PROGRESS_TOKEN, /* params._meta.progressToken */
	LITERAL_N
};

struct literals {
	char *text[LITERAL_N]; /* integers only; NULL: none there */
	char *copy; /* the body with a 0 for integers that a parser might
		     * refuse as too large; NULL: the body will do */
};

/* literal_scan - *out is filled and to be cleared also on failure: ERR_LIMIT
 * when nested deeper than depth_max (at most LITERAL_DEPTH_MAX) */
#define LITERAL_DEPTH_MAX 128
int literal_scan(const char *p, size_t n, unsigned int depth_max,
    struct literals *out, struct err *e) MUSTCHECK;
void literal_clear(struct literals *l);

#endif
