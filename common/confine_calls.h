/*
 * confine_calls.h - the system calls that front and workers may make, by
 * purpose, and those whose attempt is no accident
 *
 * By name, since numbers differ between machines and libseccomp knows names
 * that the headers of an older system lack; a name that is unknown here is
 * passed over.  Lists end with NULL.
 *
 * Generous in what only concerns the process itself: libc, libcurl, OpenSSL
 * and SQLite use other calls on other machines and in other versions.  What is
 * in no list fails with ENOSYS, as on an older kernel, for which they all have
 * a way (decision 23).
 */
#ifndef COMMON_CONFINE_CALLS_H
#define COMMON_CONFINE_CALLS_H

extern const char *const confine_calls_self[];   /* memory, threads, time */
extern const char *const confine_calls_files[];  /* by Landlock and by mode */
extern const char *const confine_calls_events[]; /* waiting, pipes, eventfd */
extern const char *const confine_calls_socket[]; /* on one that is there */
extern const char *const confine_calls_worker[]; /* the link, the engine */
/* Never: with EPERM instead of ENOSYS. */
extern const char *const confine_calls_refused[];
extern const char *const confine_calls_exec[];

#endif
