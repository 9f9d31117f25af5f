/*
 * raw.h - system calls that touch no memory of libc's
 *
 * Between clone and exec a command shares its keeper's memory, errno included,
 * while the keeper goes on.
 */
#ifndef AGENT_RAW_H
#define AGENT_RAW_H

#include <sys/syscall.h>

/* raw_call - the result, or an errno below 0; another processor needs
 * its few lines here */
#if defined(__x86_64__)
static inline long
raw_call(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
static inline long
raw_call(long number, long a, long b, long c, long d)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3)
			 : "memory");
	return x0;
}
#else
#error "raw_call: no system call instruction known for this processor"
#endif

#define RAW(number, a, b, c, d)                                                \
	raw_call((number), (long)(a), (long)(b), (long)(c), (long)(d))

#endif
