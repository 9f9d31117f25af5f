/*
 * js_load.c - long strings beside jansson
 *
 *	split	a copy of the text in which each long value is a name; the
 *		values, decoded, in a list.  Keys stay: two that are the same
 *		must be seen
 *	json_loadb	of the copy
 *	fill	each name in the tree becomes its value again
 *
 * A name holds 128 random bits, so no client has it in its own text.
 */
#include "common/js_load.h"

#include <stdio.h>

#include "common/buf.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/utf8.h"
#include "common/uuid.h"
#include "common/xmalloc.h"

#define NAME_BYTES (UUID_TEXT_LEN + 10) /* of one: the UUID, its number */

struct split {
	const char *text;
	size_t len;
	size_t flags;
	char secret[UUID_TEXT_LEN + 1];
	struct buf rest; /* the text with names */
	json_t **values;
	size_t nvalues;
	size_t filled;
};

size_t
js_string_end(const char *text, size_t len, size_t at)
{
	size_t from = at;

	while (at < len) {
		const char *quote = memchr(text + at, '"', len - at);
		size_t end, slashes = 0;

		if (quote == NULL)
			return len;
		end = (size_t)(quote - text);
		while (end - slashes > from && text[end - slashes - 1] == '\\')
			slashes++;
		if (slashes % 2 == 0)
			return end;
		at = end + 1;
		from = at; /* the quote before was escaped: it ends no run */
	}
	return len;
}

/* ---- one string */

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four digits of \uXXXX; -1: they are not. */
static int32_t
unit_at(const char *p, size_t n)
{
	int32_t v = 0;

	if (n < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		int d = hex_value(p[i]);

		if (d < 0)
			return -1;
		v = v * 16 + d;
	}
	return v;
}

static char *
put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 0x3f));
	} else {
		if (c < 0x10000) {
			*to++ = (char)(0xe0 | c >> 12);
		} else {
			*to++ = (char)(0xf0 | c >> 18);
			*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		}
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	}
	return to;
}

/* A \u escape at p, perhaps two; how many bytes of it, 0: left to jansson. */
static size_t
decode_unit(const char *p, size_t n, size_t flags, char **to)
{
	int32_t high = unit_at(p, n), low;

	if (high < 0 || (high == 0 && (flags & JSON_ALLOW_NUL) == 0))
		return 0;
	if (high < 0xd800 || high > 0xdfff) {
		*to = put_utf8(*to, (uint32_t)high);
		return 6;
	}
	low = unit_at(p + 6, n - 6);
	if (high > 0xdbff || low < 0xdc00 || low > 0xdfff)
		return 0;
	*to = put_utf8(*to,
	    (((uint32_t)high - 0xd800) << 10) + ((uint32_t)low - 0xdc00) +
		0x10000);
	return 12;
}

/* An escape at p; as decode_unit. */
static size_t
decode_escape(const char *p, size_t n, size_t flags, char **to)
{
	static const char names[] = "\"\\/bfnrt";
	static const char means[] = "\"\\/\b\f\n\r\t";
	const char *found;

	if (n < 2 || p[1] == '\0')
		return 0;
	if (p[1] == 'u')
		return decode_unit(p, n, flags, to);
	found = strchr(names, p[1]);
	if (found == NULL)
		return 0;
	*(*to)++ = means[found - names];
	return 2;
}

static bool
has_control(const char *p, size_t n)
{
	unsigned int found = 0;

	for (size_t i = 0; i < n; i++)
		found |= (unsigned char)p[i] < 0x20;
	return found != 0;
}

static json_t *
string_of(const char *p, size_t n)
{
	json_t *s = json_stringn_nocheck(p, n);

	if (s == NULL)
		fatal(EXIT_MEMORY, "out of memory (JSON string, %zu bytes)", n);
	return s;
}

/* The value between two quotes; NULL: left to jansson. */
static json_t *
decode_string(const char *p, size_t n, size_t flags)
{
	AUTO(auto_free) char *mem = NULL;
	char *to;

	if (has_control(p, n) || !utf8_is_valid((const uint8_t *)p, n))
		return NULL;
	if (memchr(p, '\\', n) == NULL)
		return string_of(p, n);
	mem = to = xmalloc(n); /* no escape is shorter than what it means */
	while (n > 0) {
		const char *slash = memchr(p, '\\', n);
		size_t run = slash == NULL ? n : (size_t)(slash - p), took;

		to = mempcpy(to, p, run);
		p += run;
		n -= run;
		if (n == 0)
			break;
		took = decode_escape(p, n, flags, &to);
		if (took == 0)
			return NULL;
		p += took;
		n -= took;
	}
	return string_of(mem, (size_t)(to - mem));
}

