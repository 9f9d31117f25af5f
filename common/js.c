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
		c.text += js_byte_cost(s[i], c.lossy);
	return bytes_cost_sum(&c);
}

size_t
js_bytes_fit(const void *p, size_t n, size_t max)
{
	struct bytes_cost c = {!utf8_is_valid(p, n), 0, 0};
	const uint8_t *s = p;

	for (; c.bytes < n; c.bytes++) {
		size_t text = c.text + js_byte_cost(s[c.bytes], c.lossy);
		const struct bytes_cost more = {c.lossy, text, c.bytes + 1};

		if (bytes_cost_sum(&more) > max)
			break;
		c.text = text;
	}
	return c.bytes;
}

#define JS_DUMP_FIRST_BYTES 1024
#define JS_APPEND_DEPTH 2048 /* as deep as jansson parses */

/* ---- writing */

/* A walk through a tree.  With a callback the text goes to it in pieces, and
 * the buffer holds no more than one. */
struct js_walk {
	struct buf *b;
	bool is_sorted;
	js_piece_cb cb;
	void *arg;
};

#define PIECE_BYTES 8192

static void
flush(const struct js_walk *w)
{
	w->cb(buf_data(w->b), buf_len(w->b), w->arg);
	buf_consume(w->b, buf_len(w->b));
}

static void
put_slowly(const struct js_walk *w, const char *p, size_t n)
{
	if (w->cb != NULL && buf_len(w->b) + n > PIECE_BYTES) {
		flush(w);
		if (n > PIECE_BYTES) {
			w->cb(p, n, w->arg);
			return;
		}
	}
	if (buf_append(w->b, p, n) != 0)
		fatal(EXIT_BUG, "JSON text: no room");
}

/* A few bytes at a time, so this is kept short. */
static void
put(const struct js_walk *w, const char *p, size_t n)
{
	struct buf *b = w->b;

	if (n > b->cap - b->end) {
		put_slowly(w, p, n);
		return;
	}
	memcpy(b->mem + b->end, p, n);
	b->end += n;
}

static int
leaf_cb(const char *p, size_t n, void *arg)
{
	put(arg, p, n);
	return 0;
}

/* Jansson's own words for one value. */
static void
put_leaf(struct js_walk *w, const json_t *j)
{
	if (json_dump_callback(j, leaf_cb, w, JSON_COMPACT | JSON_ENCODE_ANY) !=
	    0)
		fatal(EXIT_BUG, "JSON text: no value");
}

/* RFC 8259, section 7, as jansson does it: what must be escaped, and by two
 * characters where there are two. */
static void
put_escape(const struct js_walk *w, unsigned char c)
{
	static const char short_ones[0x20] = {['\b'] = 'b',
	    ['\f'] = 'f',
	    ['\n'] = 'n',
	    ['\r'] = 'r',
	    ['\t'] = 't'};
	static const char hex[] = "0123456789ABCDEF";
	char text[6] = {'\\', (char)c};

	if (c < 0x20)
		text[1] = short_ones[c];
	if (text[1] != '\0') {
		put(w, text, 2);
		return;
	}
	memcpy(text + 1, "u00", 3);
	text[4] = hex[c >> 4];
	text[5] = hex[c & 15];
	put(w, text, 6);
}

/* text is UTF-8 */
static void
put_string(const struct js_walk *w, const char *text, size_t n)
{
	size_t from = 0;

	put(w, "\"", 1);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		put(w, text + from, i - from);
		put_escape(w, c);
		from = i + 1;
	}
	put(w, text + from, n - from);
	put(w, "\"", 1);
}

static void
put_integer(const struct js_walk *w, json_int_t value)
{
	char text[24], *p = text + sizeof(text);
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;

	do
		*--p = (char)('0' + rest % 10);
	while ((rest /= 10) != 0);
	if (value < 0)
		*--p = '-';
	put(w, p, (size_t)(text + sizeof(text) - p));
}

static void put_value(struct js_walk *w, json_t *j, unsigned int depth);

