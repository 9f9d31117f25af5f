/*
 * remnant_scan.h - what /proc says of one process that was left behind
 */
#ifndef AGENT_REMNANT_SCAN_H
#define AGENT_REMNANT_SCAN_H

#include <sys/types.h>

#include "common/base.h"

/* remnant_is_alive - false: it is gone, or dead and not reaped; *start, in
 * the kernel's ticks, tells it from another one of this number */
bool remnant_is_alive(pid_t pid, uint64_t *start);
/* remnant_parse_stat - the same from the text of its stat file */
bool remnant_parse_stat(const char *text, uint64_t *start);
/* remnant_read_text - its command line in printable UTF-8, or its name in
 * brackets where that is empty; cut to size bytes with the NUL */
void remnant_read_text(pid_t pid, char *out, size_t size);
/* remnant_make_printable - n bytes of text, whose NULs are the ends of
 * arguments, into out of size bytes */
void remnant_make_printable(const char *text, size_t n, char *out, size_t size);
/* remnant_kill - it and all below it, if it is still that one; waits a moment
 * until it is dead.  How many there were. */
size_t remnant_kill(pid_t pid, uint64_t start);

#endif
