/*
 * query.c - a query is cut at "&" and "=", decoded in a copy of its own, and
 * each piece goes to its row of the table
 */
#include "supervisor/front/query.h"

#include <errno.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/moment.h"
#include "common/percent.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/http/http.h"

#define NAME_SHOWN 40 /* bytes of a name that nobody knows */
#define DIGITS_MAX 20

/* ---- kinds; false: it is not of that kind */

static bool
parse_number(const char *text, uint64_t *out)
{
	size_t n = strlen(text);

	if (n == 0 || n > DIGITS_MAX || strspn(text, "0123456789") != n)
		return false;
	errno = 0;
	*out = strtoull(text, NULL, 10);
	return errno == 0;
}

static bool
find_word(const char *const *words, const char *text, size_t *place)
{
	for (size_t i = 0; words[i] != NULL; i++)
		if (strcmp(words[i], text) == 0) {
			*place = i;
			return true;
		}
	return false;
}

static bool
parse_bool(const char *text, bool *out)
{
	*out = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
	return *out || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

static uint64_t
text_max(const struct query_param *p)
{
	return p->max == 0 ? QUERY_TEXT_MAX : p->max;
}

static bool
text_fits(const struct query_param *p, const char *text)
{
	size_t n = strlen(text);

	return n >= 1 && n >= p->min && n <= text_max(p) &&
	    (p->fits == NULL || p->fits(text));
}

static bool
take_value(const struct query_param *p, const char *text, int64_t now_ms,
    struct query_value *v)
{
	switch (p->kind) {
	case QUERY_TEXT:
	case QUERY_SCOPE:
		return text_fits(p, text);
	case QUERY_UUID:
		return uuid_parse(text, &v->uuid) == 0;
	case QUERY_WORD:
		return find_word(p->words, text, &v->word);
	case QUERY_NUMBER:
		return parse_number(text, &v->number) && v->number >= p->min &&
		    (p->max == 0 || v->number <= p->max);
	case QUERY_TIME:
		return moment_parse(text, now_ms, &v->time_ms);
	case QUERY_BOOL:
		return parse_bool(text, &v->is_true);
	case QUERY_SORT:
		v->is_descending = text[0] == '-';
		return find_word(
		    p->words, text + (v->is_descending ? 1 : 0), &v->word);
	}
	return false;
}

/* ---- refusals */

static void
add_words(struct buf *b, const char *const *words)
{
	for (size_t i = 0; words[i] != NULL; i++)
		(void)buf_printf(b, "%s%s", i == 0 ? "" : ", ", words[i]);
}

static void
add_want(struct buf *b, const struct query_param *p)
{
	switch (p->kind) {
	case QUERY_TEXT:
	case QUERY_SCOPE:
		if (p->want != NULL)
			(void)buf_printf(b, "%s", p->want);
		else
			(void)buf_printf(b, "%llu to %llu bytes of text",
			    (unsigned long long)(p->min == 0 ? 1 : p->min),
			    (unsigned long long)text_max(p));
		break;
	case QUERY_UUID:
		(void)buf_printf(b, "a UUID");
		break;
	case QUERY_WORD:
		(void)buf_printf(b, "one of ");
		add_words(b, p->words);
		break;
	case QUERY_NUMBER:
		(void)buf_printf(b, "a number from %llu to %llu",
		    (unsigned long long)p->min,
		    (unsigned long long)(p->max == 0 ? UINT64_MAX : p->max));
		break;
	case QUERY_TIME:
		(void)buf_printf(b, "%s", MOMENT_WANT);
		break;
	case QUERY_BOOL:
		(void)buf_printf(b, "true or false");
		break;
	case QUERY_SORT:
		(void)buf_printf(b, "one of ");
		add_words(b, p->words);
		(void)buf_printf(b, "; behind a \"-\", the largest first");
		break;
	}
}

static int
refuse_value(const struct query_param *p, struct err *e)
{
	struct buf b;
	int rc;

	buf_init(&b, ERR_TEXT_MAX);
	add_want(&b, p);
	rc = err_set(e, ERR_INVAL, "%s: want %.*s", p->name, (int)buf_len(&b),
	    (const char *)buf_data(&b));
	buf_clear(&b);
	return rc;
}

static int
refuse_name(const char *name, const struct query_table *t, struct err *e)
{
	char shown[NAME_SHOWN + 1];
	struct buf b;
	int rc;

	utf8_copy(shown, sizeof(shown), name);
	shown[utf8_mask_controls(shown, strlen(shown))] = '\0';
	if (t->n == 0)
		return err_set(e, ERR_INVAL,
		    "there is no parameter \"%s\" here, nor any other", shown);
	buf_init(&b, ERR_TEXT_MAX);
	for (size_t i = 0; i < t->n; i++)
		(void)buf_printf(
		    &b, "%s%s", i == 0 ? "" : ", ", t->params[i].name);
	rc = err_set(e, ERR_INVAL,
	    "there is no parameter \"%s\" here; there are: %.*s", shown,
	    (int)buf_len(&b), (const char *)buf_data(&b));
	buf_clear(&b);
	return rc;
}

/* ---- pieces */

/* One "name=value", or a name alone; it is cut in place. */
static int
take_piece(const struct query_table *t, int64_t now_ms, struct query *q,
    char *piece, struct err *e)
{
	char *equals = strchr(piece, '=');
	const struct query_param *p;
	struct query_value *v;
	size_t i = 0;

	if (equals != NULL)
		*equals = '\0';
	if (percent_decode(piece, PERCENT_PLUS_IS_SPACE) != 0)
		return err_set(e, ERR_INVAL,
		    "the query: a name is not percent-encoded UTF-8");
	while (i < t->n && strcmp(t->params[i].name, piece) != 0)
		i++;
	if (i == t->n)
		return refuse_name(piece, t, e);
	p = &t->params[i];
	v = &q->values[i];
	if (v->is_given)
		return err_set(e, ERR_INVAL,
		    "%s: it is given twice; give it once", p->name);
	v->is_given = true;
	v->text = equals != NULL ? equals + 1 : "";
	if (equals == NULL && p->kind == QUERY_BOOL)
		v->text = "true";
	else if (equals != NULL &&
	    percent_decode(equals + 1, PERCENT_PLUS_IS_SPACE) != 0)
		return err_set(e, ERR_INVAL,
		    "%s: its value is not percent-encoded UTF-8 without a NUL",
		    p->name);
	return take_value(p, v->text, now_ms, v) ? 0 : refuse_value(p, e);
}

int
query_parse(const char *text, const struct query_table *t, int64_t now_ms,
    struct query *q, struct err *e)
{
	char *piece, *next;

	*q = (struct query){0};
	if (t->n > QUERY_PARAMS_MAX)
		fatal(EXIT_BUG, "a route with %zu parameters", t->n);
	if (text == NULL)
		return 0;
	if (strlen(text) > QUERY_BYTES_MAX)
		return err_set(e, ERR_INVAL,
		    "the query is longer than %d bytes", QUERY_BYTES_MAX);
	q->mem = xstrdup(text);
	for (piece = q->mem; piece != NULL; piece = next) {
		next = strchr(piece, '&');
		if (next != NULL)
			*next++ = '\0';
		if (*piece != '\0' && take_piece(t, now_ms, q, piece, e) != 0) {
			query_clear(q);
			return e->code;
		}
	}
	return 0;
}

void
query_clear(struct query *q)
{
	free(q->mem);
	*q = (struct query){0};
}

bool
query_read(
    struct http_exchange *x, const struct query_table *t, struct query *q)
{
	struct err e;

	if (query_parse(http_query_text(x), t, clock_wall_ms(), q, &e) == 0)
		return true;
	http_error_from(x, e.code, &e);
	return false;
}
