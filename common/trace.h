/*
 * trace.h - W3C Trace Context, level 1: the header traceparent
 *
 * 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01: version, trace,
 * span of who sends it, flags.  One that is not as the standard has it counts
 * as none; a later version is read as far as this one goes.  tracestate is
 * dropped: we add nothing to it, and nobody downstream would read it.
 */
#ifndef COMMON_TRACE_H
#define COMMON_TRACE_H

#include "common/base.h"

#define TRACE_ID_LEN 32 /* hex digits */
#define TRACE_SPAN_LEN 16
#define TRACE_PARENT_LEN 55 /* of the header in version 00 */

struct trace {
	char id[TRACE_ID_LEN + 1];
	char span[TRACE_SPAN_LEN + 1];   /* ours */
	char parent[TRACE_SPAN_LEN + 1]; /* whose child it is; "": nobody's */
	bool is_sampled;
};

/* trace_continue - a span below the one that traceparent names; -1: it names
 * none, and *t stays as it is.  May be NULL */
int trace_continue(struct trace *t, const char *traceparent) MUSTCHECK;
/* trace_begin - a trace of our own */
void trace_begin(struct trace *t);
/* trace_parent - the header for who is below our span */
void trace_parent(const struct trace *t, char out[TRACE_PARENT_LEN + 1]);

#endif
