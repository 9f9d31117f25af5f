/*
 * page.h - a part of a run's output, in the order in which it was printed
 *
 * A cursor is an offset in the run's log: "0" is its beginning, and each page
 * says where the next one begins, for as long as there may be more.  That one
 * is signed: within output stands what the run wrote, and that must not be
 * taken for records.
 */
#ifndef TOOLS_PAGE_H
#define TOOLS_PAGE_H

#include <jansson.h>

#include "common/base.h"
#include "common/buf.h"
#include "common/siphash.h"
#include "common/uuid.h"
#include "supervisor/core/logs.h"
#include "supervisor/store/store.h"

#define PAGE_BYTES 32768 /* of records asked for; one may be longer */

#define PAGE_CURSOR_TEXT_MAX 40
#define PAGE_GROWS UINT64_MAX /* as a log's length: there may be more of it */

struct page_of { /* whose cursors */
	const struct uuid *run;
	const uint8_t *key; /* SIPHASH_KEY_BYTES */
};

void page_format_cursor(
    const struct page_of *of, uint64_t offset, char out[PAGE_CURSOR_TEXT_MAX]);
/* page_parse_cursor - ERR_INVAL: it was never given out for this run */
int page_parse_cursor(const struct page_of *of, const char *text,
    uint64_t *offset, struct err *e) MUSTCHECK;
/*
 * page_view - records as "output", a list of index, stream and text, and
 * "next_cursor"
 *
 *	upto	the log's length if it did not grow any more when the records
 *		were asked for, or PAGE_GROWS
 */
json_t *page_view(const struct store_run *row,
    const struct log_records *records, const struct page_of *of, uint64_t upto);
/* page_write - the same as text */
void page_write(struct buf *b, const json_t *view);

#endif
