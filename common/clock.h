/* clock.h - the time, replaceable in tests by the linker's --wrap. */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include "common/base.h"

uint64_t clock_mono_ms(void); /* CLOCK_MONOTONIC */
uint64_t clock_mono_us(void);
int64_t clock_wall_ms(void); /* CLOCK_REALTIME, since 1970 */
int64_t clock_wall_us(void);

#define CLOCK_TEXT_MAX 32
/* clock_format - RFC 3339 in UTC with milliseconds: 2026-11-20T19:00:00.123Z */
void clock_format(int64_t wall_ms, char out[CLOCK_TEXT_MAX]);

#endif
