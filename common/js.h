/* js.h - helpers over jansson; errors carry the path of the value. */
#ifndef COMMON_JS_H
#define COMMON_JS_H

#include <jansson.h>

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"

static inline void
auto_json(json_t **j)
{
	json_decref(*j);
}

/* js_skip_mark - the text behind a byte order mark, which some programs write
 * before JSON and RFC 8259, section 8.1, lets a reader ignore; *len follows */
const char *js_skip_mark(const char *text, size_t *len);
/* js_parse - bounded: text longer than max, nested deeper than depth_max,
 * duplicate keys and invalid UTF-8 are refused, a byte order mark before it is
 * skipped; *out is the caller's */
int js_parse(const char *text, size_t len, size_t max, int depth_max,
    json_t **out, struct err *e) MUSTCHECK;
/* js_is_deeper - does the text nest deeper than max levels? */
bool js_is_deeper(const char *text, size_t len, int max);
/* js_is_more - has the text more than max values?  Empty arrays and objects
 * may count twice */
bool js_is_more(const char *text, size_t len, size_t max);
/* js_string_bytes - a JSON string from any bytes: what is not UTF-8 becomes
 * U+FFFD; *lossy (may be NULL) says whether that happened */
json_t *js_string_bytes(const void *p, size_t n, bool *lossy);
/* js_text - the text of a member; "" when it is none, or o no object */
const char *js_text(const json_t *o, const char *key);
/* js_plain - a string that is a C string, too: NULL when v is none, or holds a
 * NUL character */
const char *js_plain(const json_t *v);
/* js_bytes_cost - how many bytes of JSON these bytes are at most, as a string
 * and, where the string would be lossy, in base64 beside it */
size_t js_bytes_cost(const void *p, size_t n);
/* js_byte_cost - the string's part of that, for one byte of many, some of
 * which are no UTF-8 (lossy) or none */
size_t js_byte_cost(uint8_t c, bool lossy);
/* js_bytes_fit - how many of the first bytes cost at most max */
size_t js_bytes_fit(const void *p, size_t n, size_t max);
/* js_append - compact text, members in the order they were set; strings are
 * UTF-8, and b has room or no limit */
void js_append(struct buf *b, const json_t *j);
/* js_append_text - n bytes as a string; what is not UTF-8 becomes U+FFFD */
void js_append_text(struct buf *b, const char *text, size_t n);
/* js_dump - the same text by itself; the caller frees; never NULL */
char *js_dump(const json_t *j);

#endif
