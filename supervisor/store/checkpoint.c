#include "supervisor/store/checkpoint.h"

void
checkpoint_init(struct checkpoint *c, uint64_t now_ms)
{
	*c = (struct checkpoint){.has_frames = true,
	    .has_new_frames = true,
	    .since_ms = now_ms,
	    .last_write_ms = now_ms};
}

void
checkpoint_on_write(struct checkpoint *c, uint64_t now_ms)
{
	if (!c->has_frames)
		c->since_ms = now_ms;
	c->has_frames = true;
	c->has_new_frames = true;
	c->last_write_ms = now_ms;
}

void
checkpoint_hurry(struct checkpoint *c)
{
	c->is_hurried = c->has_frames;
}

void
checkpoint_on_done(struct checkpoint *c, enum checkpoint_kind kind)
{
	c->not_before_ms = 0;
	c->has_new_frames = false;
	if (kind == CHECKPOINT_TRUNCATE) {
		c->has_frames = false;
		c->is_hurried = false;
	}
}

void
checkpoint_on_failure(struct checkpoint *c, uint64_t now_ms)
{
	c->not_before_ms = now_ms + CHECKPOINT_RETRY_MS;
}

uint64_t
checkpoint_wait_ms(const struct checkpoint *c, uint64_t wal_bytes,
    uint64_t now_ms, enum checkpoint_kind *kind)
{
	uint64_t at =
	    c->is_hurried ? now_ms : c->since_ms + CHECKPOINT_TRUNCATE_MS;
	uint64_t reuse_at = wal_bytes >= CHECKPOINT_WAL_BYTES ?
	    now_ms :
	    c->last_write_ms + CHECKPOINT_IDLE_MS;

	if (!c->has_frames)
		return CHECKPOINT_NEVER;
	*kind = CHECKPOINT_TRUNCATE;
	if (c->has_new_frames && at > now_ms && at > reuse_at) {
		*kind = CHECKPOINT_REUSE;
		at = reuse_at;
	}
	if (at < c->not_before_ms)
		at = c->not_before_ms;
	return at > now_ms ? at - now_ms : 0;
}