static void
put_member(
    struct js_walk *w, const char *key, json_t *value, unsigned int depth)
{
	put_string(w, key, strlen(key));
	put(w, ":", 1);
	put_value(w, value, depth);
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
put_sorted(struct js_walk *w, json_t *o, unsigned int depth)
{
	size_t n = json_object_size(o), i = 0;
	AUTO(auto_free) const char **names = xcalloc(n, sizeof(*names));
	json_t *value;
	const char *key;

	json_object_foreach (o, key, value)
		names[i++] = key;
	qsort(names, n, sizeof(*names), compare_names);
	for (i = 0; i < n; i++) {
		if (i > 0)
			put(w, ",", 1);
		put_member(w, names[i], json_object_get(o, names[i]), depth);
	}
}

static void
put_object(struct js_walk *w, json_t *o, unsigned int depth)
{
	bool is_first = true;
	const char *key;
	json_t *value;

	put(w, "{", 1);
	if (w->is_sorted && json_object_size(o) > 1)
		put_sorted(w, o, depth);
	else
		json_object_foreach (o, key, value) {
			if (!is_first)
				put(w, ",", 1);
			is_first = false;
			put_member(w, key, value, depth);
		}
	put(w, "}", 1);
}

static void
put_array(struct js_walk *w, json_t *a, unsigned int depth)
{
	json_t *value;
	size_t i;

	put(w, "[", 1);
	json_array_foreach (a, i, value) {
		if (i > 0)
			put(w, ",", 1);
		put_value(w, value, depth);
	}
	put(w, "]", 1);
}

static void
put_value(struct js_walk *w, json_t *j, unsigned int depth)
{
	if (depth > JS_APPEND_DEPTH)
		fatal(EXIT_BUG, "JSON text: a tree without an end");
	if (json_is_object(j))
		put_object(w, j, depth + 1);
	else if (json_is_array(j))
		put_array(w, j, depth + 1);
	else if (json_is_string(j))
		put_string(w, json_string_value(j), json_string_length(j));
	else if (json_is_integer(j))
		put_integer(w, json_integer_value(j));
	else if (json_is_true(j))
		put(w, "true", 4);
	else if (json_is_false(j))
		put(w, "false", 5);
	else if (json_is_null(j))
		put(w, "null", 4);
	else
		put_leaf(w, j);
}

static void
write_tree(struct js_walk *w, const json_t *j)
{
	/* Most fit into this, and it grows from there. */
	if (buf_reserve(w->b, JS_DUMP_FIRST_BYTES) == NULL)
		fatal(EXIT_BUG, "JSON text: no room");
	/* Nothing is written; jansson's iterators know no other type. */
	put_value(w, (json_t *)(uintptr_t)j, 0);
}

/*
 * Jansson would look for circles: for each object and array it prints the
 * address, and keeps it in a table of its own, two thirds of what an
 * answer's text costs (decision 81), and each piece of a value goes through its
 * callbacks.  Our trees have no circles, so the walk is ours; numbers with a
 * fraction stay jansson's.
 */
void
js_append(struct buf *b, const json_t *j)
{
	struct js_walk w = {.b = b};

	write_tree(&w, j);
}

void
js_append_text(struct buf *b, const char *text, size_t n)
{
	struct js_walk w = {.b = b};
	AUTO(auto_json) json_t *repaired = NULL;

	if (utf8_is_valid(text, n)) {
		put_string(&w, text, n);
		return;
	}
	repaired = js_string_bytes(text, n, NULL);
	write_tree(&w, repaired);
}

void
js_pieces_sorted(const json_t *j, js_piece_cb cb, void *arg)
{
	struct buf b;
	struct js_walk w = {.b = &b, .is_sorted = true, .cb = cb, .arg = arg};

	buf_init(&b, 0);
	write_tree(&w, j);
	flush(&w);
	buf_clear(&b);
}

char *
js_dump(const json_t *j)
{
	struct buf b;

	buf_init(&b, 0);
	js_append(&b, j);
	if (buf_append(&b, "", 1) != 0)
		fatal(EXIT_BUG, "JSON text: no room");
	return (char *)b.mem; /* nothing was consumed */
}

const char *
js_text(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text != NULL ? text : "";
}
