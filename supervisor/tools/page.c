#include "supervisor/tools/page.h"

#include <stdio.h>

#include "common/js.h"
#include "common/runlog_scan.h"
#include "common/utf8.h"
#include "supervisor/tools/screen.h"
#include "supervisor/tools/view.h"

#define OFFSET_DIGITS_MAX 18
#define SKIP_DIGITS_MAX 5
#define PLACE_TEXT_MAX 40

/* Of the text for output, beside the line or lines around it. */
#define PAGE_AROUND 1024
#define PAGE_LINES_AROUND 8
#define PIECE_COST 160     /* of one, beside its bytes */
#define PIECE_LINES 2      /* of one, beside those that it has */
#define BASE64_COST 2      /* of a byte, rounded up */
#define LINE_LEFT_MAX 4096 /* of a line that is left for the next page */
#define CHARACTER_COST 32  /* of any */

/* ---- cursors */

/* The place as it stands in a cursor: an offset in the log and, within a
 * record, how many bytes of its output are behind. */
static void
format_place(const struct log_at *at, char out[PLACE_TEXT_MAX])
{
	int n = snprintf(
	    out, PLACE_TEXT_MAX, "%llu", (unsigned long long)at->offset);

	if (at->skip > 0)
		(void)snprintf(out + n, PLACE_TEXT_MAX - (size_t)n, ".%lu",
		    (unsigned long)at->skip);
}

void
page_format_cursor(const struct page_of *of, const struct log_at *at,
    char out[PAGE_CURSOR_TEXT_MAX])
{
	char place[PLACE_TEXT_MAX];
	char text[PLACE_TEXT_MAX + UUID_TEXT_LEN + 8];
	char id[UUID_TEXT_LEN + 1];
	int n;

	format_place(at, place);
	uuid_format(of->run, id);
	n = snprintf(text, sizeof(text), "page %s %s", id, place);
	(void)snprintf(out, PAGE_CURSOR_TEXT_MAX, "%s-%016llx", place,
	    (unsigned long long)siphash(of->key, text, (size_t)n));
}

/* A number of at most max digits at *text, which moves behind it. */
static bool
take_number(const char **text, size_t max, uint64_t *out)
{
	size_t digits = strspn(*text, "0123456789");

	if (digits == 0 || digits > max)
		return false;
	*out = strtoull(*text, NULL, 10);
	*text += digits;
	return true;
}

int
page_parse_cursor(const struct page_of *of, const char *text, struct log_at *at,
    struct err *e)
{
	char want[PAGE_CURSOR_TEXT_MAX];
	const char *p = text;
	uint64_t skip = 0;

	*at = (struct log_at){0};
	if (strcmp(text, "0") == 0)
		return 0;
	if (take_number(&p, OFFSET_DIGITS_MAX, &at->offset) &&
	    (*p++ != '.' || take_number(&p, SKIP_DIGITS_MAX, &skip))) {
		at->skip = (uint32_t)skip;
		page_format_cursor(of, at, want);
		if (strcmp(text, want) == 0)
			return 0;
	}
	return err_set(e, ERR_INVAL,
	    "cursor: want \"0\" or next_cursor of an answer before");
}

/* ---- how much a page holds
 *
 * The text of an answer has a bound, and shows all that its cursor passes
 * over.  So output is taken for as long as its text has room, whatever the
 * bytes cost there, and the next page begins behind that. */

struct page_room {
	enum tool_text_form form;
	bool is_lossy; /* some of the bytes are no text */
	size_t left;
	size_t lines; /* of the transcript */
};

static struct page_room
room_for(enum tool_text_form form, bool is_lossy)
{
	const bool is_json = form == TOOL_TEXT_JSON;

	return (struct page_room){form, is_lossy,
	    (is_json ? TOOL_JSON_MAX : TOOL_TEXT_MAX) - PAGE_AROUND,
	    is_json ? SIZE_MAX : TOOL_TEXT_LINES_MAX - PAGE_LINES_AROUND};
}

