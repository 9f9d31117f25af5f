/*
 * hook_turns.c - whose request to a webhook is sent next
 *
 *	lane	a tenant with requests that wait or are under way; in the line
 *		of lanes while one of its targets is open
 *	target	a host of a lane; in the lane's line of targets while it is
 *		open: some wait, and fewer than HOOK_TURNS_PER_HOST are sent
 *
 * Who was served goes to the end of its line.
 */
#include "supervisor/front/hook_turns.h"

#include "common/hashmap.h"
#include "common/xmalloc.h"

TAILQ_HEAD(hook_turn_line, hook_turn);

struct hook_lane {
	uint64_t tenant;
	struct hash_entry by_tenant;
	unsigned int sent;
	unsigned int ntargets;
	TAILQ_HEAD(, hook_target) open;
	TAILQ_ENTRY(hook_lane) link; /* while open is not empty */
};
struct hook_target {
	struct hook_lane *lane;
	char *host;
	struct hash_entry by_name;
	unsigned int sent;
	struct hook_turn_line waiting;
	bool is_open;
	TAILQ_ENTRY(hook_target) link; /* while it is open */
};
struct hook_turns {
	struct hashmap lanes;
	struct hashmap targets;
	TAILQ_HEAD(, hook_lane) line;
};

struct target_key {
	uint64_t tenant;
	const char *host;
};

/* ---- lanes and targets */

static struct hook_lane *
lane_of(struct hook_turns *all, uint64_t tenant)
{
	struct hook_lane *l = HASH_OBJECT(
	    hashmap_get_u64(&all->lanes, tenant), struct hook_lane, by_tenant);

	if (l != NULL)
		return l;
	l = xcalloc(1, sizeof(*l));
	l->tenant = tenant;
	TAILQ_INIT(&l->open);
	hashmap_put(&all->lanes, &l->by_tenant, hashmap_key_u64(tenant));
	return l;
}

static bool
is_target(const struct hash_entry *en, const void *key)
{
	const struct hook_target *t = HASH_OF(en, struct hook_target, by_name);
	const struct target_key *k = key;

	return t->lane->tenant == k->tenant && strcmp(t->host, k->host) == 0;
}

static struct hook_target *
target_of(struct hook_turns *all, uint64_t tenant, const char *host)
{
	const struct target_key key = {tenant, host};
	uint64_t hash = hashmap_key_named(tenant, host);
	struct hook_target *t =
	    HASH_OBJECT(hashmap_get(&all->targets, hash, is_target, &key),
		struct hook_target, by_name);

	if (t != NULL)
		return t;
	t = xcalloc(1, sizeof(*t));
	t->lane = lane_of(all, tenant);
	t->lane->ntargets++;
	t->host = xstrdup(host);
	TAILQ_INIT(&t->waiting);
	hashmap_put(&all->targets, &t->by_name, hash);
	return t;
}

static void
close_target(struct hook_turns *all, struct hook_target *t)
{
	struct hook_lane *l = t->lane;

	if (!t->is_open)
		return;
	t->is_open = false;
	TAILQ_REMOVE(&l->open, t, link);
	if (TAILQ_EMPTY(&l->open))
		TAILQ_REMOVE(&all->line, l, link);
}

static void
open_target(struct hook_turns *all, struct hook_target *t)
{
	struct hook_lane *l = t->lane;

	if (t->is_open)
		return;
	t->is_open = true;
	if (TAILQ_EMPTY(&l->open))
		TAILQ_INSERT_TAIL(&all->line, l, link);
	TAILQ_INSERT_TAIL(&l->open, t, link);
}

/* After a change of what waits or is sent; t may be gone. */
static void
update_target(struct hook_turns *all, struct hook_target *t)
{
	struct hook_lane *l = t->lane;

	if (!TAILQ_EMPTY(&t->waiting) && t->sent < HOOK_TURNS_PER_HOST)
		open_target(all, t);
	else
		close_target(all, t);
	if (!TAILQ_EMPTY(&t->waiting) || t->sent > 0)
		return;
	hashmap_del(&all->targets, &t->by_name);
	free(t->host);
	free(t);
	if (--l->ntargets > 0)
		return;
	hashmap_del(&all->lanes, &l->by_tenant);
	free(l);
}

/* ---- bounds */

static bool
has_place(const struct hook_lane *l, size_t free_places)
{
	if (free_places == 0 || l->sent >= HOOK_TURNS_PER_TENANT)
		return false;
	return l->sent == 0 || l->sent < free_places / 2;
}

static void
be_sent(struct hook_turn *t)
{
	t->is_sent = true;
	t->target->sent++;
	t->target->lane->sent++;
}

/* ---- turns */

void
hook_turns_wait(struct hook_turns *all, struct hook_turn *t, uint64_t tenant,
    const char *host)
{
	*t = (struct hook_turn){.target = target_of(all, tenant, host)};
	TAILQ_INSERT_TAIL(&t->target->waiting, t, link);
	update_target(all, t->target);
}

/* Of a lane with a place: its first target's first. */
static struct hook_turn *
take_first(struct hook_turns *all, struct hook_lane *l)
{
	struct hook_target *target = TAILQ_FIRST(&l->open);
	struct hook_turn *t = TAILQ_FIRST(&target->waiting);

	TAILQ_REMOVE(&target->waiting, t, link);
	be_sent(t);
	/* To the end of both lines, if there is more. */
	TAILQ_REMOVE(&all->line, l, link);
	TAILQ_INSERT_TAIL(&all->line, l, link);
	TAILQ_REMOVE(&l->open, target, link);
	TAILQ_INSERT_TAIL(&l->open, target, link);
	update_target(all, target);
	return t;
}

struct hook_turn *
hook_turns_next(struct hook_turns *all, size_t free_places)
{
	struct hook_lane *l;

	TAILQ_FOREACH (l, &all->line, link)
		if (has_place(l, free_places))
			return take_first(all, l);
	return NULL;
}

bool
hook_turns_take(struct hook_turns *all, struct hook_turn *t, uint64_t tenant,
    const char *host, size_t free_places)
{
	struct hook_target *target = target_of(all, tenant, host);
	bool may = has_place(target->lane, free_places) &&
	    target->sent < HOOK_TURNS_PER_HOST;

	*t = (struct hook_turn){.target = may ? target : NULL};
	if (may)
		be_sent(t);
	update_target(all, target);
	return may;
}

void
hook_turns_leave(struct hook_turns *all, struct hook_turn *t)
{
	struct hook_target *target = t->target;

	if (target == NULL)
		return;
	if (t->is_sent) {
		target->sent--;
		target->lane->sent--;
	} else {
		TAILQ_REMOVE(&target->waiting, t, link);
	}
	*t = (struct hook_turn){.target = NULL};
	update_target(all, target);
}

/* ---- life */

struct hook_turns *
hook_turns_new(void)
{
	struct hook_turns *all = xcalloc(1, sizeof(*all));

	TAILQ_INIT(&all->line);
	return all;
}

void
hook_turns_free(struct hook_turns *all)
{
	if (all == NULL)
		return;
	hashmap_clear(&all->lanes);
	hashmap_clear(&all->targets);
	free(all);
}
