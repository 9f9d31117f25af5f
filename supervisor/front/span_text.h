/*
 * span_text.h - an ended run as spans, in the JSON of OpenTelemetry's protocol
 *
 * By its JSON mapping: numbers of 64 bits are texts, ids small hex, names in
 * lowerCamelCase.  A run is a span, as the history has it, and each command
 * that began one below it.  Of what was asked for nothing is in them, neither
 * commands nor code nor output.
 */
#ifndef FRONT_SPAN_TEXT_H
#define FRONT_SPAN_TEXT_H

#include "supervisor/store/store.h"

#define SPAN_TEXT_MAX 4096 /* of one span, at most */

/* span_text_each - take is called with each span of the run; text is borrowed.
 * None of a run without a trace. */
void span_text_each(const struct store_run *row, const char *tenant,
    void (*take)(const char *text, void *arg), void *arg);
/* span_text_head, span_text_tail - what stands before and behind spans with
 * commas between, to make a request; the caller frees the head.  instance may
 * be "". */
char *span_text_head(const char *version, const char *instance);
extern const char span_text_tail[];

#endif
