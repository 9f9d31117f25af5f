#include "supervisor/core/sandbox_save.h"

#include "common/log.h"
#include "common/timer.h"

#define AGAIN_MS 2000

static void
again_cb(void *arg)
{
	struct sandbox_save *s = arg;

	if (s->is_behind)
		sandbox_save_put(s);
}

void
sandbox_save_init(struct sandbox_save *s, struct event_base *base,
    struct store *store, const struct store_sandbox *row,
    const struct sandbox_save_ops *ops, void *arg)
{
	*s = (struct sandbox_save){
	    .base = base, .store = store, .row = row, .ops = ops, .arg = arg};
}

void
sandbox_save_clear(struct sandbox_save *s)
{
	timer_free(s->again);
	s->again = NULL;
}

void
sandbox_save_restored(struct sandbox_save *s)
{
	s->is_recorded = true;
	s->expires_ms = s->row->expires_ms;
}

static void
failed(struct sandbox_save *s, const struct err *why)
{
	static struct log_limit limit;
	struct err e = *why;

	log_warn_limited(&limit, "sandbox %s: its row is not on disk: %s",
	    s->row->name, why->msg);
	if (!s->is_recorded && s->nwrites == 1) {
		(void)err_wrap(&e, "the sandbox could not be recorded");
		s->ops->on_refused(&e, s->arg);
		return;
	}
	s->is_behind = true;
	if (s->again == NULL)
		s->again = timer_new(s->base, again_cb, s);
	timer_set_ms(s->again, AGAIN_MS);
}

static void
put_cb(int rc, const struct err *why, void *arg)
{
	struct sandbox_save *s = arg;

	if (rc == 0)
		s->is_recorded = true;
	if (rc != 0)
		failed(s, why);
	else if (s->nwrites == 1)
		s->is_behind = false;
	if (--s->nwrites == 0)
		s->ops->on_rest(s->arg);
}

void
sandbox_save_put(struct sandbox_save *s)
{
	s->expires_ms = s->row->expires_ms;
	s->nwrites++;
	store_sandbox_put(s->store, s->row, put_cb, s);
}

bool
sandbox_save_is_known(const struct sandbox_save *s)
{
	return s->is_recorded || s->nwrites > 0;
}

bool
sandbox_save_is_over(const struct sandbox_save *s)
{
	return s->nwrites == 0 && !s->is_behind;
}
