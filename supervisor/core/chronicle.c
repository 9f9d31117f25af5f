#include "supervisor/core/chronicle.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/conf.h"
#include "common/log.h"
#include "supervisor/core/run.h"

static const char *
or_none(const char *text)
{
	return text[0] == '\0' ? NULL : text;
}

static void
tell_end(const struct store_run *row)
{
	char id[UUID_TEXT_LEN + 1], duration[24], tenant[24];
	int64_t from = row->started_ms != 0 ? row->started_ms : row->ended_ms;
	const struct log_field fields[] = {
	    {"run", id},
	    {"sandbox", row->identifier},
	    {"tenant", tenant},
	    {"tool", row->tool},
	    {"state", run_state_word(row->state)},
	    {"end_reason", runlog_reason_word(row->end_reason)},
	    {"duration_ms", duration},
	    {"request", or_none(row->request_id)},
	    {"principal", or_none(row->principal)},
	    {"trace", or_none(row->trace)},
	    {"span", or_none(row->span)},
	    {"parent_span", or_none(row->parent_span)},
	};

	uuid_format(&row->uuid, id);
	(void)snprintf(tenant, sizeof(tenant), "%" PRIu64, row->tenant);
	(void)snprintf(
	    duration, sizeof(duration), "%" PRId64, row->ended_ms - from);
	log_event(LOG_INFO, "run ended", fields, ARRAY_LEN(fields));
}

static void
chronicle_on(const struct bus_event *ev, void *arg)
{
	const struct chronicle *c = arg;

	if (ev->kind == BUS_RUN_ENDED && conf_bool(c->conf, CONF_LOG_RUNS))
		tell_end(&ev->run->row);
}

void
chronicle_init(struct chronicle *c, struct bus *bus, const struct conf *conf)
{
	*c = (struct chronicle){.conf = conf};
	bus_join(bus, &c->member, chronicle_on, c);
}

void
chronicle_clear(struct chronicle *c, struct bus *bus)
{
	bus_leave(bus, &c->member);
}
