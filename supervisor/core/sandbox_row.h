/* sandbox_row.h - the row of a new sandbox */
#ifndef CORE_SANDBOX_ROW_H
#define CORE_SANDBOX_ROW_H

#include "common/base.h"
#include "supervisor/core/sandbox.h"

struct conf;
struct quota_uses;

/* sandbox_row_init - as it begins: a fresh UUID, the container's name, and the
 * configured limits, cut to its tenant's; all but the time until which it is
 * kept */
void sandbox_row_init(struct store_sandbox *row, const struct sandbox_wish *w,
    uint64_t id, uint32_t generation, const struct conf *conf,
    struct quota_uses *uses);
/* sandbox_row_limits - only those: of row's tenant */
void sandbox_row_limits(struct store_sandbox *row, const struct conf *conf,
    struct quota_uses *uses);

#endif
