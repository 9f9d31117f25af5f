/*
 * history_output.h - what of a run's output can be looked for: the first and
 * the last HISTORY_OUTPUT_BYTES of each stream of each command, as text
 *
 * Of a long log only its beginning and its end are read, of which the end is
 * searched for where records begin.  What makes no sense is left out: it is
 * the sandbox's own.
 */
#ifndef STORE_HISTORY_OUTPUT_H
#define STORE_HISTORY_OUTPUT_H

#include "common/buf.h"

/* history_output_add - text is UTF-8 without control characters but \n; as
 * much as has room in b */
void history_output_add(struct buf *b, const uint8_t *p, size_t n);
/* history_output_log - of a log in memory */
void history_output_log(struct buf *b, const uint8_t *log, size_t n);
/* history_output_file - of one in a file of so many bytes */
void history_output_file(struct buf *b, int fd, uint64_t bytes);

#endif
