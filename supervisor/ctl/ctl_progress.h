/* ctl_progress.h - how far long work has come, for a person who waits */
#ifndef CTL_PROGRESS_H
#define CTL_PROGRESS_H

#include "common/base.h"

/* ctl_progress_tell - a line on standard error, when that is a terminal, a few
 * times a second at most; all 0: not known */
void ctl_progress_tell(const char *what, uint64_t done, uint64_t all);
void ctl_progress_end(void); /* the line goes */

#endif
