/*
 * metric.h - numbers that only grow, and those of now, for GET /metrics
 *
 * schema/metrics.txt lists the metrics; each has cells of 64 bits, at a place
 * that the list gives (enum metric_cell).  The front has them in memory that
 * the supervisor made and that outlives it (metric_adopt): what a scrape has
 * shown never falls while the supervisor lives, whoever else dies.  The
 * supervisor writes cells about processes into the same memory.  A worker has
 * cells of its own, and tells the front what was added to them.
 *
 * Any thread may add and observe: no lock, no memory, a few nanoseconds.
 */
#ifndef COMMON_METRIC_H
#define COMMON_METRIC_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/metric_list.h"

#define METRIC_UNKNOWN UINT64_MAX /* such a sample is left out */
#define METRIC_BOUNDS_MAX 20

enum metric_type {
	METRIC_COUNTER,
	METRIC_GAUGE,
	METRIC_HISTOGRAM
};

struct metric_label {
	const char *name;
	const char *const *values; /* NULL: the program knows them */
	unsigned int count;        /* of values, at most */
};

struct metric_family {
	const char *name;
	enum metric_type type;
	const char *unit; /* "": none; cells of "seconds" are microseconds */
	const char *help;
	unsigned int first; /* cell */
	unsigned int width; /* cells of one combination of labels */
	struct metric_label labels[2];
	unsigned int nlabels;
	const uint64_t *bounds_us; /* of a histogram, and as texts */
	const char *const *bounds;
	unsigned int nbounds;
	bool is_sparse; /* samples of 0 are left out */
};
/* metric_family_at - family number i */
const struct metric_family *metric_family_at(enum metric_number i);

/* metric_add - so much more, up to UINT64_MAX - 1; from then on it stays */
void metric_add(unsigned int cell, uint64_t n);
/* metric_set - a number of now */
void metric_set(unsigned int cell, uint64_t value);
/* metric_raise - a total that is kept elsewhere: what it is, or was */
void metric_raise(unsigned int cell, uint64_t total);
/* metric_since - one that is counted elsewhere since this process started: is
 * put on top of what there was then */
void metric_since(unsigned int cell, uint64_t count);
/* metric_observe - one more in the histogram; combination: of its labels.
 * Returns the bucket */
unsigned int metric_observe(
    enum metric_number family, unsigned int combination, uint64_t us);
uint64_t metric_get(unsigned int cell);
/* metric_began_ms - wall clock: since when the cells are counted */
int64_t metric_began_ms(void);

/* metric_make - memory for the cells, and use it; the descriptor is the
 * caller's, for metric_adopt elsewhere, or a negative ERR_* */
int metric_make(struct err *e) MUSTCHECK;
/* metric_adopt - use the cells of that memory, whose descriptor stays the
 * caller's; before anything is counted.  ERR_PROTO: they are of another
 * version, and those of this process stay in use */
int metric_adopt(int fd, struct err *e) MUSTCHECK;

/* metric_clear - all cells are 0 again, and this process's own: for tests */
void metric_clear(void);

/* metric_tenant_find - the place (below METRIC_TENANTS - 1) of the tenant with
 * this number; METRIC_TENANTS - 1: it has none.  hint: where it probably is */
unsigned int metric_tenant_find(uint64_t tenant, unsigned int hint);
/* metric_tenant - the same, and it gets one if there is one left */
unsigned int metric_tenant(uint64_t tenant, unsigned int hint);
/* metric_tenants_keep - of who is not marked the place is free */
void metric_tenants_keep(const bool is_used[METRIC_TENANTS]);

/* What a worker counted travels to its front as a list of entries: u32 cell,
 * u64 what was added to it.  The cells are those between METRIC_WORKERS_FIRST
 * and METRIC_WORKERS_END. */
#define METRIC_NEWS_ENTRY_BYTES 12
/* Of one cell at a time; more than a machine counts in a second. */
#define METRIC_NEWS_MAX (UINT64_C(1) << 44)

/* metric_news_write - appends what was added to this process's cells since
 * the last call; nothing when nothing was */
void metric_news_write(struct buf *b);
/* metric_news_take - adds it here, all or nothing; ERR_PROTO: a cell that is no
 * worker's, too large a number, or half an entry */
int metric_news_take(const uint8_t *p, size_t n, struct err *e) MUSTCHECK;

#endif
