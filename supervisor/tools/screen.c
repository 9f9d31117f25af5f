/*
 * screen.c - a terminal of a few lines, of which the text is kept
 *
 * Bytes become UTF-8 first (what is none is U+FFFD), so that what follows
 * walks characters.  Text without control characters is what it is: most
 * output never meets the rest.
 *
 * Otherwise characters go into rows of cells.  The last SCREEN_ROWS rows can
 * be written over; a row that is pushed out above is final and goes to the
 * text.  The cursor is never to the right of a row's end, so each cell was
 * once a character of the output, and rows hold nothing that has to be bounded
 * beside it.
 */
#include "supervisor/tools/screen.h"

#include "common/utf8.h"
#include "common/xmalloc.h"

#define ESC 0x1b
#define BEL 0x07
#define CAN 0x18
#define SUB 0x1a
#define DEL 0x7f
#define TAB_STOP 8
#define NUMBER_MAX 9999 /* of a sequence; more is so much */

/* ---- sequences
 *
 * ECMA-48: ESC [ is followed by parameters and a final byte; ESC ] and others
 * by a string up to BEL or ESC \; ESC and blanks by one more byte. */

static bool
is_between(uint8_t c, uint8_t low, uint8_t high)
{
	return c >= low && c <= high;
}

/* Behind the bytes from i on that are between low and high. */
static size_t
skip_between(const uint8_t *p, size_t n, size_t i, uint8_t low, uint8_t high)
{
	while (i < n && i < SCREEN_SEQUENCE_MAX && is_between(p[i], low, high))
		i++;
	return i;
}

/* i is the place of the final byte; a byte not between low and high is none,
 * and the sequence ends before it. */
static size_t
final_len(const uint8_t *p, size_t n, size_t i, uint8_t low, uint8_t high)
{
	if (i >= SCREEN_SEQUENCE_MAX)
		return i;
	if (i == n)
		return 0;
	return is_between(p[i], low, high) ? i + 1 : i;
}

/* A string that the end of its line has reached was never ended. */
static size_t
string_len(const uint8_t *p, size_t n)
{
	size_t i = 2;

	for (; i < n && i < SCREEN_SEQUENCE_MAX; i++) {
		if (p[i] == BEL || p[i] == CAN || p[i] == SUB)
			return i + 1;
		if (p[i] == '\n')
			return i;
		if (p[i] != ESC)
			continue;
		if (i + 1 == n)
			return 0;
		return p[i + 1] == '\\' ? i + 2 : i;
	}
	if (i == n && i < SCREEN_SEQUENCE_MAX)
		return 0;
	while (i < n && (p[i] & 0xc0) == 0x80) /* not within a character */
		i++;
	return i;
}

/* Of the sequence that begins with the ESC at p; 0: n bytes are not all of
 * it. */
static size_t
sequence_len(const uint8_t *p, size_t n)
{
	if (n < 2)
		return 0;
	if (p[1] == '[')
		return final_len(
		    p, n, skip_between(p, n, 2, 0x20, 0x3f), 0x40, 0x7e);
	if (p[1] != '\0' && strchr("]PX^_", p[1]) != NULL)
		return string_len(p, n);
	if (is_between(p[1], 0x20, 0x2f))
		return final_len(
		    p, n, skip_between(p, n, 1, 0x20, 0x2f), 0x30, 0x7e);
	return is_between(p[1], 0x30, 0x7e) ? 2 : 1;
}

size_t
screen_unfinished_len(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t len = 1; len <= n && len <= SCREEN_SEQUENCE_MAX; len++)
		if (p[n - len] == ESC)
			return sequence_len(p + n - len, len) == 0 ? len : 0;
	return 0;
}

size_t
screen_broken_start_len(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	size_t from = n > 0 && p[0] == '[' ? 1 : 0, i = from;

	while (i < n && i < 24 && (is_between(p[i], '0', '9') || p[i] == ';'))
		i++;
	return i > from && i < n && p[i] == 'm' ? i + 1 : 0;
}

/* ---- rows */

struct screen_cell { /* a character as UTF-8; shorter ones end with NULs */
	char utf8[4];
};

struct screen_row {
	struct screen_cell *cells;
	size_t n, cap;
	bool is_edited; /* something was written over */
};

struct spot {
	size_t row, col; /* col is at most the row's n */
};

struct screen {
	struct buf *out;
	struct screen_row rows[SCREEN_ROWS]; /* from first on, around */
	size_t first, nrows;
	struct spot at, saved;
};

static struct screen_row *
row_at(struct screen *s, size_t i)
{
	return &s->rows[(s->first + i) % SCREEN_ROWS];
}

static struct screen_row *
row_here(struct screen *s)
{
	return row_at(s, s->at.row);
}

static void
add_out(struct screen *s, const char *p, size_t n)
{
	(void)!buf_append(s->out, p, n); /* the caller's: it has room */
}

