/* base.h - the few definitions that every file may use. */
#ifndef COMMON_BASE_H
#define COMMON_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AUTO(fn) __attribute__((cleanup(fn)))
#define MUSTCHECK __attribute__((warn_unused_result))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define NORETURN __attribute__((noreturn))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
/* The struct of this type whose member p points to; p must not be NULL.  As
 * strchr, it gives a pointer to write through whatever it was given: name a
 * const type where that is meant. */
#define CONTAINER_OF(p, type, member)                                          \
	((type *)((uintptr_t)(p)-offsetof(type, member)))

/* Bytes that belong to somebody else. */
struct span {
	const uint8_t *p;
	size_t n;
};

/* For char *, uint8_t * and the like: AUTO(auto_free) char *s = NULL; */
static inline void
auto_free(void *pp)
{
	void *p;

	memcpy(&p, pp, sizeof(p));
	free(p);
}

/* For descriptors: AUTO(auto_close) int fd = -1; */
static inline void
auto_close(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

#endif
