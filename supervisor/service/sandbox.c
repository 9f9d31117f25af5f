#include "supervisor/service/sandbox_int.h"

#include <ctype.h>
#include <search.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define SLUG_MAX 40

/* ---- finding */

static int
compare_ids(const void *a, const void *b)
{
	const struct sandbox *x = a, *y = b;

	return (x->row.id > y->row.id) - (x->row.id < y->row.id);
}

static int
compare_names(const void *a, const void *b)
{
	const struct sandbox *x = a, *y = b;

	if (x->row.tenant != y->row.tenant)
		return x->row.tenant > y->row.tenant ? 1 : -1;
	return strcmp(x->row.identifier, y->row.identifier);
}

struct sandbox *
sandbox_by_id(struct service *s, uint64_t id)
{
	struct sandbox key = {.row.id = id};
	void *node = tfind(&key, &s->sandbox_ids, compare_ids);

	return node == NULL ? NULL : *(struct sandbox **)node;
}

struct sandbox *
sandbox_by_identifier(
    struct service *s, uint64_t tenant, const char *identifier)
{
	AUTO(auto_free) char *name = xstrdup(identifier);
	struct sandbox key = {.row.tenant = tenant, .row.identifier = name};
	void *node = tfind(&key, &s->sandbox_names, compare_names);

	return node == NULL ? NULL : *(struct sandbox **)node;
}

/* ---- life */

void
sandbox_set_state(
    struct sandbox *sb, enum sandbox_state state, enum sandbox_word word)
{
	sb->state = state;
	sb->row.state = word;
}

void
sandbox_save(struct sandbox *sb)
{
	sb->expires_saved_ms = sb->row.expires_ms;
	store_sandbox_put(sb->service->store, &sb->row, NULL, NULL);
}

/* mcp-sbx-<slug>-<8 hex>: the seed's form; the hex is of the UUID, so that a
 * new generation never waits for the old one's name. */
static char *
container_name(const char *identifier, const struct uuid *uuid)
{
	char slug[SLUG_MAX + 1];
	size_t n = 0;

	for (; identifier[n] != '\0' && n < SLUG_MAX; n++)
		slug[n] = isalnum((unsigned char)identifier[n]) ?
		    (char)tolower((unsigned char)identifier[n]) :
		    '-';
	slug[n] = '\0';
	return xasprintf("mcp-sbx-%s-%02x%02x%02x%02x", slug, uuid->b[0],
	    uuid->b[1], uuid->b[2], uuid->b[3]);
}

static struct sandbox *
sandbox_enter(struct service *s, struct sandbox *sb)
{
	sb->service = s;
	STAILQ_INIT(&sb->open_waiters);
	STAILQ_INIT(&sb->gone_waiters);
	TAILQ_INIT(&sb->waiting);
	TAILQ_INIT(&sb->active);
	TAILQ_INSERT_TAIL(&s->sandboxes, sb, link);
	if (tsearch(sb, &s->sandbox_ids, compare_ids) == NULL ||
	    (sb->state < SANDBOX_REMOVING &&
		tsearch(sb, &s->sandbox_names, compare_names) == NULL))
		fatal(71, "out of memory");
	s->nsandboxes++;
	return sb;
}

struct sandbox *
sandbox_create(struct service *s, const struct principal *p,
    const struct sandbox_request *q)
{
	const struct conf *conf = s->conf;
	struct sandbox *sb = xcalloc(1, sizeof(*sb));
	struct store_sandbox *row = &sb->row;

	row->id = s->next_sandbox++;
	uuid_random(&row->uuid);
	row->tenant = p->tenant;
	row->identifier = xstrdup(q->identifier);
	row->generation = q->generation;
	row->name = container_name(q->identifier, &row->uuid);
	row->container_id = xstrdup("");
	row->image = xstrdup(q->image);
	row->state = SANDBOX_IS_CREATING;
	row->origin = xstrdup(q->origin);
	row->memory_bytes = (uint64_t)conf_int(conf, CONF_DEFAULT_MEMORY_MB)
	    << 20;
	row->nano_cpus =
	    (uint64_t)conf_int(conf, CONF_DEFAULT_CPU_CORES) * 1000000000u;
	row->pids = (uint32_t)conf_int(conf, CONF_DEFAULT_PIDS);
	row->ttl_s = q->ttl_s;
	row->created_ms = clock_wall_ms();
	row->expires_ms = row->created_ms + (int64_t)q->ttl_s * 1000;
	(void)sandbox_enter(s, sb);
	sandbox_save(sb);
	sandbox_tell(sb);
	return sb;
}

