/*
 * spans.h - ended runs on their way to OTLP_ENDPOINT
 *
 * The spans of a run that ended are put in a queue, sent together with those of
 * the next second, one request at a time, and kept until they are taken.  The
 * queue has its bounds: what comes while it is full is dropped and counted.
 * What is in it when this process ends is lost: the history has the runs.
 */
#ifndef FRONT_SPANS_H
#define FRONT_SPANS_H

#include "common/base.h"

#define SPANS_QUEUE_MAX 1000
#define SPANS_BYTES_MAX (512u << 10)

struct spans;

struct spans_parts { /* all are kept but the texts */
	struct event_base *base;
	struct bus *bus; /* the core's */
	const struct tenants *tenants;
	struct postbox *postbox;
	const char *version;
	const char *instance; /* "": none */
};

struct spans *spans_new(const struct spans_parts *parts);
void spans_free(struct spans *s); /* NULL is fine */
/* spans_pump - the postbox has room */
void spans_pump(struct spans *s);

#endif