/* What ends a line, and what may: sequences that send the cursor about. */
static bool
may_end_line(uint8_t c)
{
	return c == '\n' || c == '\v' || c == '\f' || c == '\x1b';
}

/* Bytes of text for c: 3 where U+FFFD stands for it; in JSON escaped, and
 * with its share of base64 where the output is lossy. */
static size_t
byte_cost(const struct page_room *r, uint8_t c)
{
	if (r->form == TOOL_TEXT_JSON)
		return js_byte_cost(c, r->is_lossy) +
		    (r->is_lossy ? BASE64_COST : 0);
	return r->is_lossy && c >= 0x80 ? 3 : 1;
}

/* How many of n bytes there is room for; it is taken. */
static size_t
take_room(struct page_room *r, const uint8_t *p, size_t n)
{
	size_t i, cost;

	for (i = 0; i < n; i++) {
		cost = byte_cost(r, p[i]);
		if (cost > r->left || (r->lines == 0 && may_end_line(p[i])))
			break;
		r->left -= cost;
		r->lines -= may_end_line(p[i]);
	}
	return i < n ? utf8_complete_len(p, i) : n;
}

/* ---- records */

static void
begin_walk(struct runlog_walk *walk, struct runlog_scan *scan,
    const struct log_records *records)
{
	const struct runlog_source source = {.fd = -1, .mem = records->p};

	runlog_scan_init(scan, 0);
	runlog_walk_init(walk, scan, &source, records->n, NULL, 0);
}

static bool
is_lossy(const struct log_records *records)
{
	struct runlog_piece piece;
	struct runlog_scan scan;
	struct runlog_walk walk;
	int step;

	begin_walk(&walk, &scan, records);
	while ((step = runlog_walk_next(&walk, &piece, NULL)) > RUNLOG_MORE)
		if (step == RUNLOG_OUTPUT && !utf8_is_valid(piece.p, piece.n))
			return true;
	return false;
}

/* Output of one stream of one command, gathered until another comes. */
struct gathering {
	const struct log_records *records;
	json_t *list;
	struct runlog_scan scan;
	struct runlog_header of;
	struct buf text;
	struct page_room room;
	bool is_full;
	struct log_at at; /* where the next page begins */
	/* Bytes at the end of text from the record that begins at last; 0:
	 * another record came behind. */
	size_t taken;
	struct log_at last;
};

/* Where the record at hand begins in the log, n bytes of its output behind:
 * the first one may be the rest of one, and the last one the beginning. */
static struct log_at
place_within(const struct gathering *g, size_t n)
{
	const struct log_at *from = &g->records->from;
	struct log_at at = *from;

	if (g->scan.at > 0)
		at = (struct log_at){from->offset + from->skip + g->scan.at, 0};
	at.skip += (uint32_t)n;
	return at;
}

static struct log_at
place_behind(const struct gathering *g)
{
	const uint32_t n = g->scan.header.length;
	const struct log_at at = place_within(g, n);
	bool is_last = g->scan.at + RUNLOG_HEADER_BYTES + n == g->records->n;

	if (is_last && g->records->skip > 0)
		return at;
	return (struct log_at){at.offset + RUNLOG_HEADER_BYTES + at.skip, 0};
}

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

	if (n == 0) {
		buf_clear(&g->text); /* all of it was left for the next page */
		return;
	}
	o = json_pack("{s:i, s:s, s:o}", "index", g->of.command, "stream",
	    stream_name(g->of.type), "text", js_string_bytes(p, n, &lossy));
	if (lossy)
		json_object_set_new(o, "base64", view_base64(p, n));
	json_array_append_new(g->list, o);
	buf_clear(&g->text);
}

/* A record of output begins: does its piece find room? */
static bool
begin_output(struct gathering *g)
{
	const struct runlog_header *h = &g->scan.header;

	if (buf_len(&g->text) > 0 && h->type == g->of.type &&
	    h->command == g->of.command)
		return true;
	put_piece(g);
	g->of = *h;
	if (g->room.left < PIECE_COST + CHARACTER_COST ||
	    g->room.lines <= PIECE_LINES)
		return false;
	g->room.left -= PIECE_COST;
	g->room.lines -= PIECE_LINES;
	return true;
}

