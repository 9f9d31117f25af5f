#include "supervisor/mcp/list_page.h"

#include "common/js.h"
#include "common/xmalloc.h"

int
list_cursor(const json_t *params, const char **cursor, struct err *e)
{
	const json_t *v = json_object_get(params, "cursor");
	const char *text = js_plain(v);

	*cursor = NULL;
	if (v == NULL)
		return 0;
	if (text == NULL)
		return err_set(e, ERR_INVAL,
		    "params.cursor must be the nextCursor of an answer before");
	if (*text != '\0')
		*cursor = text;
	return 0;
}

/* A cursor is the number of its page, in decimal. */
static char *
cursor_of(size_t page)
{
	return xasprintf("%zu", page);
}

int
list_page_find(
    const json_t *params, size_t n, struct list_page *out, struct err *e)
{
	const char *cursor;

	if (list_cursor(params, &cursor, e) != 0)
		return e->code;
	for (size_t at = 0; at < n || at == 0; at += LIST_PAGE_LEN) {
		AUTO(auto_free) char *own = cursor_of(at / LIST_PAGE_LEN);

		if (cursor == NULL ? at > 0 :
				     at == 0 || strcmp(own, cursor) != 0)
			continue;
		out->from = at;
		out->to = n - at > LIST_PAGE_LEN ? at + LIST_PAGE_LEN : n;
		return 0;
	}
	return err_set(e, ERR_INVAL,
	    "unknown cursor: ask for the list from its beginning, without a "
	    "cursor");
}

void
list_page_end(const struct list_page *p, size_t n, json_t *result)
{
	AUTO(auto_free) char *cursor = NULL;

	if (p->to == n)
		return;
	cursor = cursor_of(p->to / LIST_PAGE_LEN);
	json_object_set_new(result, "nextCursor", json_string(cursor));
}
