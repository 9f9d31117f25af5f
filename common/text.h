/* text.h - words from the engine and from sandboxes, made fit to be shown. */
#ifndef COMMON_TEXT_H
#define COMMON_TEXT_H

#include "common/base.h"

/* text_skip_blanks - behind the spaces and tabs at p */
static inline const char *
text_skip_blanks(const char *p)
{
	return p + strspn(p, " \t");
}

/* text_clean - copy n bytes of from to to (NUL-terminated, cut at size):
 * valid UTF-8 without control characters (utf8_control_len).  Bytes that are
 * neither become a space, runs of them one. */
void text_clean(char *to, size_t size, const void *from, size_t n);

#endif
