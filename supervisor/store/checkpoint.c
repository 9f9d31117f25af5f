#include "supervisor/store/checkpoint.h"

void
checkpoint_init(struct checkpoint *c, uint64_t now_ms)
{
	*c = (struct checkpoint){
	    .dirty = true, .since_ms = now_ms, .last_write_ms = now_ms};
}

void
checkpoint_on_write(struct checkpoint *c, uint64_t now_ms)
{
	if (!c->dirty)
		c->since_ms = now_ms;
	c->dirty = true;
	c->last_write_ms = now_ms;
}

void
checkpoint_on_done(struct checkpoint *c, enum checkpoint_kind kind)
{
	c->not_before_ms = 0;
	if (kind == CHECKPOINT_TRUNCATE)
		c->dirty = false;
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
	uint64_t at = c->last_write_ms + CHECKPOINT_IDLE_MS;

	if (!c->dirty)
		return CHECKPOINT_NEVER;
	if (at > c->since_ms + CHECKPOINT_AGE_MS)
		at = c->since_ms + CHECKPOINT_AGE_MS;
	*kind = CHECKPOINT_TRUNCATE;
	if (at > now_ms && wal_bytes >= CHECKPOINT_WAL_BYTES) {
		*kind = CHECKPOINT_REUSE;
		at = now_ms;
	}
	if (at < c->not_before_ms)
		at = c->not_before_ms;
	return at > now_ms ? at - now_ms : 0;
}

uint64_t
checkpoint_room(uint64_t wal_bytes, uint64_t size)
{
	uint64_t most = CHECKPOINT_WAL_BYTES + CHECKPOINT_ROOM_MORE;
	uint64_t more = wal_bytes + CHECKPOINT_ROOM_MORE;

	if (size >= wal_bytes + CHECKPOINT_ROOM_MIN)
		return 0;
	if (more > CHECKPOINT_ROOM_STEP)
		more = CHECKPOINT_ROOM_STEP;
	return wal_bytes + more < most ? wal_bytes + more : most;
}
