/*
 * rows_pack.h - what a row points to, in one block: for rows_gen.c
 *
 * Texts and bytes follow each other; a list begins where malloc could begin
 * it.
 */
#ifndef STORE_ROWS_PACK_H
#define STORE_ROWS_PACK_H

#include <stdalign.h>

#include "common/base.h"

#define PACK_ALIGN alignof(max_align_t)

static inline size_t
text_space(const char *text)
{
	return text == NULL ? 1 : strlen(text) + 1;
}

static inline size_t
list_space(uint32_t n, size_t size)
{
	return n * size + PACK_ALIGN - 1;
}

static inline uint8_t *
pack_bytes(uint8_t **at, const void *p, size_t n)
{
	uint8_t *to = *at;

	memcpy(to, p, n);
	*at += n;
	return to;
}

static inline char *
pack_text(uint8_t **at, const char *text)
{
	char *to = (char *)*at;

	*at = (uint8_t *)stpcpy(to, text == NULL ? "" : text) + 1;
	return to;
}

static inline void *
pack_list(uint8_t **at, uint32_t n, size_t size)
{
	void *to;

	*at += -(uintptr_t)*at & (PACK_ALIGN - 1);
	to = *at;
	*at += n * size;
	return to;
}

#endif