/* In a row that was written over, blanks at the end cover older text. */
static void
row_finish(struct screen *s, struct screen_row *r)
{
	static const struct screen_cell blank = {" "};

	while (r->is_edited && r->n > 0 &&
	    memcmp(&r->cells[r->n - 1], &blank, sizeof(blank)) == 0)
		r->n--;
	for (size_t i = 0; i < r->n; i++)
		add_out(s, r->cells[i].utf8,
		    strnlen(r->cells[i].utf8, sizeof(r->cells[i].utf8)));
	r->n = 0;
	r->is_edited = false;
}

/* To the next row's begin; it is made below the last one. */
static void
next_row(struct screen *s)
{
	s->at.col = 0;
	if (s->at.row + 1 < s->nrows) {
		s->at.row++;
		return;
	}
	if (s->nrows == SCREEN_ROWS) {
		row_finish(s, row_at(s, 0));
		add_out(s, "\n", 1);
		s->first = (s->first + 1) % SCREEN_ROWS;
		s->saved.row -= s->saved.row > 0;
		return;
	}
	s->nrows++;
	s->at.row++;
}

static void
put_cell(struct screen *s, const uint8_t *p, size_t len)
{
	struct screen_row *r = row_here(s);
	struct screen_cell cell = {{0}};

	memcpy(cell.utf8, p, len);
	if (s->at.col < r->n) {
		r->cells[s->at.col++] = cell;
		r->is_edited = true;
		return;
	}
	if (r->n == r->cap) {
		r->cap = r->cap == 0 ? 128 : 2 * r->cap;
		r->cells = xreallocarray(r->cells, r->cap, sizeof(*r->cells));
	}
	r->cells[r->n++] = cell;
	s->at.col++;
}

/* ---- moves */

static void
move_right(struct screen *s, size_t to)
{
	const struct screen_row *r = row_here(s);

	if (to <= r->n) {
		s->at.col = to;
		return;
	}
	s->at.col = r->n;
	if (r->n > 0 && r->cells[r->n - 1].utf8[0] != ' ')
		put_cell(s, (const uint8_t *)" ", 1);
}

/* Among the rows that there are. */
static void
move_to_row(struct screen *s, size_t row)
{
	s->at.row = row < s->nrows ? row : s->nrows - 1;
	if (s->at.col > row_here(s)->n)
		s->at.col = row_here(s)->n;
}

static void
move_up(struct screen *s, size_t n)
{
	move_to_row(s, s->at.row > n ? s->at.row - n : 0);
}

static void
move_to(struct screen *s, struct spot to)
{
	s->at.col = to.col;
	move_to_row(s, to.row);
}

/* Somewhere on the screen, which we do not have: a line of its own, below. */
static void
move_away(struct screen *s)
{
	move_to_row(s, s->nrows - 1);
	s->at.col = row_here(s)->n;
	if (row_here(s)->n > 0)
		next_row(s);
}

static void
move_to_tab(struct screen *s)
{
	const struct screen_row *r = row_here(s);
	size_t stop = (s->at.col / TAB_STOP + 1) * TAB_STOP;

	if (s->at.col == r->n)
		put_cell(s, (const uint8_t *)"\t", 1);
	else
		s->at.col = stop < r->n ? stop : r->n;
}

/* Erasing only the left part is left out: moving the rest for each sequence
 * would cost a line's length every time. */
static void
erase_line(struct screen *s, size_t what)
{
	struct screen_row *r = row_here(s);
	const size_t n = r->n;

	if (what == 0)
		r->n = s->at.col;
	else if (what == 2 || s->at.col == n)
		r->n = 0;
	if (s->at.col > r->n)
		s->at.col = r->n;
	r->is_edited = r->is_edited || r->n < n;
}

static void
erase_below(struct screen *s)
{
	erase_line(s, 0);
	for (; s->nrows > s->at.row + 1; s->nrows--)
		row_at(s, s->nrows - 1)->n = 0;
}

/* ---- what sequences do */

/* The first number of a sequence; without, what it stands for. */
static size_t
number_of(const uint8_t *p, size_t n, size_t otherwise)
{
	size_t value = 0, i = 2;

	for (; i < n && is_between(p[i], '0', '9'); i++) {
		value = value * 10 + (size_t)(p[i] - '0');
		if (value > NUMBER_MAX)
			value = NUMBER_MAX;
	}
	return i > 2 ? value : otherwise;
}

/* As a count: none and 0 are 1. */
static size_t
count_of(const uint8_t *p, size_t n)
{
	size_t value = number_of(p, n, 1);

	return value == 0 ? 1 : value;
}

static void
erase_screen(struct screen *s, size_t what)
{
	if (what == 0)
		erase_below(s);
	else if (what >= 2)
		move_away(s);
}

