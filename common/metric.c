#include "common/metric.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/metric_table.h"
#include "common/msg/wire.h"

/* What the supervisor and the front both have mapped. */
struct metric_area {
	uint64_t layout;
	int64_t began_ms;
	uint64_t tenants[METRIC_TENANTS - 1]; /* 0: the place is free */
	_Atomic uint64_t cells[METRIC_CELLS];
};

/* Until there is another: never in use by the front that a client sees. */
static struct metric_area own;
static struct metric_area *area = &own;
/* As they were when this process took them over. */
static uint64_t before[METRIC_CELLS];

const struct metric_family *
metric_family_at(enum metric_number i)
{
	return &metric_families[i];
}

/* ---- counting */

void
metric_add(unsigned int cell, uint64_t n)
{
	_Atomic uint64_t *c = &area->cells[cell];
	uint64_t was = atomic_fetch_add_explicit(c, n, memory_order_relaxed);

	/* Only what a worker makes up comes so far. */
	if (n >= METRIC_UNKNOWN || was > METRIC_UNKNOWN - 1 - n)
		atomic_store_explicit(
		    c, METRIC_UNKNOWN - 1, memory_order_relaxed);
}

void
metric_set(unsigned int cell, uint64_t value)
{
	atomic_store_explicit(&area->cells[cell], value, memory_order_relaxed);
}

void
metric_raise(unsigned int cell, uint64_t total)
{
	if (total > metric_get(cell))
		metric_set(cell, total);
}

void
metric_since(unsigned int cell, uint64_t count)
{
	metric_raise(cell, before[cell] + count);
}

unsigned int
metric_observe(enum metric_number family, unsigned int combination, uint64_t us)
{
	const struct metric_family *f = &metric_families[family];
	unsigned int at = f->first + combination * f->width, i = 0;

	while (i < f->nbounds && us > f->bounds_us[i])
		i++;
	metric_add(at + i, 1);
	metric_add(at + f->nbounds + 1, us);
	return i;
}

uint64_t
metric_get(unsigned int cell)
{
	return atomic_load_explicit(&area->cells[cell], memory_order_relaxed);
}

int64_t
metric_began_ms(void)
{
	if (area->began_ms == 0)
		area->began_ms = clock_wall_ms();
	return area->began_ms;
}

/* ---- the memory */

static int
make_file(struct err *e)
{
	int fd = fd_memfd("metrics", e);

	if (fd < 0)
		return fd;
	/* Nobody can take pages away from under who maps them. */
	if (ftruncate(fd, (off_t)sizeof(struct metric_area)) == -1 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ==
		-1) {
		(void)err_errno(e, "metrics");
		(void)close(fd);
		return e->code;
	}
	return fd;
}

static int
use_file(int fd, struct err *e)
{
	struct metric_area *a;
	struct stat st;

	if (fstat(fd, &st) == -1)
		return err_errno(e, "metrics");
	if (st.st_size != (off_t)sizeof(*a))
		return err_set(e, ERR_PROTO,
		    "metrics: of another version: restart the server");
	a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (a == MAP_FAILED)
		return err_errno(e, "metrics");
	if (a->layout != METRIC_LAYOUT && a->layout != 0) {
		(void)munmap(a, sizeof(*a));
		return err_set(e, ERR_PROTO,
		    "metrics: of another version: restart the server");
	}
	if (area != &own)
		(void)munmap(area, sizeof(*area));
	area = a;
	return 0;
}

int
metric_make(struct err *e)
{
	int fd = make_file(e);

	if (fd < 0)
		return fd;
	if (use_file(fd, e) != 0) {
		(void)close(fd);
		return e->code;
	}
	area->layout = METRIC_LAYOUT;
	area->began_ms = clock_wall_ms();
	return fd;
}

int
metric_adopt(int fd, struct err *e)
{
	if (use_file(fd, e) != 0)
		return e->code;
	for (unsigned int i = 0; i < METRIC_CELLS; i++)
		before[i] = metric_get(i);
	return 0;
}

void
metric_clear(void)
{
	if (area != &own)
		(void)munmap(area, sizeof(*area));
	area = &own;
	memset(&own, 0, sizeof(own));
	memset(before, 0, sizeof(before));
}

/* ---- tenants */

static void
forget_place(unsigned int place)
{
	for (unsigned int i = 0; i < METRIC_FAMILIES; i++) {
		const struct metric_family *f = &metric_families[i];
		unsigned int n = f->width;

		if (f->nlabels == 0 || strcmp(f->labels[0].name, "tenant") != 0)
			continue;
		if (f->nlabels > 1)
			n *= f->labels[1].count;
		for (unsigned int k = 0; k < n; k++) {
			before[f->first + place * n + k] = 0;
			metric_set(f->first + place * n + k, 0);
		}
	}
}

unsigned int
metric_tenant_find(uint64_t tenant, unsigned int hint)
{
	const unsigned int n = METRIC_TENANTS - 1;

	if (hint < n && area->tenants[hint] == tenant)
		return hint;
	for (unsigned int i = 0; i < n; i++)
		if (area->tenants[i] == tenant)
			return i;
	return n;
}

unsigned int
metric_tenant(uint64_t tenant, unsigned int hint)
{
	const unsigned int n = METRIC_TENANTS - 1;
	unsigned int at = metric_tenant_find(tenant, hint);

	if (at < n)
		return at;
	for (unsigned int i = 0; i < n; i++)
		if (area->tenants[i] == 0) {
			area->tenants[i] = tenant;
			forget_place(i);
			return i;
		}
	return n;
}

void
metric_tenants_keep(const bool is_used[METRIC_TENANTS])
{
	for (unsigned int i = 0; i < METRIC_TENANTS - 1; i++)
		if (!is_used[i])
			area->tenants[i] = 0;
}

/* ---- what a worker counted, for its front */

#define NEWS_CELLS (METRIC_WORKERS_END - METRIC_WORKERS_FIRST)

static uint64_t told[NEWS_CELLS];

void
metric_news_write(struct buf *b)
{
	for (unsigned int i = 0; i < NEWS_CELLS; i++) {
		uint64_t now = metric_get(METRIC_WORKERS_FIRST + i);
		uint64_t more = now - told[i];

		if (more == 0)
			continue;
		if (more > METRIC_NEWS_MAX)
			more = METRIC_NEWS_MAX;
		told[i] += more;
		wire_put_u32(b, METRIC_WORKERS_FIRST + i);
		wire_put_u64(b, more);
	}
}

static int
check_news(const uint8_t *p, size_t n, struct err *e)
{
	struct wire_in in;

	if (n % METRIC_NEWS_ENTRY_BYTES != 0)
		return err_set(e, ERR_PROTO, "%zu bytes of additions", n);
	wire_in_init(&in, p, n);
	while (in.left > 0) {
		uint32_t cell = wire_get_u32(&in);
		uint64_t more = wire_get_u64(&in);

		if (cell < METRIC_WORKERS_FIRST || cell >= METRIC_WORKERS_END ||
		    more > METRIC_NEWS_MAX)
			return err_set(e, ERR_PROTO,
			    "an addition of %llu to cell %u",
			    (unsigned long long)more, cell);
	}
	return 0;
}

int
metric_news_take(const uint8_t *p, size_t n, struct err *e)
{
	struct wire_in in;

	if (check_news(p, n, e) != 0)
		return e->code;
	wire_in_init(&in, p, n);
	while (in.left > 0) {
		uint32_t cell = wire_get_u32(&in);

		metric_add(cell, wire_get_u64(&in));
	}
	return 0;
}
