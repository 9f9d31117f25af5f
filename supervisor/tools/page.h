/*
 * page.h - a part of a run's output, in the order in which it was printed
 *
 * A cursor is a place in the run's log: "0" is its beginning, and each page
 * says where the next one begins, for as long as there may be more.  That one
 * is signed: within output stands what the run wrote, and that must not be
 * taken for records.
 *
 * Pages leave nothing out: what a cursor passes over is whole in the page, in
 * its structure and in its text, which has a bound.  So a page ends where its
 * text has no more room, between two characters, and the place may be within a
 * record.  The text is what a terminal would show of the page (screen.h).
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
#include "supervisor/tools/tool_text.h"

#define PAGE_BYTES 32768 /* of records asked for */

#define PAGE_CURSOR_TEXT_MAX 64
#define PAGE_GROWS UINT64_MAX /* as a log's length: there may be more of it */

struct page_of { /* whose cursors */
	const struct uuid *run;
	const uint8_t *key; /* SIPHASH_KEY_BYTES */
};

void page_format_cursor(const struct page_of *of, const struct log_at *at,
    char out[PAGE_CURSOR_TEXT_MAX]);
/* page_parse_cursor - ERR_INVAL: it was never given out for this run */
int page_parse_cursor(const struct page_of *of, const char *text,
    struct log_at *at, struct err *e) MUSTCHECK;

struct page_wish {
	/* The log's length if it did not grow any more when the records were
	 * asked for, or PAGE_GROWS. */
	uint64_t upto;
	enum tool_text_form form; /* of the text that is to have room for it */
};

/*
 * page_view - as many of the records as make a page (they may be parts of
 * records, log_view_read): "output", a list of index, stream and text,
 * and "next_cursor"
 */
json_t *page_view(const struct store_run *row,
    const struct log_records *records, const struct page_of *of,
    const struct page_wish *wish);
/* page_write - the same as text */
void page_write(struct buf *b, const json_t *view);

#endif