/* Those that stay in the row, or among rows. */
static void
do_move(struct screen *s, uint8_t final, size_t n)
{
	switch (final) {
	case 'A':
	case 'F':
		move_up(s, n);
		break;
	case 'B':
	case 'E':
		move_to_row(s, s->at.row + n);
		break;
	case 'C':
		move_right(s, s->at.col + n);
		break;
	case 'D':
		s->at.col -= s->at.col < n ? s->at.col : n;
		break;
	case 'G':
		move_right(s, n - 1);
		break;
	default:
		break;
	}
	if (final == 'E' || final == 'F')
		s->at.col = 0;
}

static void
do_csi(struct screen *s, const uint8_t *p, size_t n)
{
	const uint8_t final = p[n - 1];

	switch (final) {
	case 'H':
	case 'f':
		move_away(s);
		break;
	case 'J':
		erase_screen(s, number_of(p, n, 0));
		break;
	case 'K':
		erase_line(s, number_of(p, n, 0));
		break;
	case 's':
		s->saved = s->at;
		break;
	case 'u':
		move_to(s, s->saved);
		break;
	default:
		do_move(s, final, count_of(p, n));
		break;
	}
}

static void
do_escape(struct screen *s, uint8_t c)
{
	switch (c) {
	case '7':
		s->saved = s->at;
		break;
	case '8':
		move_to(s, s->saved);
		break;
	case 'D':
	case 'E':
		next_row(s);
		break;
	case 'M':
		move_up(s, 1);
		break;
	case 'c':
		move_away(s);
		break;
	default:
		break;
	}
}

/* Returns how long it is; one that is not all there is as long as n. */
static size_t
do_sequence(struct screen *s, const uint8_t *p, size_t n)
{
	size_t len = sequence_len(p, n);

	if (len == 0)
		return n;
	if (len == 2)
		do_escape(s, p[1]);
	/* A private one, ESC [ ?, says how the terminal is to be. */
	else if (p[1] == '[' && len > 2 && is_between(p[len - 1], 0x40, 0x7e) &&
	    !is_between(p[2], '<', '?'))
		do_csi(s, p, len);
	return len;
}

/* ---- characters */

static void
do_control(struct screen *s, uint8_t c)
{
	switch (c) {
	case '\0':
		put_cell(s, (const uint8_t *)" ", 1);
		break;
	case '\b':
		s->at.col -= s->at.col > 0;
		break;
	case '\t':
		move_to_tab(s);
		break;
	case '\n':
	case '\v':
	case '\f':
		next_row(s);
		break;
	case '\r':
		s->at.col = 0;
		break;
	default:
		break;
	}
}

static size_t
character_len(uint8_t c)
{
	if (c < 0xc0)
		return 1;
	return c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* U+0080 to U+009F; they are control characters, too. */
static bool
is_c1(const uint8_t *p)
{
	return p[0] == 0xc2 && p[1] < 0xa0;
}

/* p is UTF-8. */
static void
run_through(struct screen *s, const uint8_t *p, size_t n)
{
	size_t len;

	for (; n > 0; p += len, n -= len) {
		len = character_len(*p);
		if (*p == ESC)
			len = do_sequence(s, p, n);
		else if (*p < ' ')
			do_control(s, *p);
		else if (*p != DEL && !is_c1(p))
			put_cell(s, p, len);
	}
}

static void
screen_finish(struct screen *s)
{
	for (size_t i = 0; i < s->nrows; i++) {
		if (i > 0)
			add_out(s, "\n", 1);
		row_finish(s, row_at(s, i));
	}
	for (size_t i = 0; i < SCREEN_ROWS; i++)
		free(s->rows[i].cells);
}

/* Is it what a terminal shows, as it is? */
static bool
is_plain(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((p[i] < ' ' && p[i] != '\n' && p[i] != '\t') ||
		    p[i] == DEL || is_c1(p + i))
			return false;
	return true;
}

static void
show_text(struct buf *out, const uint8_t *p, size_t n)
{
	struct screen s = {.out = out, .nrows = 1};

	if (is_plain(p, n)) {
		add_out(&s, (const char *)p, n);
		return;
	}
	run_through(&s, p, n);
	screen_finish(&s);
}

void
screen_show(struct buf *out, const void *p, size_t n)
{
	struct buf text;

	if (utf8_is_valid(p, n)) {
		show_text(out, p, n);
		return;
	}
	buf_init(&text, 0);
	(void)!utf8_append_repaired(&text, p, n); /* it has no limit */
	show_text(out, buf_data(&text), buf_len(&text));
	buf_clear(&text);
}

void
screen_show_block(struct buf *out, const void *p, size_t n)
{
	const size_t at = buf_len(out);

	screen_show(out, p, n);
	if (buf_len(out) > at && buf_data(out)[buf_len(out) - 1] != '\n')
		(void)buf_printf(out, "\n");
}
