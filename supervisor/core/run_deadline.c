#include "supervisor/core/run_deadline.h"

#include "common/clock.h"
#include "common/conf.h"
#include "supervisor/core/run_row.h"

#define FILES_MS 600000

void
run_deadline_set(struct run_deadline *d, const struct store_run *row,
    const struct conf *conf)
{
	uint64_t at =
	    clock_mono_ms() + (uint64_t)conf_int(conf, CONF_RUN_GRACE_MS);

	if (d->at_ms == 0)
		at += run_row_limits_ms(row);
	if (at > d->at_ms)
		d->at_ms = at;
}

void
run_deadline_files(struct run_deadline *d)
{
	if (d->at_ms == 0 || d->is_for_files)
		return;
	d->is_for_files = true;
	d->at_ms = clock_mono_ms() + FILES_MS;
}

bool
run_deadline_is_over(const struct run_deadline *d, uint64_t now_ms)
{
	return d->at_ms != 0 && d->at_ms <= now_ms;
}
