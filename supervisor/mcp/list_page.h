/* list_page.h - lists that the library itself keeps, a page at a time */
#ifndef MCP_LIST_PAGE_H
#define MCP_LIST_PAGE_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"

#define LIST_PAGE_LEN 100

struct list_page {
	size_t from, to; /* of the list; to is behind it */
};

/* list_cursor - params.cursor: NULL for the beginning, which is no cursor or
 * "".  ERR_INVAL: it is no text. */
int list_cursor(
    const json_t *params, const char **cursor, struct err *e) MUSTCHECK;
/* list_page_find - the page of a list of n that params.cursor names; ERR_INVAL:
 * none that list_page_end gave */
int list_page_find(const json_t *params, size_t n, struct list_page *out,
    struct err *e) MUSTCHECK;
/* list_page_end - nextCursor in the result, if the list goes on behind the page
 */
void list_page_end(const struct list_page *p, size_t n, json_t *result);

#endif
