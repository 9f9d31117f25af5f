#include "supervisor/core/census.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/core/fleet.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/core/tenants.h"

#define CENSUS_MAX 4096 /* looked at; further ones are left to the sweep */
#define FIRST_MS 5000
#define EVERY_MS 30000
#define CENSUS_AGAIN_MS 1000

/* A sandbox that the database does not know. */
struct stranger {
	struct store_sandbox row; /* as far as its labels say */
	char *tenant;
	bool running;
};

struct census {
	struct census_parts parts;
	bool is_settled;
	bool is_refused;
	struct stranger *strangers;
	size_t n;
	uint64_t next_ms;  /* when the backend is swept */
	bool sweeps_again; /* soon after that */
	uint64_t containers;
};

/* An ended one of which something is left: until the database has said. */
struct leftover {
	struct census *census;
	struct uuid uuid;
	char *name;
	char *tenant;
};

static void
forget_strangers(struct census *c)
{
	for (size_t i = 0; i < c->n; i++) {
		store_sandbox_clear(&c->strangers[i].row);
		free(c->strangers[i].tenant);
	}
	free(c->strangers);
	c->strangers = NULL;
	c->n = 0;
}

struct census *
census_new(const struct census_parts *parts)
{
	struct census *c = xcalloc(1, sizeof(*c));

	c->parts = *parts;
	c->containers = CENSUS_UNKNOWN;
	return c;
}

void
census_free(struct census *c)
{
	if (c == NULL)
		return;
	forget_strangers(c);
	free(c);
}

int
census_open(struct census *c, struct err *e)
{
	char id[STORE_INSTANCE_MAX + 1];

	if (store_instance(c->parts.store, id, e) != 0)
		return e->code;
	c->is_settled = strcmp(id, c->parts.instance) == 0;
	if (c->is_settled)
		c->next_ms = clock_mono_ms() + FIRST_MS;
	return 0;
}

bool
census_is_settled(const struct census *c)
{
	return c->is_settled;
}

uint64_t
census_containers(const struct census *c)
{
	return c->containers;
}

/* ---- what should be there is told */

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

static void
names_flush(struct ipc_chan *chan, struct buf *names)
{
	msg_send_tenants(chan,
	    &(struct msg_tenants){.names = {buf_data(names), buf_len(names)}});
	buf_consume(names, buf_len(names));
}

/* Each worker counts what there is (ceilings), and one removes what is left. */
static void
tell_tenants(const struct census *c, struct ipc_chan *chan)
{
	const struct tenant *n = NULL;
	struct buf names;

	buf_init(&names, MSG_TENANTS_NAMES_MAX);
	while ((n = tenants_next(c->parts.tenants, n)) != NULL) {
		size_t size = strlen(n->row.name) + 1;

		if (buf_len(&names) + size > MSG_TENANTS_NAMES_MAX)
			names_flush(chan, &names);
		(void)!buf_append(&names, n->row.name, size);
	}
	names_flush(chan, &names);
	buf_clear(&names);
}

static void
tell_all_tenants(const struct census *c)
{
	for (uint32_t i = 0; i < fleet_stats(c->parts.fleet).total; i++) {
		struct ipc_chan *chan = fleet_chan(c->parts.fleet, i);

		if (chan != NULL)
			tell_tenants(c, chan);
	}
}

static bool
sweep(const struct census *c)
{
	struct sweep_list l = {.chan = fleet_sweeper_chan(c->parts.fleet)};
	const struct sandbox *sb = NULL;

	if (l.chan == NULL)
		return false;
	tell_all_tenants(c);
	buf_init(&l.uuids, MSG_SWEEP_UUIDS_MAX);
	while ((sb = sandboxes_next(c->parts.sandboxes, sb)) != NULL)
		list_add(&l, sb);
	list_flush(&l);
	buf_clear(&l.uuids);
	msg_send_sweep_end(l.chan,
	    &(struct msg_sweep_end){.asof_wall_ms = clock_wall_ms(),
		.keep_ms =
		    conf_int(c->parts.conf, CONF_UNKNOWN_KEEP_SECONDS) * 1000,
		.only_look = !c->is_settled});
	return true;
}

/* While it was away boxes may have been lost that could not be removed: a
 * sweep comes soon, and a second one for those that are too young for it. */
void
census_on_engine(struct census *c)
{
	uint64_t now_ms = clock_mono_ms();

	if (!c->is_settled && sweep(c))
		c->next_ms = now_ms + EVERY_MS;
	if (!c->is_settled)
		return;
	c->sweeps_again = true;
	if (c->next_ms > now_ms + FIRST_MS)
		c->next_ms = now_ms + FIRST_MS;
}

void
census_tick(struct census *c, uint64_t now_ms)
{
	if (now_ms < c->next_ms)
		return;
	(void)sweep(c);
	c->next_ms = now_ms + (c->sweeps_again ? FIRST_MS : EVERY_MS);
	c->sweeps_again = false;
}

/* ---- what is found */

static void
ended_cb(bool has_ended, void *arg)
{
	struct leftover *l = arg;
	struct ipc_chan *chan = fleet_sweeper_chan(l->census->parts.fleet);

	if (has_ended && chan != NULL)
		msg_send_sandbox_remove(chan,
		    &(struct msg_sandbox_remove){.uuid = l->uuid,
			.tenant_name = l->tenant,
			.name = l->name,
			.keeps_files = true, /* of one that was lost */
			.left_by = ""});
	free(l->tenant);
	free(l->name);
	free(l);
}

