#include "supervisor/master/role.h"

#include "common/log.h"
#include "common/timer.h"

static void
over_cb(void *arg)
{
	struct role *r = arg;

	log_info("%s: no longer throttled", r->name);
	r->on_over(r, r->arg);
}

void
role_init(struct role *r, struct event_base *base, const char *name,
    const struct restart_policy *policy, role_cb on_over, void *arg)
{
	*r = (struct role){
	    .name = name, .policy = policy, .on_over = on_over, .arg = arg};
	r->timer = timer_new(base, over_cb, r);
}

void
role_clear(struct role *r)
{
	timer_free(r->timer);
	r->timer = NULL;
}

bool
role_is_throttled(const struct role *r)
{
	return timer_is_set(r->timer);
}

void
role_forget(struct role *r)
{
	timer_stop(r->timer);
}

bool
role_died(struct role *r, uint64_t now_ms)
{
	uint32_t ms = restart_burst_add(r->policy, &r->burst, now_ms);

	if (ms == 0 || role_is_throttled(r))
		return false;
	log_error("%s: more than %u deaths in %u s: throttled for %u s",
	    r->name, r->policy->burst, r->policy->window_ms / 1000, ms / 1000);
	r->until_ms = now_ms + ms;
	timer_set_ms(r->timer, ms);
	return true;
}
