/*
 * finding.h - what the doctor says: one line per thing looked at
 *
 * A finding holds, does not hold, or is not known; only if all hold the
 * doctor is content.
 */
#ifndef WORKER_DOCTOR_FINDING_H
#define WORKER_DOCTOR_FINDING_H

#include <stdio.h>

#include "common/base.h"

#define FINDINGS_MAX 128
#define FINDING_TEXT_MAX 400

enum finding_state {
	FINDING_HOLDS,
	FINDING_FAILS,
	FINDING_UNKNOWN
};

struct finding {
	const char *what; /* a literal */
	enum finding_state state;
	char text[FINDING_TEXT_MAX];   /* what was seen */
	char advice[FINDING_TEXT_MAX]; /* what to do; "" when it holds */
};

struct findings {
	struct finding all[FINDINGS_MAX];
	size_t n;
	size_t more; /* for which there was no room */
};

/* findings_add - what is kept by pointer; the rest is copied, cut, and made
 * printable.  Beyond FINDINGS_MAX they are counted only, and that is said: then
 * it is not known whether all hold. */
void findings_add(struct findings *f, const char *what,
    enum finding_state state, const char *advice, const char *text, ...)
    PRINTF(5, 6);
bool findings_all_hold(const struct findings *f);
void findings_print_table(const struct findings *f, FILE *out);
/* findings_print_json - one object: "holds", and "findings" */
void findings_print_json(const struct findings *f, FILE *out);

#endif
