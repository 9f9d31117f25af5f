#include "supervisor/tools/page.h"

#include <stdio.h>

#include "common/js.h"
#include "common/runlog_scan.h"

#define OFFSET_DIGITS_MAX 18

/* ---- cursors */

void
page_format_cursor(
    const struct page_of *of, uint64_t offset, char out[PAGE_CURSOR_TEXT_MAX])
{
	char text[PAGE_CURSOR_TEXT_MAX + UUID_TEXT_LEN + 8];
	char id[UUID_TEXT_LEN + 1];
	int n;

	uuid_format(of->run, id);
	n = snprintf(
	    text, sizeof(text), "page %s %llu", id, (unsigned long long)offset);
	(void)snprintf(out, PAGE_CURSOR_TEXT_MAX, "%llu-%016llx",
	    (unsigned long long)offset,
	    (unsigned long long)siphash(of->key, text, (size_t)n));
}

int
page_parse_cursor(
    const struct page_of *of, const char *text, uint64_t *offset, struct err *e)
{
	size_t digits = strspn(text, "0123456789");
	char want[PAGE_CURSOR_TEXT_MAX] = "0";

	*offset = 0;
	if (digits > 0 && digits <= OFFSET_DIGITS_MAX &&
	    strcmp(text, want) != 0) {
		*offset = strtoull(text, NULL, 10);
		page_format_cursor(of, *offset, want);
	}
	if (strcmp(text, want) == 0)
		return 0;
	return err_set(e, ERR_INVAL,
	    "cursor: want \"0\" or next_cursor of an answer before");
}

/* ---- as JSON */

/* Output of one stream of one command, gathered until another comes. */
struct gathering {
	json_t *list;
	struct runlog_header of;
	struct buf text;
};

static const char *
stream_name(enum runlog_type type)
{
	return type == RUNLOG_STDOUT ? "stdout" : "stderr";
}

static void
put_piece(struct gathering *g)
{
	const uint8_t *p = buf_data(&g->text);
	size_t n = buf_len(&g->text);
	json_t *o;
	bool lossy;

	if (n == 0)
		return;
	o = json_pack("{s:i, s:s, s:o}", "index", g->of.command, "stream",
	    stream_name(g->of.type), "text", js_string_bytes(p, n, &lossy));
	if (lossy)
		json_object_set_new(o, "base64", js_base64(p, n));
	json_array_append_new(g->list, o);
	buf_clear(&g->text);
}

static void
gather(
    struct gathering *g, const struct log_records *records, uint32_t ncommands)
{
	const struct runlog_source source = {.fd = -1, .mem = records->p};
	struct runlog_piece piece;
	struct runlog_scan scan;
	struct runlog_walk walk;
	int step;

	runlog_scan_init(&scan, 0);
	runlog_walk_init(&walk, &scan, &source, records->n, NULL, 0);
	while ((step = runlog_walk_next(&walk, &piece, NULL)) > RUNLOG_MORE) {
		if (scan.header.command >= ncommands)
			break; /* the reader gives none */
		if (step != RUNLOG_OUTPUT)
			continue;
		if (scan.header.type != g->of.type ||
		    scan.header.command != g->of.command)
			put_piece(g);
		g->of = scan.header;
		(void)!buf_append(&g->text, piece.p, piece.n);
	}
	put_piece(g);
}

json_t *
page_view(const struct store_run *row, const struct log_records *records,
    const struct page_of *of, uint64_t upto)
{
	struct gathering g = {.list = json_array()};
	char id[UUID_TEXT_LEN + 1], next[PAGE_CURSOR_TEXT_MAX];
	json_t *o;

	uuid_format(&row->uuid, id);
	gather(&g, records, row->ncommands);
	o = json_pack("{s:s, s:s, s:s, s:o, s:[]}", "run_id", id, "identifier",
	    row->identifier, "state", run_state_word(row->state), "output",
	    g.list, "commands");
	/* Nothing of a log that has ended: whatever its length should be. */
	if (upto == PAGE_GROWS || (records->n > 0 && records->next < upto)) {
		page_format_cursor(of, records->next, next);
		json_object_set_new(o, "next_cursor", json_string(next));
	}
	return o;
}

/* ---- as text */

static void
write_piece(struct buf *b, const json_t *piece)
{
	const json_t *text = json_object_get(piece, "text");
	const char *p = json_string_value(text);
	size_t n = json_string_length(text), at;

	(void)buf_printf(b, "%s of command %lld:\n", js_text(piece, "stream"),
	    (long long)json_integer_value(json_object_get(piece, "index")));
	at = buf_len(b);
	if (p == NULL || n == 0 || buf_append(b, p, n) != 0)
		return;
	for (; at < buf_len(b); at++)
		if (buf_data(b)[at] == '\0')
			buf_data(b)[at] = ' ';
	if (p[n - 1] != '\n')
		(void)buf_printf(b, "\n");
}

void
page_write(struct buf *b, const json_t *view)
{
	const char *next = js_text(view, "next_cursor");
	const json_t *piece;
	size_t i;

	json_array_foreach (json_object_get(view, "output"), i, piece)
		write_piece(b, piece);
	if (next[0] != '\0')
		(void)buf_printf(
		    b, "[more: get_run with cursor \"%s\"]\n", next);
}
