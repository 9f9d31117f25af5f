/* progress_text.h - what is new of a run's output, as text of a progress */
#ifndef TOOLS_PROGRESS_TEXT_H
#define TOOLS_PROGRESS_TEXT_H

#include "common/base.h"
#include "common/buf.h"
#include "supervisor/core/log_digest.h"

#define PROGRESS_TEXT_MAX                                                      \
	(16u << 10) /* as JSON, beside words that say what is left out */

/*
 * progress_text_add - what a terminal would show (screen.h) of what the streams
 * of d have beyond told, which is moved on: all of it or, of what is long, its
 * end, with the number of bytes that were left out; nothing when nothing is new
 *
 *	told	for each command, bytes of stdout and stderr
 *
 * Returns how many bytes were printed since the run began.
 */
uint64_t progress_text_add(
    struct buf *out, const struct log_digest *d, uint64_t (*told)[2]);

#endif
