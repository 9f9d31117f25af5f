/*
 * record.h - what is recorded of a run, as JSON, without its output
 *
 * All members are there, null where there is nothing to say, so that who reads
 * them needs not ask which version made them.
 */
#ifndef TOOLS_RECORD_H
#define TOOLS_RECORD_H

#include <jansson.h>

#include "supervisor/core/sched.h"
#include "supervisor/store/history.h"
#include "supervisor/store/store.h"

struct core;

/* record_view - all of it, with its commands; what was asked for is cut as in
 * view.h when it is long */
json_t *record_view(const struct store_run *row, enum sched_wait waits);
/* record_for_model - the same without whence it was asked for */
json_t *record_for_model(const struct store_run *row, enum sched_wait waits);
/* record_options - with which it was run, as run_sandbox has them; null when
 * they are not known */
json_t *record_options(uint32_t options);
/* record_add - to a view of a run: what it came to, and who asked for it; what
 * is not known is left out */
void record_add(json_t *o, const struct store_run *row);
/* record_line - one of a list; the database does not hear that a run began,
 * so core says how it stands */
json_t *record_line(const struct core *core, struct tenant_id tenant,
    const struct history_line *line);
/* record_state - how it stands now */
enum run_state record_state(const struct core *core, struct tenant_id tenant,
    const struct history_line *line);
/* record_states_on_disk - what the database may call runs of these states,
 * 1 << state, OR-ed */
uint32_t record_states_on_disk(uint32_t states);
/* record_count - how many runs of the states wanted, which are of those that
 * have not ended, are in a list that q asks for, of all its pages */
uint64_t record_count(const struct core *core, struct tenant_id tenant,
    const struct history_query *q, uint32_t states);

#endif
