/* code_wish.h - what execute_code runs: a file with the code, and the
 * language's words */
#ifndef TOOLS_CODE_WISH_H
#define TOOLS_CODE_WISH_H

#include "common/base.h"
#include "common/conf.h"
#include "supervisor/core/run_wish.h"
#include "supervisor/tools/languages.h"

#define CODE_MAX (1u << 20)
#define CODE_KEPT_MAX 16384 /* of it in the history */

/* code_wish - run_wish_clear it; who asks and the options are the caller's to
 * set */
void code_wish(const struct conf *conf, const struct language *l,
    const struct span *code, struct run_wish *w);

#endif