/* All of the record's output at once: the source is memory. */
static void
take_output(struct gathering *g, const struct runlog_piece *piece)
{
	size_t n = 0;

	if (begin_output(g))
		n = take_room(&g->room, piece->p, piece->n);
	(void)!buf_append(&g->text, piece->p, n); /* it has no limit */
	g->is_full = n < piece->n;
	g->at = g->is_full ? place_within(g, n) : place_behind(g);
	g->taken = n;
	g->last = place_within(g, 0);
}

/* How many of the last bytes begin a line that goes on. */
static size_t
begun_line_len(const struct buf *text)
{
	const uint8_t *p = buf_data(text);
	size_t n = buf_len(text);

	for (size_t len = 0; len < n && len <= LINE_LEFT_MAX; len++)
		if (p[n - 1 - len] == '\n')
			return len;
	return 0;
}

/* A page that is cut ends with a line if that is near, and none ends within a
 * sequence of a terminal: what is left there begins the next page.  A page that
 * would be empty shows it all the same, unless the log grows. */
static void
leave_begun(struct gathering *g, uint64_t upto)
{
	bool is_cut = g->is_full || g->at.skip > 0;
	size_t n = is_cut ? begun_line_len(&g->text) : 0;
	bool is_all;

	if (n == 0)
		n = screen_unfinished_len(
		    buf_data(&g->text), buf_len(&g->text));
	is_all = n == buf_len(&g->text) && json_array_size(g->list) == 0;
	if (n == 0 || n > g->taken || g->at.offset >= upto ||
	    (is_all && upto != PAGE_GROWS))
		return;
	buf_truncate(&g->text, buf_len(&g->text) - n);
	g->at = g->last;
	g->at.skip += (uint32_t)(g->taken - n);
}

static void
gather(struct gathering *g, uint32_t ncommands, uint64_t upto)
{
	struct runlog_piece piece;
	struct runlog_walk walk;
	int step;

	begin_walk(&walk, &g->scan, g->records);
	while (!g->is_full &&
	    (step = runlog_walk_next(&walk, &piece, NULL)) > RUNLOG_MORE) {
		if (g->scan.header.command >= ncommands)
			break; /* the reader gives none */
		if (step == RUNLOG_OUTPUT)
			take_output(g, &piece);
		else if (step == RUNLOG_RECORD) {
			g->at = place_behind(g);
			g->taken = 0;
		}
	}
	leave_begun(g, upto);
	put_piece(g);
}

/* There is: the log grows, or this page came on and not to its end.  (It may
 * be shorter than was said.) */
static bool
has_more(const struct gathering *g, uint64_t upto)
{
	const struct log_at *from = &g->records->from;

	if (upto == PAGE_GROWS)
		return true;
	return g->at.offset < upto &&
	    (g->at.offset != from->offset || g->at.skip != from->skip);
}

json_t *
page_view(const struct store_run *row, const struct log_records *records,
    const struct page_of *of, const struct page_wish *wish)
{
	struct gathering g = {.records = records,
	    .list = json_array(),
	    .at = records->from,
	    .room = room_for(wish->form, is_lossy(records))};
	char next[PAGE_CURSOR_TEXT_MAX];
	json_t *o;

	gather(&g, row->ncommands, wish->upto);
	o = json_pack("{s:o, s:s, s:s, s:o, s:[]}", "run_id",
	    view_uuid(&row->uuid), "identifier", row->identifier, "state",
	    run_state_word(row->state), "output", g.list, "commands");
	if (has_more(&g, wish->upto)) {
		page_format_cursor(of, &g.at, next);
		json_object_set_new(o, "next_cursor", json_string(next));
	}
	return o;
}

static void
write_piece(struct buf *b, const json_t *piece)
{
	const json_t *text = json_object_get(piece, "text");

	(void)buf_printf(b, "%s of command %lld:\n", js_text(piece, "stream"),
	    (long long)json_integer_value(json_object_get(piece, "index")));
	screen_show_block(b, json_string_value(text), json_string_length(text));
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