/* ---- split */

static void
keep(struct split *s, const char *p, size_t n)
{
	if (buf_append(&s->rest, p, n) != 0)
		fatal(EXIT_BUG, "js_load: %zu bytes", n);
}

/* Is what stands behind a string a colon? */
static bool
is_key(const char *p, size_t n)
{
	while (n > 0 && strchr(" \t\r\n", *p) != NULL && *p != '\0') {
		p++;
		n--;
	}
	return n > 0 && *p == ':';
}

/* The string of n bytes at p, its quotes not counted, as a name: whether it
 * is one now. */
static bool
split_string(struct split *s, const char *p, size_t n)
{
	json_t *value = decode_string(p, n, s->flags);
	char name[NAME_BYTES + 3];
	int len;

	if (value == NULL)
		return false;
	if (s->nvalues % 16 == 0)
		s->values = xreallocarray(
		    s->values, s->nvalues + 16, sizeof(*s->values));
	len = snprintf(name, sizeof(name), "\"%s%zu\"", s->secret, s->nvalues);
	s->values[s->nvalues++] = value;
	keep(s, name, (size_t)len);
	return true;
}

static void
split_text(struct split *s)
{
	const char *t = s->text;
	size_t kept = 0, at = 0; /* all before kept is in rest */

	while (at < s->len) {
		const char *quote = memchr(t + at, '"', s->len - at);
		size_t from, end;

		if (quote == NULL)
			break;
		from = (size_t)(quote - t) + 1;
		end = js_string_end(t, s->len, from);
		if (end == s->len)
			break;
		at = end + 1;
		if (end - from < JS_LONG_BYTES || is_key(t + at, s->len - at))
			continue;
		keep(s, t + kept, from - 1 - kept);
		kept = from - 1;
		if (split_string(s, t + from, end - from))
			kept = at;
	}
	if (s->nvalues > 0)
		keep(s, t + kept, s->len - kept);
}

/* ---- fill */

/* What v is the name of; NULL: of nothing.  The caller's from then on. */
static json_t *
value_of(struct split *s, const json_t *v)
{
	const char *text = json_string_value(v);
	json_t *value;
	size_t i;

	if (text == NULL || strncmp(text, s->secret, UUID_TEXT_LEN) != 0)
		return NULL;
	i = strtoul(text + UUID_TEXT_LEN, NULL, 10);
	if (i >= s->nvalues || s->values[i] == NULL)
		return NULL;
	value = s->values[i];
	s->values[i] = NULL;
	s->filled++;
	return value;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the text, which is bounded */
static void
fill(struct split *s, json_t *v)
{
	json_t *member, *value;
	const char *key;
	size_t i;

	json_array_foreach (v, i, member) {
		value = value_of(s, member);
		if (value != NULL)
			(void)json_array_set_new(v, i, value);
		else
			fill(s, member);
	}
	json_object_foreach (v, key, member) {
		value = value_of(s, member);
		if (value != NULL) /* the key exists: the iterator is valid */
			(void)json_object_set_new_nocheck(v, key, value);
		else
			fill(s, member);
	}
}

static json_t *
load_split(struct split *s)
{
	json_t *root = json_loadb((const char *)buf_data(&s->rest),
	    buf_len(&s->rest), s->flags, NULL);
	json_t *whole;

	if (root == NULL)
		return NULL;
	whole = value_of(s, root); /* a text that is one string */
	if (whole != NULL) {
		json_decref(root);
		return whole;
	}
	fill(s, root);
	if (s->filled == s->nvalues)
		return root;
	json_decref(root);
	return NULL;
}

/* ---- the whole */

static void
split_init(struct split *s, const char *text, size_t len, size_t flags)
{
	struct uuid secret;

	*s = (struct split){.text = text, .len = len, .flags = flags};
	uuid_random(&secret);
	uuid_format(&secret, s->secret);
	buf_init(&s->rest, 0);
	split_text(s);
}

static void
split_clear(struct split *s)
{
	for (size_t i = 0; i < s->nvalues; i++)
		json_decref(s->values[i]);
	free(s->values);
	buf_clear(&s->rest);
}

json_t *
js_load(const char *text, size_t len, size_t flags, json_error_t *e)
{
	json_t *root = NULL;
	struct split s;

	if (len > JS_LONG_BYTES) {
		split_init(&s, text, len, flags);
		if (s.nvalues > 0)
			root = load_split(&s);
		split_clear(&s);
	}
	return root != NULL ? root : json_loadb(text, len, flags, e);
}
