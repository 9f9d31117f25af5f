/* home.h - the sandbox in which a run is to be */
#ifndef TOOLS_HOME_H
#define TOOLS_HOME_H

#include "common/base.h"
#include "common/err.h"
#include "common/principal.h"

struct core;
struct sandbox;

/*
 * home_find_or_open - that of this identifier, made when there is none, if who
 * may have one run more; see core_admit_run
 *
 *	ttl_s	of a new one, and of one that is there from now on; 0: the
 *		default, and as it is
 */
int home_find_or_open(struct core *core, struct principal *who,
    const char *identifier, uint32_t ttl_s, struct sandbox **out, bool *is_new,
    struct err *e) MUSTCHECK;

#endif
