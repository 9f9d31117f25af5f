#include "supervisor/core/sweeper.h"

#include "common/clock.h"
#include "common/conf.h"
#include "common/log.h"
#include "supervisor/core/census.h"
#include "supervisor/core/fleet.h"
#include "supervisor/core/sandbox.h"

#define FIRST_MS 5000
#define EVERY_MS 30000
#define CENSUS_AGAIN_MS 1000

struct sweep_list {
	struct ipc_chan *chan;
	struct buf uuids;
};

static void
list_flush(struct sweep_list *l)
{
	msg_send_sweep(l->chan,
	    &(struct msg_sweep){
		.uuids = {buf_data(&l->uuids), buf_len(&l->uuids)}});
	buf_consume(&l->uuids, buf_len(&l->uuids));
}

static void
list_add(struct sweep_list *l, const struct sandbox *sb)
{
	if (sb->state == SANDBOX_GONE)
		return;
	if (buf_len(&l->uuids) + sizeof(sb->row.uuid.b) > MSG_SWEEP_UUIDS_MAX)
		list_flush(l);
	(void)!buf_append(&l->uuids, sb->row.uuid.b, sizeof(sb->row.uuid.b));
}

static bool
sweeper_send(const struct sweeper *s)
{
	struct sweep_list l = {.chan = fleet_sweeper_chan(s->fleet)};
	const struct sandbox *sb = NULL;

	if (l.chan == NULL)
		return false;
	buf_init(&l.uuids, MSG_SWEEP_UUIDS_MAX);
	while ((sb = sandboxes_next(s->sandboxes, sb)) != NULL)
		list_add(&l, sb);
	list_flush(&l);
	buf_clear(&l.uuids);
	msg_send_sweep_end(l.chan,
	    &(struct msg_sweep_end){.asof_wall_ms = clock_wall_ms(),
		.keep_ms = conf_int(s->conf, CONF_UNKNOWN_KEEP_SECONDS) * 1000,
		.only_look = !census_is_settled(s->census)});
	return true;
}

void
sweeper_begin(struct sweeper *s)
{
	if (census_is_settled(s->census))
		s->next_ms = clock_mono_ms() + FIRST_MS;
}

void
sweeper_ask(struct sweeper *s)
{
	if (!census_is_settled(s->census) && sweeper_send(s))
		s->next_ms = clock_mono_ms() + EVERY_MS;
}

void
sweeper_on_swept(struct sweeper *s, const struct msg_swept *m)
{
	if (m->is_known)
		s->containers =
		    m->found > m->removed ? m->found - m->removed : 0;
	if (!census_is_settled(s->census))
		s->next_ms = clock_mono_ms() +
		    (census_on_swept(s->census, m) ? FIRST_MS :
						     CENSUS_AGAIN_MS);
	if (m->removed > 0)
		log_info("sweep: %u objects on the engine, %u leftovers "
			 "removed",
		    m->found, m->removed);
}

void
sweeper_tick(struct sweeper *s, uint64_t now_ms)
{
	if (now_ms < s->next_ms)
		return;
	(void)sweeper_send(s);
	s->next_ms = now_ms + EVERY_MS;
}
