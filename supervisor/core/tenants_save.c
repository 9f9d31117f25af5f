#include "supervisor/core/tenants_save.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define SAVE_EVERY_MS 2000

struct saving {
	struct tenants *all;
	LIST_ENTRY(saving) link;
	uint64_t tenant; /* 0: it is of a token */
	char token[TOKEN_ID_LEN + 1];
	store_done_cb done;
	void *arg;
};

static struct saving *
saving_new(struct tenants *t, store_done_cb done, void *arg)
{
	struct saving *s = xcalloc(1, sizeof(*s));

	s->all = t;
	s->done = done;
	s->arg = arg;
	LIST_INSERT_HEAD(&t->savings, s, link);
	return s;
}

static void
saving_free(struct saving *s)
{
	LIST_REMOVE(s, link);
	free(s);
}

static void
saved_cb(int rc, const struct err *why, void *arg)
{
	struct saving *s = arg;
	struct tenant *n = tenants_find(s->all, (struct tenant_id){s->tenant});
	struct token *k = tenants_find_token(s->all, s->token);

	if (rc != 0) {
		log_warn("%s: not on disk, tried again: %s",
		    n != NULL ? n->row.name : s->token, why->msg);
		if (n != NULL)
			n->is_unsaved = true;
		if (k != NULL)
			k->is_unsaved = true;
		s->all->is_behind = true;
	}
	if (s->done != NULL)
		s->done(rc, why, s->arg);
	saving_free(s);
}

void
tenant_save(struct tenant *n, store_done_cb done, void *arg)
{
	struct saving *s = saving_new(n->all, done, arg);

	s->tenant = n->row.id;
	n->is_unsaved = false;
	store_tenant_put(n->all->store, &n->row, saved_cb, s);
}

void
token_save(struct tenants *t, struct token *k, store_done_cb done, void *arg)
{
	struct saving *s = saving_new(t, done, arg);

	memcpy(s->token, k->row.id, sizeof(s->token));
	k->is_unsaved = false;
	store_token_put(t->store, &k->row, saved_cb, s);
}

void
tenants_save_grant(
    struct tenant *n, enum quota_key key, store_done_cb done, void *arg)
{
	const char *name = quota_rule(key)->key;
	char copy[64];
	struct store_grant row = {
	    .tenant = n->row.id, .key = copy, .value = n->quota[key]};

	(void)snprintf(copy, sizeof(copy), "%s", name);
	if (n->quota_is_set[key])
		store_grant_put(n->all->store, &row, done, arg);
	else
		store_grant_drop(
		    n->all->store, tenant_id_of(n), name, done, arg);
}

static void
save_what_is_behind(struct tenants *t)
{
	struct tenant *n;
	struct token *k;

	t->is_behind = false;
	TAILQ_FOREACH (n, &t->list, link)
		if (n->is_unsaved)
			tenant_save(n, NULL, NULL);
	TAILQ_FOREACH (k, &t->tokens, link)
		if (k->is_unsaved)
			token_save(t, k, NULL, NULL);
}

void
tenants_save_tick(struct tenants *t, int64_t wall_ms)
{
	if (!t->is_behind || wall_ms < t->next_save_ms)
		return;
	t->next_save_ms = wall_ms + SAVE_EVERY_MS;
	save_what_is_behind(t);
}

/* ---- and away */

static void
erased_cb(int rc, const struct err *why, void *arg)
{
	struct saving *s = arg;
	struct tenants *t = s->all;
	struct tenant *n = tenants_find(t, (struct tenant_id){s->tenant});
	struct token *k, *next;

	saving_free(s);
	if (n == NULL)
		return;
	n->is_erasing = false;
	if (rc != 0) {
		if (rc != ERR_CONFLICT)
			log_warn(
			    "tenant %s: not erased: %s", n->row.name, why->msg);
		return;
	}
	for (k = TAILQ_FIRST(&t->tokens); k != NULL; k = next) {
		next = TAILQ_NEXT(k, link);
		if (k->tenant == n)
			token_leave(t, k);
	}
	log_info("tenant %s is gone", n->row.name);
	tenant_leave(n);
}

void
tenant_erase(struct tenant *n)
{
	struct saving *s;

	if (n->is_erasing)
		return;
	n->is_erasing = true;
	s = saving_new(n->all, NULL, NULL);
	s->tenant = n->row.id;
	store_tenant_erase(
	    n->all->store, tenant_id_of(n), clock_wall_ms(), erased_cb, s);
}

void
tenants_save_end(struct tenants *t)
{
	while (!LIST_EMPTY(&t->savings))
		saving_free(LIST_FIRST(&t->savings));
}