struct sandbox *
sandbox_restore(struct service *s, const struct store_sandbox *row)
{
	struct sandbox *sb = xcalloc(1, sizeof(*sb));

	store_sandbox_copy(&sb->row, row);
	sb->expires_saved_ms = row->expires_ms;
	sb->asked_create = true; /* perhaps: look before making another */
	sb->was_ready = row->state == SANDBOX_IS_READY;
	if (row->state == SANDBOX_IS_REMOVING)
		sb->state = SANDBOX_REMOVING;
	return sandbox_enter(s, sb);
}

/* How far the expiry in the database may lag behind the true one. */
static int64_t
save_slack_ms(const struct sandbox *sb)
{
	int64_t slack = (int64_t)sb->row.ttl_s * 100;

	return slack > 10000 ? 10000 : slack;
}

void
sandbox_touch(struct sandbox *sb, uint32_t ttl_s)
{
	if (ttl_s != 0)
		sb->row.ttl_s = ttl_s;
	sb->row.expires_ms = clock_wall_ms() + (int64_t)sb->row.ttl_s * 1000;
	if (sb->row.expires_ms - sb->expires_saved_ms > save_slack_ms(sb) ||
	    sb->row.expires_ms < sb->expires_saved_ms)
		sandbox_save(sb);
}

void
sandbox_leave_names(struct sandbox *sb)
{
	struct service *s = sb->service;

	if (sandbox_by_identifier(s, sb->row.tenant, sb->row.identifier) == sb)
		(void)tdelete(sb, &s->sandbox_names, compare_names);
}

static void
sandbox_free(struct sandbox *sb)
{
	struct service *s = sb->service;

	sandbox_leave_names(sb);
	(void)tdelete(sb, &s->sandbox_ids, compare_ids);
	TAILQ_REMOVE(&s->sandboxes, sb, link);
	s->nsandboxes--;
	store_sandbox_clear(&sb->row);
	free(sb);
}

/* The last word about a sandbox; it goes when its last run has gone. */
void
sandbox_bury(struct sandbox *sb, enum sandbox_word word)
{
	sandbox_leave_names(sb);
	sandbox_set_state(sb, SANDBOX_DEAD, word);
	sb->row.ended_ms = clock_wall_ms();
	sandbox_save(sb);
}

void
sandbox_free_if_done(struct sandbox *sb)
{
	if (sb->state == SANDBOX_DEAD && !sb->held &&
	    TAILQ_EMPTY(&sb->active) && TAILQ_EMPTY(&sb->waiting))
		sandbox_free(sb);
}

/* ---- waiting for it */

static void
wait_add(struct sandbox_waiters *q,
    void (*cb)(struct sandbox *, int, const struct err *, void *), void *arg)
{
	struct sandbox_waiter *w = xcalloc(1, sizeof(*w));

	w->cb = cb;
	w->arg = arg;
	STAILQ_INSERT_TAIL(q, w, link);
}

void
sandbox_wait_fire(struct sandbox *sb, struct sandbox_waiters *q, int rc,
    const struct err *why)
{
	struct sandbox_waiter *w;

	while ((w = STAILQ_FIRST(q)) != NULL) {
		STAILQ_REMOVE_HEAD(q, link);
		w->cb(sb, rc, why, w->arg);
		free(w);
	}
}

void
sandbox_wait_open(struct sandbox *sb,
    void (*cb)(struct sandbox *, int, const struct err *, void *), void *arg)
{
	if (sb->state == SANDBOX_READY)
		cb(sb, 0, NULL, arg);
	else
		wait_add(&sb->open_waiters, cb, arg);
}

void
sandbox_wait_gone(struct sandbox *sb,
    void (*cb)(struct sandbox *, int, const struct err *, void *), void *arg)
{
	wait_add(&sb->gone_waiters, cb, arg);
}

void
sandbox_free_all(struct service *s)
{
	struct sandbox *sb;

	while ((sb = TAILQ_FIRST(&s->sandboxes)) != NULL) {
		sandbox_wait_fire(sb, &sb->open_waiters, ERR_WRONG_STATE, NULL);
		sandbox_wait_fire(sb, &sb->gone_waiters, ERR_WRONG_STATE, NULL);
		sandbox_free(sb);
	}
}
