/*
 * usage.h - what tenants used, by day
 *
 * Runs and sandboxes are counted by the writes that end and begin them
 * (tally.h, schema/sql), so the days are exact whatever kills the server.
 */
#ifndef STORE_USAGE_H
#define STORE_USAGE_H

#include "supervisor/store/store.h"

#define STORE_DAY_MS INT64_C(86400000)
#define STORE_DAYS_MAX 400 /* that are kept */

/* store_day_of - the day of UTC, since 1970 */
static inline uint32_t
store_day_of(int64_t wall_ms)
{
	return wall_ms < 0 ? 0 : (uint32_t)(wall_ms / STORE_DAY_MS);
}
/* store_day_share - how much of the time between the two is of that day */
static inline uint64_t
store_day_share(int64_t from_ms, int64_t to_ms, uint32_t day)
{
	int64_t begin = day * STORE_DAY_MS, end = begin + STORE_DAY_MS;

	from_ms = from_ms > begin ? from_ms : begin;
	to_ms = to_ms < end ? to_ms : end;
	return to_ms > from_ms ? (uint64_t)(to_ms - from_ms) : 0;
}

/* The newest first; freed after done returns. */
struct store_days {
	struct store_day *rows;
	size_t n;
};
typedef void (*store_days_cb)(
    int rc, const struct store_days *days, const struct err *why, void *arg);
/* store_usage_read - those of one tenant from the day on */
void store_usage_read(struct store *s, struct tenant_id tenant, uint32_t from,
    store_days_cb done, void *arg);
/* store_usage_of_day - of all tenants, at most one row each; before the loop
 * runs.  The caller frees out->rows. */
int store_usage_of_day(struct store *s, uint32_t day, struct store_days *out,
    struct err *e) MUSTCHECK;
/* store_usage_add - the numbers of row are added to those of its day */
void store_usage_add(struct store *s, const struct store_day *row);
/* store_usage_forget - what is older than STORE_DAYS_MAX days */
void store_usage_forget(struct store *s, uint32_t today);

#endif
