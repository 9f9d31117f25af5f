/* conf_near.h - names that are no keys, and what may be meant by them */
#ifndef COMMON_CONF_NEAR_H
#define COMMON_CONF_NEAR_H

#include "common/base.h"

/* conf_nearest - that of the keys which differs least, by at most two
 * characters typed, left out or changed; else the shortest of those that begin
 * with the name, where that is more than a word: a key cut short.  NULL: none,
 * or the name is a key, or short */
const char *conf_nearest(
    const char *name, const char *(*key_at)(size_t i), size_t nkeys);
/* conf_is_foreign - a setting that the compatible server has and this one has
 * no use for: so that its files can be read */
bool conf_is_foreign(const char *name);

#endif
