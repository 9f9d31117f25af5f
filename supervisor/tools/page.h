/*
 * page.h - a part of a run's output, in the order in which it was printed
 *
 * A cursor is an offset in the run's log: "0" is its beginning, and each page
 * says where the next one begins, for as long as there may be more.
 */
#ifndef TOOLS_PAGE_H
#define TOOLS_PAGE_H

#include <jansson.h>

#include "common/base.h"
#include "common/buf.h"
#include "supervisor/core/logs.h"
#include "supervisor/store/store.h"

#define PAGE_BYTES 32768 /* of records asked for; one may be longer */

/* page_parse_cursor - of arguments; false: there is none */
bool page_parse_cursor(const json_t *arguments, uint64_t *offset);
/*
 * page_view - records from this offset on as "output", a list of index, stream
 * and text, and "next_cursor"
 *
 *	upto	the log's length; is_over: it will not grow
 */
json_t *page_view(const struct store_run *row,
    const struct log_records *records, uint64_t offset, uint64_t upto,
    bool is_over);
/* page_write - the same as text */
void page_write(struct buf *b, const json_t *view);

#endif
