/* utf8.h - strict UTF-8 (RFC 3629): no surrogates, no overlong forms. */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

#include "common/base.h"
#include "common/buf.h"

bool utf8_is_valid(const void *p, size_t n);
/*
 * utf8_complete_len - n less a multi-byte character that is cut off at the
 * end (at most 3 bytes).  A tail that can never become a character counts as
 * complete.  So a chunk cut here never splits a character of valid text.
 */
size_t utf8_complete_len(const void *p, size_t n);
/* utf8_copy - a NUL-terminated copy of text in out, which has size bytes; cut
 * where a character ends */
void utf8_copy(char *out, size_t size, const char *text);
/* utf8_broken_start_len - bytes (at most 3) at the beginning that are the rest
 * of a character that was cut off there; what is left out of valid text so
 * that it begins with a character */
size_t utf8_broken_start_len(const void *p, size_t n);
/*
 * utf8_control_len - bytes of the control character that p[0..n) begins with;
 * 0: it begins with none.  Beside U+0000..U+001F and U+007F..U+009F these are
 * what ends a line or turns its direction: U+2028..U+202E, U+2066..U+2069.
 */
size_t utf8_control_len(const void *p, size_t n);
/* utf8_mask_controls - each control character of text becomes "?", in place;
 * the new length */
size_t utf8_mask_controls(char *text, size_t n);
/* utf8_append_repaired - append, each byte that is not part of a character
 * as U+FFFD.  -1 over b's limit. */
int utf8_append_repaired(struct buf *b, const void *p, size_t n) MUSTCHECK;

#endif
