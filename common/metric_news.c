#include "common/metric_news.h"

#include "common/msg/wire.h"

#define CELLS (METRIC_WORKERS_END - METRIC_WORKERS_FIRST)

static uint64_t told[CELLS];

void
metric_news_write(struct buf *b)
{
	for (unsigned int i = 0; i < CELLS; i++) {
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
