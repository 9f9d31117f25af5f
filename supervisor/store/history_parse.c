#include "supervisor/store/history_parse.h"

#include "common/buf.h"
#include "common/exit.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/siphash.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

/* Each byte of q is at most four, and each word has a mark and signs. */
#define MATCH_MAX (4 * HISTORY_Q_MAX + 64 * HISTORY_Q_WORDS_MAX)
#define CURSOR_VERSION 1
#define CURSOR_BYTES 25

/* ---- what to look for */

struct q_piece {
	const char *text; /* without the signs around it */
	size_t n;
	bool is_prefix;
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* In FTS5's eyes: what it would make a word of.  Of what is not ASCII it
 * knows more than we do. */
static bool
is_wordly(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	    (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static int
check_piece(const struct q_piece *p, struct err *e)
{
	size_t n = 0, last = 0;

	for (size_t i = 0; i < p->n; i++) {
		n += is_wordly(p->text[i]);
		last = is_wordly(p->text[i]) ? last + 1 : 0;
	}
	if (n == 0)
		return err_set(e, ERR_INVAL,
		    "q: \"%.*s\" has no letter or digit to look for",
		    (int)(p->n > 40 ? 40 : p->n), p->text);
	if (p->is_prefix && last < HISTORY_PREFIX_MIN)
		return err_set(e, ERR_INVAL,
		    "q: an asterisk wants at least %d letters or digits right "
		    "before it",
		    HISTORY_PREFIX_MIN);
	return 0;
}

/* The next word or phrase at *q; 0: none. */
static int
next_piece(const char **q, struct q_piece *p, struct err *e)
{
	const char *s = *q, *end;

	while (is_blank(*s))
		s++;
	if (*s == '\0')
		return 0;
	*p = (struct q_piece){.text = s};
	if (*s == '"') {
		p->text = s + 1;
		end = strchr(s + 1, '"');
		if (end == NULL)
			return err_set(e, ERR_INVAL,
			    "q: a double quote has no second one behind it");
		p->n = (size_t)(end - p->text);
		end++;
	} else {
		end = s + strcspn(s, " \t\n\r\"");
		p->n = (size_t)(end - s);
		if (s[p->n - 1] == '*')
			p->n--;
	}
	p->is_prefix = end > s && end[-1] == '*';
	if (*end == '*' && end[-1] == '"') {
		p->is_prefix = true;
		end++;
	}
	*q = end;
	return check_piece(p, e) != 0 ? e->code : 1;
}

/* In double quotes FTS5 sees text only, and there is none of these in it. */
static void
put_piece(struct buf *b, const struct q_piece *p, struct tenant_id tenant)
{
	(void)buf_printf(b, "%s\"%llu %.*s\"%s", buf_len(b) > 0 ? " AND " : "",
	    (unsigned long long)tenant.n, (int)p->n, p->text,
	    p->is_prefix ? " *" : "");
}

static int
put_pieces(struct buf *b, const char *q, struct tenant_id tenant,
    struct history_words *out, struct err *e)
{
	struct q_piece p;
	size_t n = 0;
	int rc;

	while ((rc = next_piece(&q, &p, e)) == 1) {
		if (n++ == HISTORY_Q_WORDS_MAX)
			return err_set(e, ERR_INVAL,
			    "q: more than %d words and phrases",
			    HISTORY_Q_WORDS_MAX);
		put_piece(b, &p, tenant);
		out->has_prefix = out->has_prefix || p.is_prefix;
	}
	if (rc == 0 && n == 0)
		return err_set(e, ERR_INVAL, "q: it has no word to look for");
	return rc;
}

int
history_parse_q(const char *q, struct tenant_id tenant,
    struct history_words *out, struct err *e)
{
	size_t n = strlen(q);
	struct buf b;
	int rc;

	*out = (struct history_words){0};
	if (n > HISTORY_Q_MAX)
		return err_set(e, ERR_INVAL, "q: it has more than %d bytes",
		    HISTORY_Q_MAX);
	if (!utf8_is_valid(q, n))
		return err_set(e, ERR_INVAL, "q: it is not UTF-8");
	buf_init(&b, MATCH_MAX);
	rc = put_pieces(&b, q, tenant, out, e);
	if (rc == 0)
		out->match = xstrndup((const char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	return rc;
}

/* ---- cursors */

static void
add_bytes(struct buf *b, const void *p, size_t n)
{
	if (buf_append(b, p, n) != 0)
		fatal(EXIT_BUG, "a buffer without a limit is full");
}

static void
add_text(struct buf *b, const char *text)
{
	/* With the NUL, so that two texts cannot pass for one. */
	add_bytes(
	    b, text == NULL ? "\1" : text, text == NULL ? 2 : strlen(text) + 1);
}

static void
add_number(struct buf *b, int64_t v)
{
	add_bytes(b, &v, sizeof(v));
}

/* Not a secret: it keeps mistakes from passing for answers.  What a forged
 * cursor can reach is its own tenant's, as without one. */
uint64_t
history_question_hash(struct tenant_id tenant, const struct history_query *q)
{
	static const uint8_t key[SIPHASH_KEY_BYTES];
	const struct history_filter *f = &q->filter;
	struct buf b;
	uint64_t hash;

	buf_init(&b, 0);
	add_number(&b, (int64_t)tenant.n);
	add_number(&b, q->sort);
	add_number(&b, q->order);
	add_text(&b, f->identifier);
	add_text(&b, f->sandbox);
	add_text(&b, f->principal);
	add_text(&b, f->tool);
	add_text(&b, f->language);
	add_number(&b, f->states);
	add_number(&b, f->end_reason);
	add_number(&b, f->has_exit_code);
	add_number(&b, f->has_exit_code ? f->exit_code : 0);
	add_number(&b, f->since_ms);
	add_number(&b, f->until_ms);
	add_number(&b, f->min_duration_ms);
	add_number(&b, f->max_duration_ms);
	add_text(&b, f->artifact);
	add_text(&b, f->q);
	if (f->digest != NULL)
		add_bytes(&b, f->digest, 32);
	hash = siphash(key, buf_data(&b), buf_len(&b));
	buf_clear(&b);
	return hash;
}

void
history_cursor_format(const struct history_cursor *c, uint64_t question,
    char out[HISTORY_CURSOR_MAX + 1])
{
	uint8_t bytes[CURSOR_BYTES];

	_Static_assert(
	    HEX_BYTES(CURSOR_BYTES) <= HISTORY_CURSOR_MAX + 1, "it fits");
	bytes[0] = CURSOR_VERSION;
	memcpy(bytes + 1, &question, 8);
	memcpy(bytes + 9, &c->value, 8);
	memcpy(bytes + 17, &c->place, 8);
	hex_encode(bytes, sizeof(bytes), out);
}

int
history_cursor_parse(const char *text, uint64_t question,
    struct history_cursor *out, struct err *e)
{
	uint8_t bytes[CURSOR_BYTES];
	uint64_t of;

	if (hex_decode(text, bytes, sizeof(bytes)) != 0 ||
	    bytes[0] != CURSOR_VERSION)
		return err_set(e, ERR_INVAL,
		    "cursor: it is none that a page of runs gave: list from "
		    "the beginning");
	memcpy(&of, bytes + 1, 8);
	memcpy(&out->value, bytes + 9, 8);
	memcpy(&out->place, bytes + 17, 8);
	if (of != question || out->place < 0 || out->value < 0)
		return err_set(e, ERR_INVAL,
		    "cursor: it belongs to another question: keep filters and "
		    "sort as they were, or list from the beginning");
	return 0;
}
