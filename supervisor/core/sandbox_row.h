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

/* sandbox_row_explain - why it goes, if it goes, for its events: as what
 * happened says, and why (may be NULL) in words; the first that was said stays.
 * sandbox_row_explain_by: it is not wanted for this reason */
void sandbox_row_explain(struct store_sandbox *row, enum sandbox_state to,
    enum sandbox_happening what, const struct err *why);
void sandbox_row_explain_by(struct store_sandbox *row, const char *reason);

#endif
