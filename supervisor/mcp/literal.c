#include "supervisor/mcp/literal.h"

#include <ctype.h>

#include "common/xmalloc.h"
#include "supervisor/mcp/rpc.h"

#define PATH_MAX_KEYS 3
#define SAFE_DIGITS 18 /* so many always fit 64 bits */

static const struct place {
	unsigned int depth;
	const char *key[PATH_MAX_KEYS];
} places[LITERAL_N] = {
    [LITERAL_ID] = {1, {"id", NULL, NULL}},
    [LITERAL_REQUEST_ID] = {2, {"params", "requestId", NULL}},
    [LITERAL_PROGRESS_TOKEN] = {3, {"params", "_meta", "progressToken"}},
};

struct scan {
	const char *p;
	size_t n;
	size_t at;
	unsigned int depth;
	bool want_key;
	char open[LITERAL_DEPTH_MAX + 1]; /* '{' or '[' per depth, from 1 */
	struct {
		const char *p;
		size_t n;
	} key[PATH_MAX_KEYS + 1]; /* the last key per depth, from 1 */
};

static void
scan_string(struct scan *s)
{
	size_t start = ++s->at;

	while (s->at < s->n && s->p[s->at] != '"')
		s->at += s->p[s->at] == '\\' ? 2 : 1;
	if (s->at >= s->n) { /* cut off: the parser will say so */
		s->at = s->n;
		return;
	}
	if (s->want_key && s->depth <= PATH_MAX_KEYS) {
		s->key[s->depth].p = s->p + start;
		s->key[s->depth].n = s->at - start;
	}
	s->want_key = false;
	s->at++;
}

static bool
scan_is_at(const struct scan *s, const struct place *place)
{
	if (s->depth != place->depth)
		return false;
	for (unsigned int d = 1; d <= place->depth; d++) {
		const char *key = place->key[d - 1];

		if (s->open[d] != '{' || s->key[d].p == NULL ||
		    s->key[d].n != strlen(key) ||
		    memcmp(s->key[d].p, key, s->key[d].n) != 0)
			return false;
	}
	return true;
}

/* RFC 8259, section 6, without fraction and exponent. */
static bool
is_integer(const char *p, size_t n)
{
	if (n > 0 && *p == '-') {
		p++;
		n--;
	}
	if (n == 0 || (n > 1 && *p == '0'))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isdigit((unsigned char)p[i]))
			return false;
	return true;
}

static void
scan_keep(const struct scan *s, size_t start, struct literals *out)
{
	size_t n = s->at - start;

	if (n > RPC_NUMBER_MAX || !is_integer(s->p + start, n))
		return;
	for (unsigned int i = 0; i < LITERAL_N; i++) {
		if (!scan_is_at(s, &places[i]))
			continue;
		free(out->text[i]);
		out->text[i] = xstrndup(s->p + start, n);
		if (n <= SAFE_DIGITS)
			continue;
		if (out->copy == NULL)
			out->copy = xmemdup(s->p, s->n);
		memset(out->copy + start, ' ', n);
		out->copy[start] = '0';
	}
}

static void
scan_number(struct scan *s, struct literals *out)
{
	size_t start = s->at;

	while (s->at < s->n && s->p[s->at] != '\0' &&
	    strchr("+-.0123456789eE", s->p[s->at]) != NULL)
		s->at++;
	if (s->depth >= 1 && s->depth <= PATH_MAX_KEYS)
		scan_keep(s, start, out);
}

static int
scan_open(struct scan *s, unsigned int depth_max, struct err *e)
{
	if (++s->depth > depth_max)
		return err_set(e, ERR_LIMIT,
		    "nested deeper than %u levels; send a flatter message",
		    depth_max);
	s->open[s->depth] = s->p[s->at++];
	s->want_key = s->open[s->depth] == '{';
	if (s->depth <= PATH_MAX_KEYS)
		s->key[s->depth].p = NULL;
	return 0;
}

int
literal_scan(const char *p, size_t n, unsigned int depth_max,
    struct literals *out, struct err *e)
{
	struct scan s = {.p = p, .n = n};

	*out = (struct literals){0};
	if (depth_max > LITERAL_DEPTH_MAX)
		depth_max = LITERAL_DEPTH_MAX;
	while (s.at < s.n) {
		char c = s.p[s.at];

		if (c == '"') {
			scan_string(&s);
		} else if (c == '{' || c == '[') {
			if (scan_open(&s, depth_max, e) != 0)
				return ERR_LIMIT;
		} else if (c == '}' || c == ']') {
			if (s.depth == 0)
				return 0; /* not JSON: the parser's to say */
			s.depth--;
			s.want_key = false;
			s.at++;
		} else if (c == '-' || isdigit((unsigned char)c)) {
			scan_number(&s, out);
		} else {
			if (c == ',')
				s.want_key =
				    s.depth > 0 && s.open[s.depth] == '{';
			s.at++;
		}
	}
	return 0;
}

void
literal_clear(struct literals *l)
{
	for (unsigned int i = 0; i < LITERAL_N; i++)
		free(l->text[i]);
	free(l->copy);
	*l = (struct literals){0};
}
