/*
 * runtimes.h - the engine's runtimes, by name
 *
 * A list of them is one text, with a blank around each name: " runc runsc ".
 */
#ifndef COMMON_RUNTIMES_H
#define COMMON_RUNTIMES_H

#include "common/base.h"
#include "common/err.h"

#define RUNTIMES_NAME_MAX 64
#define RUNTIMES_LIST_MAX 1024

/* runtimes_have - is name in such a list?  true for "" */
bool runtimes_have(const char *list, const char *name);
/* runtimes_add - name to a list; one that would be no single word of a list,
 * or has no room there, is left out */
void runtimes_add(char list[RUNTIMES_LIST_MAX], const char *name);
/* runtimes_check - ERR_POLICY with what there is instead, for clients; 0 also
 * where the list is empty: the engine does not say what it has */
int runtimes_check(const char *list, const char *name, struct err *e) MUSTCHECK;

enum runtimes_kind {
	RUNTIMES_UNKNOWN,
	RUNTIMES_NAMESPACES, /* runc, crun: the host's kernel */
	RUNTIMES_GVISOR,     /* a kernel that is a program */
	RUNTIMES_MACHINE     /* a virtual machine */
};
/* runtimes_kind - as far as the name, or that of its program, tells; program
 * may be "" */
enum runtimes_kind runtimes_kind(const char *name, const char *program);
/* runtimes_brings_kernel - by its name: no socket of this host is in its
 * sandboxes */
bool runtimes_brings_kernel(const char *name);
/* runtimes_isolates - what stands between a sandbox and the host, in words */
const char *runtimes_isolates(enum runtimes_kind kind);

#endif