static void
look_up(struct census *c, const struct msg_sweep_found *m)
{
	struct leftover *l = xcalloc(1, sizeof(*l));

	l->census = c;
	l->uuid = m->uuid;
	l->name = xstrdup(m->name);
	l->tenant = xstrdup(m->tenant);
	store_sandbox_ended(c->parts.store, &m->uuid, ended_cb, l);
}

static bool
was_found(const struct census *c, const struct uuid *uuid)
{
	for (size_t i = 0; i < c->n; i++)
		if (uuid_is_equal(&c->strangers[i].row.uuid, uuid))
			return true;
	return false;
}

static void
keep_in_mind(struct census *c, const struct msg_sweep_found *m)
{
	struct stranger *s;

	if (c->n == CENSUS_MAX || was_found(c, &m->uuid))
		return;
	c->strangers =
	    xreallocarray(c->strangers, c->n + 1, sizeof(*c->strangers));
	s = &c->strangers[c->n++];
	*s = (struct stranger){.row = {.uuid = m->uuid,
				   .identifier = xstrdup(m->identifier),
				   .generation = m->generation,
				   .name = xstrdup(m->name),
				   .container_id = xstrdup(m->container_id),
				   .image = xstrdup(m->image),
				   .origin = xstrdup("adopt"),
				   .created_ms = m->created_ms},
	    .tenant = xstrdup(m->tenant),
	    .running = m->running};
}

/* Made while the engine was being asked, or made by a front before us that
 * the database does know. */
static bool
is_known(const struct census *c, const struct uuid *uuid)
{
	const struct sandbox *sb = NULL;

	while ((sb = sandboxes_next(c->parts.sandboxes, sb)) != NULL)
		if (uuid_is_equal(&sb->row.uuid, uuid))
			return true;
	return false;
}

void
census_on_found(struct census *c, const struct msg_sweep_found *m)
{
	if (is_known(c, &m->uuid))
		return;
	if (c->is_settled)
		look_up(c, m);
	else
		keep_in_mind(c, m);
}

/* ---- what is decided */

static void
settle(struct census *c)
{
	c->is_settled = true;
	store_instance_put(c->parts.store, c->parts.instance, NULL, NULL);
	forget_strangers(c);
}

/* Of the same identifier only the newest can have it. */
static bool
is_newest(const struct census *c, const struct stranger *s)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct stranger *o = &c->strangers[i];

		if (o != s && o->running && strcmp(o->tenant, s->tenant) == 0 &&
		    strcmp(o->row.identifier, s->row.identifier) == 0 &&
		    (o->row.generation > s->row.generation ||
			(o->row.generation == s->row.generation && o > s)))
			return false;
	}
	return true;
}

/* Whose it is, if it can be taken over: its tenant must be known by name. */
static const struct tenant *
adopter_of(const struct census *c, const struct stranger *s)
{
	const struct tenant *who =
	    tenants_find_name(c->parts.tenants, s->tenant);
	size_t n = strlen(s->row.identifier);

	return who != NULL && s->running && n > 0 &&
		n <= SANDBOX_IDENTIFIER_MAX && is_newest(c, s) &&
		sandbox_find_named(c->parts.sandboxes, tenant_id_of(who),
		    s->row.identifier) == NULL ?
	    who :
	    NULL;
}

static void
adopt(struct census *c)
{
	size_t taken = 0;

	for (size_t i = 0; i < c->n; i++) {
		struct stranger *s = &c->strangers[i];
		const struct tenant *who = adopter_of(c, s);

		if (who == NULL)
			continue;
		sandbox_adopt(c->parts.sandboxes, who->owner, &s->row);
		taken++;
	}
	log_warn("%zu sandboxes of instance %s were taken over, %zu are left "
		 "to the sweep",
	    taken, c->parts.instance, c->n - taken);
}

static void
refuse(struct census *c)
{
	char text[800];

	c->is_refused = true;
	(void)snprintf(text, sizeof(text),
	    "the database in DATA_DIR %.200s is new, but %zu sandboxes of "
	    "this instance (%s) are on the engine, %.100s among them: put "
	    "the database back; or take them over with --adopt; or go on "
	    "without them with --forget (stopped, removed after "
	    "UNKNOWN_KEEP_SECONDS); or set another DATA_DIR",
	    conf_str(c->parts.conf, CONF_DATA_DIR), c->n, c->parts.instance,
	    c->strangers[0].row.name);
	c->parts.refuse(text, c->parts.arg);
}

static bool
decide(struct census *c, const struct msg_swept *m)
{
	const char *takeover = conf_str(c->parts.conf, CONF_TAKEOVER);

	if (c->is_refused)
		return true;
	/* The sweep failed: keep what it listed so far and wait for the
	 * next. */
	if (!m->is_known)
		return false;
	if (c->n > 0 && strcmp(takeover, "ask") == 0) {
		refuse(c);
		return true;
	}
	if (c->n > 0 && strcmp(takeover, "adopt") == 0)
		adopt(c);
	else if (c->n > 0)
		log_warn("%zu sandboxes of instance %s are not taken over",
		    c->n, c->parts.instance);
	settle(c);
	return true;
}

bool
census_on_swept(struct census *c, const struct msg_swept *m)
{
	bool is_decided = true;

	if (m->is_known)
		c->containers =
		    m->found > m->removed ? m->found - m->removed : 0;
	if (!c->is_settled) {
		is_decided = decide(c, m);
		c->next_ms =
		    clock_mono_ms() + (is_decided ? FIRST_MS : CENSUS_AGAIN_MS);
	}
	if (m->removed > 0)
		log_info("sweep: %u objects on the engine, %u leftovers "
			 "removed",
		    m->found, m->removed);
	return is_decided;
}
