/*
 * xmalloc.h - allocation that ends the process (exit status 71) when memory
 * is out; the supervisor restarts it.  Sizes that come from outside are
 * bounded by the caller before they reach these.
 */
#ifndef COMMON_XMALLOC_H
#define COMMON_XMALLOC_H

#include "common/base.h"

void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);                /* overflow ends too */
void *xreallocarray(void *p, size_t n, size_t size); /* likewise */
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
/* xset_text - a copy of text in place of *at, which is freed (NULL is fine);
 * text may be *at, or a part of it */
void xset_text(char **at, const char *text);
void *xmemdup(const void *p, size_t n); /* n may be 0: one byte is there */
char *xasprintf(const char *fmt, ...) PRINTF(1, 2);

#endif
