#include "common/js.h"

#include "common/exit.h"
#include "common/log.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

/* The index of the quote that ends the string whose first byte is at "at"; len
 * when it has none. */
static size_t
string_end(const char *text, size_t len, size_t at)
{
	const char *quote;
	size_t end, slashes;

	for (; at < len; at = end + 1) {
		quote = memchr(text + at, '"', len - at);
		if (quote == NULL)
			return len;
		end = (size_t)(quote - text);
		for (slashes = 0; end - slashes > at; slashes++)
			if (text[end - slashes - 1] != '\\')
				break;
		if (slashes % 2 == 0)
			return end;
	}
	return len;
}

/*
 * Looked at before jansson sees the text, whose own limit is fixed and whose
 * recursion uses stack.  Brackets inside strings do not count.
 */
bool
js_is_deeper(const char *text, size_t len, int max)
{
	int depth = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '"')
			i = string_end(text, len, i + 1);
		else if (c == ']' || c == '}')
			depth--;
		else if ((c == '[' || c == '{') && ++depth > max)
			return true;
	}
	return false;
}

bool
js_is_more(const char *text, size_t len, size_t max)
{
	size_t n = 1;

	for (size_t i = 0; i < len && n <= max; i++)
		if (text[i] == '"')
			i = string_end(text, len, i + 1);
		else
			n += text[i] == ',' || text[i] == '[' || text[i] == '{';
	return n > max;
}

const char *
js_skip_mark(const char *text, size_t *len)
{
	static const char mark[] = {'\xef', '\xbb', '\xbf'};

	if (*len < sizeof(mark) || memcmp(text, mark, sizeof(mark)) != 0)
		return text;
	*len -= sizeof(mark);
	return text + sizeof(mark);
}

int
js_parse(const char *text, size_t len, size_t max, int depth_max, json_t **out,
    struct err *e)
{
	json_error_t je;
	json_t *j;

	if (len > max)
		return err_set(
		    e, ERR_LIMIT, "JSON of %zu bytes, limit %zu", len, max);
	text = js_skip_mark(text, &len);
	if (js_is_deeper(text, len, depth_max))
		return err_set(e, ERR_LIMIT,
		    "JSON is nested deeper than %d levels", depth_max);
	j = json_loadb(
	    text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je);
	if (j == NULL)
		return err_set(e, ERR_PARSE, "JSON line %d column %d: %s",
		    je.line, je.column, je.text);
	*out = j;
	return 0;
}

/* s is UTF-8, NUL included. */
static json_t *
js_string_checked(const void *s, size_t n)
{
	json_t *j = json_stringn_nocheck(n != 0 ? s : "", n);

	if (j == NULL)
		fatal(EXIT_MEMORY, "out of memory (JSON string, %zu bytes)", n);
	return j;
}

json_t *
js_string_bytes(const void *p, size_t n, bool *lossy)
{
	bool valid = utf8_is_valid(p, n);
	struct buf b;
	json_t *j;

	if (lossy != NULL)
		*lossy = !valid;
	if (valid)
		return js_string_checked(p, n);
	buf_init(&b, 0);
	if (utf8_append_repaired(&b, p, n) != 0)
		fatal(EXIT_BUG, "js_string_bytes: %zu bytes", n);
	j = js_string_checked(buf_data(&b), buf_len(&b));
	buf_clear(&b);
	return j;
}

/* jansson's escapes; a byte that is no text is a U+FFFD of three. */
size_t
js_byte_cost(uint8_t c, bool lossy)
{
	if (c == '"' || c == '\\')
		return 2;
	if (c >= 0x80)
		return lossy ? 3 : 1;
	if (c >= 0x20)
		return 1;
	return c == '\b' || c == '\f' || c == '\n' || c == '\r' || c == '\t' ?
	    2 :
	    6;
}

/* Of so many bytes of text; where it is lossy, with n bytes in base64. */
static size_t
cost_of(size_t text, size_t n, bool lossy)
{
	return text + (lossy ? (n + 2) / 3 * 4 : 0);
}

size_t
js_bytes_cost(const void *p, size_t n)
{
	bool lossy = !utf8_is_valid(p, n);
	const uint8_t *s = p;
	size_t text = 0;

	for (size_t i = 0; i < n; i++)
		text += js_byte_cost(s[i], lossy);
	return cost_of(text, n, lossy);
}

size_t
js_bytes_fit(const void *p, size_t n, size_t max)
{
	bool lossy = !utf8_is_valid(p, n);
	const uint8_t *s = p;
	size_t text = 0, i;

	for (i = 0; i < n; i++) {
		text += js_byte_cost(s[i], lossy);
		if (cost_of(text, i + 1, lossy) > max)
			break;
	}
	return i;
}

static int
append_cb(const char *p, size_t n, void *arg)
{
	return buf_append(arg, p, n);
}

void
js_append(struct buf *b, const json_t *j)
{
	if (json_dump_callback(
		j, append_cb, b, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
		fatal(EXIT_BUG, "JSON text: no value, or no room");
}

void
js_append_text(struct buf *b, const char *text, size_t n)
{
	AUTO(auto_json) json_t *j = js_string_bytes(text, n, NULL);

	js_append(b, j);
}

char *
js_dump(const json_t *j)
{
	char *text = json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY);

	if (text == NULL)
		fatal(EXIT_BUG, "JSON text: no value, or no memory");
	return text;
}

const char *
js_plain(const json_t *v)
{
	const char *s = json_string_value(v);

	return s == NULL || strlen(s) != json_string_length(v) ? NULL : s;
}

const char *
js_text(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text != NULL ? text : "";
}
