/*
 * query.h - the parameters of a request's query, by a table
 *
 * A route says in a table which parameters it knows and of which kind each
 * is; what is not in the table, or comes twice, or is not of its kind is
 * refused in words that name it and say what is wanted.  So a handler reads
 * values that need no more checks, and a filter that is misspelt is not a
 * filter that matches all.
 *
 * Names and values are percent-decoded once, "+" is a space, and what comes
 * out is UTF-8 without a NUL.  Empty pieces ("a=1&&b=2", "?") are nothing.
 */
#ifndef FRONT_QUERY_H
#define FRONT_QUERY_H

#include "common/base.h"
#include "common/err.h"
#include "common/uuid.h"

struct http_exchange;

#define QUERY_PARAMS_MAX 32   /* that a route knows */
#define QUERY_BYTES_MAX 16384 /* of a query, as it comes */
#define QUERY_TEXT_MAX 1024   /* bytes of a text whose table says no max */

enum query_kind {
	QUERY_TEXT,  /* min (at least 1) to max bytes, and fits says so */
	QUERY_SCOPE, /* a text: the tenant that the request is about (scope.h)
		      */
	QUERY_UUID,
	QUERY_WORD,   /* one of words */
	QUERY_NUMBER, /* min to max (0: as many as there are) */
	QUERY_TIME,   /* RFC 3339; seconds since 1970; "-30m": before now */
	QUERY_BOOL,   /* true, 1, or the name alone; false, 0 */
	QUERY_SORT    /* one of words, descending behind a "-" */
};

struct query_param {
	const char *name;
	enum query_kind kind;
	uint64_t min, max;
	const char *const *words;       /* ended by NULL */
	bool (*fits)(const char *text); /* NULL: any text does */
	const char *want; /* with fits: what it wants, for people */
};

struct query_table {
	const struct query_param *params;
	size_t n;
};

struct query_value {
	bool is_given;
	const char *text; /* decoded, whatever its kind; NULL: not given */
	union {
		uint64_t number;
		int64_t time_ms; /* wall clock */
		struct uuid uuid;
		size_t word; /* its place in words */
		bool is_true;
	};
	bool is_descending;
};

/* values[i] is of the i-th parameter of the table.  Zeroed: an empty one. */
struct query {
	struct query_value values[QUERY_PARAMS_MAX];
	char *mem; /* the texts */
};

/* query_parse - text is what stands behind the "?", NULL: nothing.  *q is to be
 * cleared after success.  ERR_INVAL */
int query_parse(const char *text, const struct query_table *t, int64_t now_ms,
    struct query *q, struct err *e) MUSTCHECK;
void query_clear(struct query *q);

/* query_number - of a QUERY_NUMBER; otherwise where it is not given */
static inline uint64_t
query_number(const struct query_value *v, uint64_t otherwise)
{
	return v->is_given ? v->number : otherwise;
}

/* query_until - an end in time for a filter to which 0 is none: nothing here
 * is of 1970 or before */
static inline int64_t
query_until(const struct query_value *v)
{
	return v->is_given && v->time_ms <= 0 ? 1 : v->time_ms;
}

/* query_read - of x's query; false: x was answered, with 400 */
bool query_read(struct http_exchange *x, const struct query_table *t,
    struct query *q) MUSTCHECK;

#endif
