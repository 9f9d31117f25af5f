/*
 * exposition.h - the metrics (common/metric.h) as texts for Prometheus
 *
 * Two forms: the text format 0.0.4, and OpenMetrics 1.0 for who asks for it by
 * Accept, with units, the time since when something is counted (_created), and
 * exemplars.
 */
#ifndef FRONT_EXPOSITION_H
#define FRONT_EXPOSITION_H

#include "common/buf.h"
#include "common/metric.h"

enum exposition_form {
	EXPOSITION_TEXT,
	EXPOSITION_OPENMETRICS
};

/* One observation of a bucket. */
struct exposition_exemplar {
	const char *labels; /* a="b",c="d": at most 128 characters of names and
			     * values together */
	uint64_t us;
	int64_t wall_ms;
};

/* What the list of metrics leaves to the program. */
struct exposition_words {
	/* value i of the family's first or second label (0, 1), if it has none
	 * there; NULL: not in use */
	const char *(*label)(enum metric_number family, unsigned int label,
	    unsigned int i, void *arg);
	/* of a histogram without labels; false: none.  May be NULL */
	bool (*exemplar)(enum metric_number family, unsigned int bucket,
	    struct exposition_exemplar *out, void *arg);
	void *arg;
};

/* exposition_choose - by the client's Accept line, which may be NULL: of two
 * that it likes equally, the text format */
enum exposition_form exposition_choose(const char *accept);
const char *exposition_type(enum exposition_form form); /* Content-Type */
/* exposition_write - all metrics; what b has no room for is missing */
void exposition_write(struct buf *b, enum exposition_form form,
    const struct exposition_words *words);

#endif
