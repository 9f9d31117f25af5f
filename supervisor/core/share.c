#include "supervisor/core/share.h"

#include "common/conf.h"
#include "supervisor/core/quota_use.h"

#define NANO 1000000000u
#define MIB UINT64_C(1048576)
/* The kernel's least quota is a hundredth of a processor. */
#define NANO_MIN 10000000u
/* Busy after three ticks at work, until as many at rest as were at work, and
 * at most 25: five seconds. */
#define WORK_BUSY 3
#define WORK_MAX 25

void
share_begin(struct share_held *h, uint32_t cpu_shares)
{
	*h = (struct share_held){
	    .told = {.cpu_shares = cpu_shares}, .is_known = cpu_shares != 0};
}

void
share_tick(struct share_held *h, struct quota_use *u, bool is_at_work)
{
	if (is_at_work && h->work < WORK_MAX)
		h->work++;
	else if (!is_at_work && h->work > 0)
		h->work--;
	if (h->work >= WORK_BUSY)
		h->is_busy = true;
	else if (h->work == 0)
		h->is_busy = false;
	if (h->is_busy)
		quota_use_add_busy(u);
}

/* Half of two by time would leave none free at times: by number it does. */
static void
put_processors(struct share *s, const struct quota_use *u, uint64_t percent)
{
	unsigned int all = quota_use_processors(u);
	unsigned int cpus = (unsigned int)(all * percent / 100);

	if (all < 2)
		return;
	s->cpus = cpus == 0 ? 1 : cpus;
	s->first_cpu = u->place * s->cpus % all;
}

static void
put_bounds(struct share *s, const struct quota_use *u, const struct conf *conf,
    uint64_t own_nano_cpus)
{
	uint64_t percent = (uint64_t)conf_int(conf, CONF_CROWDED_CPU_PERCENT);
	uint64_t mib = (uint64_t)conf_int(conf, CONF_CROWDED_OUTPUT_MB_S);
	uint64_t all = (uint64_t)quota_use_processors(u) * NANO;

	if (percent < 100) {
		s->nano_cpus =
		    quota_use_divide(all / 100 * percent, u->busy, NANO_MIN);
		put_processors(s, u, percent);
	}
	if (s->nano_cpus >= own_nano_cpus)
		s->nano_cpus = 0;
	if (mib != 0)
		s->output_bytes_s = quota_use_divide(mib * MIB, u->busy, MIB);
}

static bool
is_same(const struct share *a, const struct share *b)
{
	return a->cpu_shares == b->cpu_shares && a->nano_cpus == b->nano_cpus &&
	    a->first_cpu == b->first_cpu && a->cpus == b->cpus &&
	    a->output_bytes_s == b->output_bytes_s;
}

bool
share_is_due(struct share_held *h, const struct quota_use *u,
    const struct conf *conf, uint64_t own_nano_cpus, struct share *out)
{
	struct share s = {.cpu_shares = quota_use_cpu_shares(u)};

	if (h->is_busy && quota_use_is_crowded(u))
		put_bounds(&s, u, conf, own_nano_cpus);
	if (h->is_known && is_same(&s, &h->told))
		return false;
	h->told = s;
	h->is_known = true;
	*out = s;
	return true;
}
