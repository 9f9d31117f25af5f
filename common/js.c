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

int
js_parse(const char *text, size_t len, size_t max, int depth_max, json_t **out,
    struct err *e)
{
	json_error_t je;
	json_t *j;

	if (len > max)
		return err_set(
		    e, ERR_LIMIT, "JSON of %zu bytes, limit %zu", len, max);
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

/* By hand: OpenSSL's headers have a type ERR_WRONG_STATE, which is a code here.
 */
json_t *
js_base64(const void *p, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *s = p;
	size_t len = n / 3 * 4 + (n % 3 != 0 ? 4 : 0), at = 0;
	AUTO(auto_free) char *text = xmalloc(len);

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)s[i] << 16;

		if (i + 1 < n)
			v |= (uint32_t)s[i + 1] << 8;
		if (i + 2 < n)
			v |= s[i + 2];
		text[at++] = digits[v >> 18];
		text[at++] = digits[v >> 12 & 63];
		text[at++] = i + 1 < n ? digits[v >> 6 & 63] : '=';
		text[at++] = i + 2 < n ? digits[v & 63] : '=';
	}
	return js_string_checked(text, len);
}

/* jansson's escapes; a byte that is no text is a U+FFFD of three. */
static size_t
byte_cost(uint8_t c, bool lossy)
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

struct bytes_cost {
	bool lossy;
	size_t text;
	size_t bytes; /* for base64 */
};

static size_t
bytes_cost_sum(const struct bytes_cost *c)
{
	return c->text + (c->lossy ? (c->bytes + 2) / 3 * 4 : 0);
}

size_t
js_bytes_cost(const void *p, size_t n)
{
	struct bytes_cost c = {!utf8_is_valid(p, n), 0, n};
	const uint8_t *s = p;

	for (size_t i = 0; i < n; i++)
		c.text += byte_cost(s[i], c.lossy);
	return bytes_cost_sum(&c);
}

size_t
js_bytes_fit(const void *p, size_t n, size_t max)
{
	struct bytes_cost c = {!utf8_is_valid(p, n), 0, 0};
	const uint8_t *s = p;

	for (; c.bytes < n; c.bytes++) {
		size_t text = c.text + byte_cost(s[c.bytes], c.lossy);
		const struct bytes_cost more = {c.lossy, text, c.bytes + 1};

		if (bytes_cost_sum(&more) > max)
			break;
		c.text = text;
	}
	return c.bytes;
}

#define JS_DUMP_FIRST_BYTES 1024
#define JS_APPEND_DEPTH 2048 /* as deep as jansson parses */

/* jansson hands out a few bytes at a time, so this is kept short. */
static int
append_cb(const char *p, size_t n, void *arg)
{
	struct buf *b = arg;

	if (n > b->cap - b->end)
		return buf_append(b, p, n);
	memcpy(b->mem + b->end, p, n);
	b->end += n;
	return 0;
}

static void
put(struct buf *b, const char *p, size_t n)
{
	if (append_cb(p, n, b) != 0)
		fatal(EXIT_BUG, "js_append: no room");
}

/* Jansson's own words for one value. */
static void
append_leaf(struct buf *b, const json_t *j)
{
	if (json_dump_callback(
		j, append_cb, b, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
		fatal(EXIT_BUG, "js_append: no JSON value, or no room");
}

static bool
is_plain(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
			return false;
	}
	return true;
}

static void
append_plain(struct buf *b, const char *text, size_t n)
{
	put(b, "\"", 1);
	put(b, text, n);
	put(b, "\"", 1);
}

static void
append_integer(struct buf *b, json_int_t value)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, value);

	put(b, text, (size_t)n);
}

static void append_value(struct buf *b, json_t *j, unsigned int depth);

static void
append_object(struct buf *b, json_t *o, unsigned int depth)
{
	const char *key, *mark = "{";
	json_t *value;

	if (json_object_size(o) == 0)
		put(b, mark, 1);
	json_object_foreach (o, key, value) {
		put(b, mark, 1);
		js_append_text(b, key, strlen(key));
		put(b, ":", 1);
		append_value(b, value, depth);
		mark = ",";
	}
	put(b, "}", 1);
}

static void
append_array(struct buf *b, json_t *a, unsigned int depth)
{
	const char *mark = "[";
	json_t *value;
	size_t i;

	if (json_array_size(a) == 0)
		put(b, mark, 1);
	json_array_foreach (a, i, value) {
		put(b, mark, 1);
		append_value(b, value, depth);
		mark = ",";
	}
	put(b, "]", 1);
}

static void
append_value(struct buf *b, json_t *j, unsigned int depth)
{
	if (depth > JS_APPEND_DEPTH)
		fatal(EXIT_BUG, "js_append: a tree without an end");
	if (json_is_object(j))
		append_object(b, j, depth + 1);
	else if (json_is_array(j))
		append_array(b, j, depth + 1);
	else if (json_is_integer(j))
		append_integer(b, json_integer_value(j));
	else if (json_is_string(j) &&
	    is_plain(json_string_value(j), json_string_length(j)))
		append_plain(b, json_string_value(j), json_string_length(j));
	else
		append_leaf(b, j);
}

/*
 * Jansson would look for circles: for each object and array it prints the
 * address, and keeps it in a table of its own, two thirds of what an
 * answer's text costs (decision 81).  Our trees have none, so the walk is ours,
 * and what a value looks like is jansson's wherever that is not plain.
 */
void
js_append(struct buf *b, const json_t *j)
{
	/* Most fit into this, and it grows from there. */
	if (buf_reserve(b, JS_DUMP_FIRST_BYTES) == NULL)
		fatal(EXIT_BUG, "js_append: no room");
	/* Nothing is written; jansson's iterators know no other type. */
	append_value(b, (json_t *)(uintptr_t)j, 0);
}

void
js_append_text(struct buf *b, const char *text, size_t n)
{
	if (is_plain(text, n)) {
		append_plain(b, text, n);
	} else {
		AUTO(auto_json) json_t *string = js_string_bytes(text, n, NULL);

		append_leaf(b, string);
	}
}

char *
js_dump(const json_t *j)
{
	struct buf b;

	buf_init(&b, 0);
	js_append(&b, j);
	(void)append_cb("", 1, &b);
	return (char *)b.mem; /* nothing was consumed */
}

const char *
js_text(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text != NULL ? text : "";
}
