/* view.h - a run as JSON: for results of tools and for the status */
#ifndef TOOLS_VIEW_H
#define TOOLS_VIEW_H

#include <jansson.h>

#include "common/base.h"
#include "supervisor/core/log_digest.h"
#include "supervisor/core/sched.h"
#include "supervisor/store/store.h"

/* view_run - d is the digest of its log.  waits: why it is still queued */
json_t *view_run(const struct store_run *row, const struct log_digest *d,
    enum sched_wait waits);
/* view_merged - both outputs as they came, up to the digest's cap */
json_t *view_merged(const struct log_digest *d);
json_t *view_time(int64_t wall_ms); /* null for 0 */

#endif
