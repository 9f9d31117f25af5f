/*
 * tenants.c - who calls, and what changes the directory
 *
 *	token	good --> revoked, expired ----------------> dropped when its
 *		  \----- (tenant disabled) comes back       tenant has too many
 *	tenant	enabled <--> disabled --> being deleted --> erased
 *
 * Tenants are found by number and name, tokens by id.  A token's principal is
 * made once and shared by all calls with it, so "the calls of this token" is a
 * comparison of pointers.  A row that could not be written is so again until
 * it is.
 */
#include "supervisor/core/tenants.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

#define USED_EVERY_MS 60000 /* how true used_ms is */
#define SAVE_EVERY_MS 2000

TAILQ_HEAD(tenant_list, tenant);
TAILQ_HEAD(token_list, token);
LIST_HEAD(saving_list, saving);

struct tenants {
	struct store *store;
	struct tenant_list list;
	struct tenant_list ended; /* with runs that ended */
	struct token_list tokens;
	struct saving_list savings; /* under way */
	struct hashmap numbers;
	struct hashmap names;
	struct hashmap ids;
	unsigned int ntokens_of_none;
	uint64_t next_number;
	struct principal *local;    /* of the open server */
	struct principal *resident; /* the same, of the operator's own socket */
	int64_t next_expiry_ms;     /* INT64_MAX: none expires */
	int64_t next_save_ms;
	bool is_behind; /* something is not on disk */
	void (*on_ended)(const struct principal *who, void *arg);
	void *on_ended_arg;
};

/* ---- looking */

static bool
is_name(const struct hash_entry *en, const void *key)
{
	return strcmp(HASH_OF(en, const struct tenant, by_name)->row.name,
		   key) == 0;
}

static bool
is_token_id(const struct hash_entry *en, const void *key)
{
	return strcmp(HASH_OF(en, const struct token, by_id)->row.id, key) == 0;
}

struct tenant *
tenants_find(const struct tenants *t, struct tenant_id id)
{
	return HASH_OBJECT(
	    hashmap_get_u64(&t->numbers, id.n), struct tenant, by_number);
}

struct tenant *
tenants_find_name(const struct tenants *t, const char *name)
{
	return HASH_OBJECT(
	    hashmap_get(&t->names, hashmap_key_text(name), is_name, name),
	    struct tenant, by_name);
}

struct token *
tenants_find_token(const struct tenants *t, const char *id)
{
	return HASH_OBJECT(
	    hashmap_get(&t->ids, hashmap_key_text(id), is_token_id, id),
	    struct token, by_id);
}

int64_t
tenants_quota(const struct tenants *t, struct tenant_id id, enum quota_key key)
{
	const struct tenant *n = tenants_find(t, id);

	return n == NULL ? quota_rule(key)->fallback : n->quota[key];
}

struct tenant *
tenants_next(const struct tenants *t, const struct tenant *n)
{
	return n == NULL ? TAILQ_FIRST(&t->list) : TAILQ_NEXT(n, link);
}

struct token *
tenants_next_token(const struct tenants *t, const struct token *k)
{
	return k == NULL ? TAILQ_FIRST(&t->tokens) : TAILQ_NEXT(k, link);
}

static bool
token_is_over(const struct token *k, int64_t wall_ms)
{
	return k->row.revoked_ms != 0 ||
	    (k->row.expires_ms != 0 && k->row.expires_ms <= wall_ms);
}

void
tenants_count(const struct tenants *t, size_t *ntenants, size_t *ntokens)
{
	int64_t now = clock_wall_ms();
	const struct tenant *n;
	const struct token *k;

	*ntenants = *ntokens = 0;
	TAILQ_FOREACH (n, &t->list, link)
		*ntenants +=
		    n->row.id != STORE_TENANT_DEFAULT && tenant_is_usable(n);
	TAILQ_FOREACH (k, &t->tokens, link)
		*ntokens += !token_is_over(k, now) &&
		    (k->tenant == NULL || tenant_is_usable(k->tenant));
}

bool
tenants_is_open(const struct tenants *t)
{
	return store_directory_is_open(t->ids.count, t->next_number);
}

/* ---- entering and leaving */

static int64_t
fallback(const struct tenant *n, enum quota_key key)
{
	return quota_fallback(key,
	    n->row.id == STORE_TENANT_DEFAULT ? QUOTA_FOR_HOST :
						QUOTA_FOR_TENANT);
}

static struct tenant *
tenant_enter(struct tenants *t, const struct store_tenant *row)
{
	struct tenant *n = xcalloc(1, sizeof(*n));

	n->all = t;
	store_tenant_copy(&n->row, row);
	n->owner = principal_new(
	    (struct tenant_id){row->id}, row->name, "server", PRINCIPAL_USER);
	for (size_t i = 0; i < QUOTA_COUNT; i++)
		n->quota[i] = fallback(n, (enum quota_key)i);
	hashmap_put(&t->numbers, &n->by_number, hashmap_key_u64(row->id));
	hashmap_put(&t->names, &n->by_name, hashmap_key_text(row->name));
	TAILQ_INSERT_TAIL(&t->list, n, link);
	return n;
}

static void
tenant_leave(struct tenant *n)
{
	struct tenants *t = n->all;

	hashmap_del(&t->numbers, &n->by_number);
	hashmap_del(&t->names, &n->by_name);
	TAILQ_REMOVE(&t->list, n, link);
	if (n->has_ended_runs)
		TAILQ_REMOVE(&t->ended, n, ended_link);
	principal_unref(n->owner);
	store_tenant_clear(&n->row);
	free(n);
}

static unsigned int *
tenants_token_counter(struct tenants *t, struct tenant *n)
{
	return n == NULL ? &t->ntokens_of_none : &n->ntokens;
}

static struct token *
token_enter(struct tenants *t, struct tenant *n, const struct store_token *row)
{
	struct token *k = xcalloc(1, sizeof(*k));

	k->tenant = n;
	store_token_copy(&k->row, row);
	k->who = principal_new((struct tenant_id){row->tenant},
	    n == NULL ? "" : n->row.name, row->id, row->role);
	(*tenants_token_counter(t, n))++;
	hashmap_put(&t->ids, &k->by_id, hashmap_key_text(row->id));
	TAILQ_INSERT_TAIL(&t->tokens, k, link);
	if (row->expires_ms != 0 && row->expires_ms < t->next_expiry_ms)
		t->next_expiry_ms = row->expires_ms;
	return k;
}

static void
token_leave(struct tenants *t, struct token *k)
{
	(*tenants_token_counter(t, k->tenant))--;
	hashmap_del(&t->ids, &k->by_id);
	TAILQ_REMOVE(&t->tokens, k, link);
	principal_unref(k->who);
	store_token_clear(&k->row);
	free(k);
}

/* ---- rows, on their way to disk */

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

static void
tenant_save(struct tenant *n, store_done_cb done, void *arg)
{
	struct saving *s = saving_new(n->all, done, arg);

	s->tenant = n->row.id;
	n->is_unsaved = false;
	store_tenant_put(n->all->store, &n->row, saved_cb, s);
}

static void
token_save(struct tenants *t, struct token *k, store_done_cb done, void *arg)
{
	struct saving *s = saving_new(t, done, arg);

	memcpy(s->token, k->row.id, sizeof(s->token));
	k->is_unsaved = false;
	store_token_put(t->store, &k->row, saved_cb, s);
}

static void
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

/* ---- rows, on their way away */

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

/* ---- who calls */

static void
token_note_use(struct tenants *t, struct token *k, int64_t wall_ms)
{
	if (wall_ms - k->row.used_ms < USED_EVERY_MS &&
	    wall_ms >= k->row.used_ms)
		return;
	k->row.used_ms = wall_ms;
	store_token_put(t->store, &k->row, NULL, NULL);
}

enum tenants_answer
tenants_know(struct tenants *t, const char *text, int64_t wall_ms,
    struct principal **out)
{
	static const uint8_t nobody[TOKEN_DIGEST_LEN];
	struct token_text given;
	struct token *k;
	bool good;

	(void)token_parse(text, &given);
	k = tenants_find_token(t, given.id);
	good = token_digest_is_equal(
	    k == NULL ? nobody : k->row.sha256, given.digest);
	if (k == NULL || !good || token_is_over(k, wall_ms))
		return TENANTS_UNKNOWN;
	if (k->tenant != NULL && !tenant_is_usable(k->tenant))
		return TENANTS_DISABLED;
	token_note_use(t, k, wall_ms);
	*out = k->who;
	return TENANTS_KNOWN;
}

/* Without a token, whoever it is: the default tenant's. */
static enum tenants_answer
tenants_of_default(
    const struct tenants *t, struct principal *who, struct principal **out)
{
	const struct tenant *n =
	    tenants_find(t, (struct tenant_id){STORE_TENANT_DEFAULT});

	if (n == NULL || !tenant_is_usable(n))
		return TENANTS_DISABLED;
	*out = who;
	return TENANTS_KNOWN;
}

enum tenants_answer
tenants_local(const struct tenants *t, struct principal **out)
{
	return tenants_is_open(t) ? tenants_of_default(t, t->local, out) :
				    TENANTS_UNKNOWN;
}

enum tenants_answer
tenants_resident(const struct tenants *t, struct principal **out)
{
	return store_directory_is_open(0, t->next_number) ?
	    tenants_of_default(t, t->resident, out) :
	    TENANTS_UNKNOWN;
}

static void
token_tell_ended(struct tenants *t, const struct token *k)
{
	if (t->on_ended != NULL)
		t->on_ended(k->who, t->on_ended_arg);
}

/* Who calls without a token does so no more. */
static void
close_if_open(struct tenants *t)
{
	if (tenants_is_open(t) && t->on_ended != NULL)
		t->on_ended(t->local, t->on_ended_arg);
}

static void
tenant_tell_ended(const struct tenant *n)
{
	const struct token *k;

	TAILQ_FOREACH (k, &n->all->tokens, link)
		if (k->tenant == n)
			token_tell_ended(n->all, k);
	if (n->row.id == STORE_TENANT_DEFAULT && n->all->on_ended != NULL)
		n->all->on_ended(n->all->local, n->all->on_ended_arg);
}

static void
end_expired(struct tenants *t, int64_t wall_ms)
{
	struct token *k;

	t->next_expiry_ms = INT64_MAX;
	TAILQ_FOREACH (k, &t->tokens, link) {
		if (k->row.expires_ms == 0 || k->has_ended)
			continue;
		if (k->row.expires_ms <= wall_ms) {
			k->has_ended = true;
			token_tell_ended(t, k);
		} else if (k->row.expires_ms < t->next_expiry_ms) {
			t->next_expiry_ms = k->row.expires_ms;
		}
	}
}

void
tenants_tick(struct tenants *t, int64_t wall_ms)
{
	if (wall_ms >= t->next_expiry_ms)
		end_expired(t, wall_ms);
	if (!t->is_behind || wall_ms < t->next_save_ms)
		return;
	t->next_save_ms = wall_ms + SAVE_EVERY_MS;
	save_what_is_behind(t);
}

/* ---- tenants change */

static bool
name_is_good(const char *s)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "._-";
	size_t n = strlen(s);

	return n >= 1 && n <= PRINCIPAL_TENANT_MAX && strspn(s, good) == n &&
	    strchr("._-", s[0]) == NULL;
}

int
tenants_check_name(const char *name, struct err *e)
{
	if (name_is_good(name))
		return 0;
	return err_set(e, ERR_INVAL,
	    "a tenant's name is a letter or digit, then letters, digits, "
	    "\".\", \"_\" and \"-\", at most %d",
	    PRINCIPAL_TENANT_MAX);
}

static int
check_new_name(const struct tenants *t, const char *name, struct err *e)
{
	const struct tenant *n;

	if (tenants_check_name(name, e) != 0)
		return e->code;
	n = tenants_find_name(t, name);
	if (n != NULL && n->row.deleted_ms != 0)
		return err_set(e, ERR_CONFLICT,
		    "tenant %s is still being deleted: try again later", name);
	if (n != NULL)
		return err_set(
		    e, ERR_CONFLICT, "there is a tenant %s already", name);
	if (t->numbers.count >= TENANTS_MAX)
		return err_set(e, ERR_LIMIT,
		    "there are %d tenants already: delete one", TENANTS_MAX);
	return 0;
}

int
tenant_add(struct tenants *t, const char *name, store_done_cb done, void *arg,
    struct tenant **out, struct err *e)
{
	AUTO(auto_free) char *copy = xstrdup(name);
	char none[] = "";
	const struct store_tenant row = {.id = t->next_number,
	    .name = copy,
	    .created_ms = clock_wall_ms(),
	    .runtime = none};

	if (check_new_name(t, name, e) != 0)
		return e->code;
	close_if_open(t);
	t->next_number++;
	*out = tenant_enter(t, &row);
	tenant_save(*out, done, arg);
	return 0;
}

void
tenant_use(struct tenant *n, enum tenant_use use, store_done_cb done, void *arg)
{
	bool was = tenant_is_usable(n);

	n->row.disabled_ms = use == TENANT_ENABLED ? 0 :
	    n->row.disabled_ms != 0                ? n->row.disabled_ms :
						     clock_wall_ms();
	tenant_save(n, done, arg);
	if (was && !tenant_is_usable(n))
		tenant_tell_ended(n);
}

void
tenant_grant(struct tenant *n, enum quota_key key, int64_t value,
    store_done_cb done, void *arg)
{
	n->quota[key] = value;
	n->quota_is_set[key] = true;
	tenants_save_grant(n, key, done, arg);
}

void
tenant_rule(struct tenant *n, const char *runtime, bool read_only_root,
    store_done_cb done, void *arg)
{
	xset_text(&n->row.runtime, runtime);
	n->row.read_only_root = read_only_root;
	tenant_save(n, done, arg);
}

void
tenant_ungrant(
    struct tenant *n, enum quota_key key, store_done_cb done, void *arg)
{
	n->quota[key] = fallback(n, key);
	n->quota_is_set[key] = false;
	tenants_save_grant(n, key, done, arg);
}

int
tenant_delete(struct tenant *n, store_done_cb done, void *arg, struct err *e)
{
	if (n->row.id == STORE_TENANT_DEFAULT)
		return err_set(e, ERR_INVAL,
		    "the tenant " TENANT_DEFAULT_NAME " stays: disable it");
	if (n->row.deleted_ms == 0)
		n->row.deleted_ms = clock_wall_ms();
	tenant_save(n, done, arg);
	tenant_tell_ended(n);
	return 0;
}

/* ---- tokens change */

/* The oldest one that is over makes room. */
static int
make_room(struct tenants *t, struct tenant *n, struct err *e)
{
	int64_t now = clock_wall_ms();
	struct token *k;

	if (*tenants_token_counter(t, n) < TENANT_TOKENS_MAX)
		return 0;
	TAILQ_FOREACH (k, &t->tokens, link)
		if (k->tenant == n && token_is_over(k, now)) {
			store_token_drop(t->store, k->row.id, NULL, NULL);
			token_leave(t, k);
			return 0;
		}
	return err_set(e, ERR_LIMIT, "%s has %d tokens: revoke one",
	    n == NULL ? "no tenant" : n->row.name, TENANT_TOKENS_MAX);
}

static int
check_wish(const struct tenant *n, const struct token_wish *w, struct err *e)
{
	size_t len = strlen(w->name);

	if (n == NULL && w->role == PRINCIPAL_USER)
		return err_set(e, ERR_INVAL,
		    "a token of role user belongs to a tenant: name it");
	if (n != NULL && n->row.deleted_ms != 0)
		return err_set(
		    e, ERR_CONFLICT, "tenant %s is being deleted", n->row.name);
	if (len > TENANT_TOKEN_NAME_MAX || !utf8_is_valid(w->name, len))
		return err_set(e, ERR_INVAL,
		    "a token's name is a text of at most %d bytes",
		    TENANT_TOKEN_NAME_MAX);
	return 0;
}

static struct token *
token_insert(struct tenants *t, struct tenant *n, const struct token_wish *w,
    const struct token_text *of, store_done_cb done, void *arg)
{
	char id[TOKEN_ID_LEN + 1], name[TENANT_TOKEN_NAME_MAX + 1];
	struct store_token row = {.id = id,
	    .tenant = n == NULL ? 0 : n->row.id,
	    .role = w->role,
	    .name = name,
	    .created_ms = clock_wall_ms(),
	    .expires_ms = w->expires_ms};
	struct token *k;

	memcpy(id, of->id, sizeof(id));
	(void)snprintf(name, sizeof(name), "%s", w->name);
	memcpy(row.sha256, of->digest, sizeof(row.sha256));
	close_if_open(t);
	k = token_enter(t, n, &row);
	token_save(t, k, done, arg);
	return k;
}

int
tenants_add_token(struct tenants *t, struct tenant *n,
    const struct token_wish *w, store_done_cb done, void *arg,
    struct token_made *out, struct err *e)
{
	struct token_text of;

	if (check_wish(n, w, e) != 0)
		return e->code;
	if (w->expires_ms != 0 && w->expires_ms <= clock_wall_ms())
		return err_set(e, ERR_INVAL, "its expiry has passed already");
	if (make_room(t, n, e) != 0)
		return e->code;
	do
		token_make(&of, out->text);
	while (tenants_find_token(t, of.id) != NULL);
	out->token = token_insert(t, n, w, &of, done, arg);
	return 0;
}

int
tenants_import_token(struct tenants *t, struct tenant *n,
    const struct token_wish *w, const struct token_text *of, struct err *e)
{
	const struct token *k = tenants_find_token(t, of->id);

	if (k != NULL) {
		if (k->tenant == n && k->row.role == w->role &&
		    token_digest_is_equal(k->row.sha256, of->digest))
			return 0;
		return err_set(e, ERR_CONFLICT,
		    "the database has another token of the id %s", of->id);
	}
	if (check_wish(n, w, e) != 0 || make_room(t, n, e) != 0)
		return e->code;
	(void)token_insert(t, n, w, of, NULL, NULL);
	return 0;
}

void
token_revoke(struct tenants *t, struct token *k, store_done_cb done, void *arg)
{
	if (k->row.revoked_ms == 0)
		k->row.revoked_ms = clock_wall_ms();
	k->has_ended = true;
	token_save(t, k, done, arg);
	token_tell_ended(t, k);
}

/* ---- whose history may be too long */

void
tenants_note_ended(struct tenants *t, struct tenant_id id)
{
	struct tenant *n = tenants_find(t, id);

	if (n == NULL || n->has_ended_runs)
		return;
	n->has_ended_runs = true;
	TAILQ_INSERT_TAIL(&t->ended, n, ended_link);
}

struct tenant *
tenants_take_ended(struct tenants *t)
{
	struct tenant *n = TAILQ_FIRST(&t->ended);

	if (n == NULL)
		return NULL;
	n->has_ended_runs = false;
	TAILQ_REMOVE(&t->ended, n, ended_link);
	return n;
}

/* ---- life */

static void
apply_grant(struct tenants *t, const struct store_grant *row)
{
	struct tenant *n = tenants_find(t, (struct tenant_id){row->tenant});
	enum quota_key key;
	struct err e;

	if (n == NULL)
		return;
	if (quota_find(row->key, &key, &e) != 0 ||
	    quota_check(key, row->value, &e) != 0) {
		log_warn(
		    "tenant %s: the default holds: %s", n->row.name, e.msg);
		return;
	}
	n->quota[key] = row->value;
	n->quota_is_set[key] = true;
}

static int
apply_token(struct tenants *t, const struct store_token *row, struct err *e)
{
	struct tenant *n = tenants_find(t, (struct tenant_id){row->tenant});

	if (!token_is_id(row->id) || (n == NULL && row->tenant != 0))
		return err_set(e, ERR_DAMAGED,
		    "database: token %.20s is no token, or of no tenant",
		    row->id);
	token_enter(t, n, row)->has_ended = row->revoked_ms != 0;
	return 0;
}

static int
apply(struct tenants *t, const struct store_directory *d, struct err *e)
{
	t->next_number = d->next_tenant;
	for (size_t i = 0; i < d->ntenants; i++)
		(void)tenant_enter(t, &d->tenants[i]);
	for (size_t i = 0; i < d->ngrants; i++)
		apply_grant(t, &d->grants[i]);
	for (size_t i = 0; i < d->ntokens; i++)
		if (apply_token(t, &d->tokens[i], e) != 0)
			return e->code;
	return 0;
}

int
tenants_open(struct store *s, struct tenants **out, struct err *e)
{
	struct store_directory d;
	struct tenants *t;
	int rc = store_directory_read(s, &d, e);

	if (rc != 0)
		return rc;
	t = xcalloc(1, sizeof(*t));
	t->store = s;
	t->next_expiry_ms = INT64_MAX;
	TAILQ_INIT(&t->list);
	TAILQ_INIT(&t->ended);
	TAILQ_INIT(&t->tokens);
	LIST_INIT(&t->savings);
	t->local = principal_new((struct tenant_id){STORE_TENANT_DEFAULT},
	    TENANT_DEFAULT_NAME, PRINCIPAL_LOCAL, PRINCIPAL_USER);
	t->resident = principal_new((struct tenant_id){STORE_TENANT_DEFAULT},
	    TENANT_DEFAULT_NAME, PRINCIPAL_LOCAL, PRINCIPAL_USER);
	rc = apply(t, &d, e);
	store_directory_clear(&d);
	if (rc != 0) {
		tenants_free(t);
		return rc;
	}
	*out = t;
	return 0;
}

void
tenants_free(struct tenants *t)
{
	struct tenant *n;
	struct token *k;

	if (t == NULL)
		return;
	while (!LIST_EMPTY(&t->savings)) /* the store calls back no more */
		saving_free(LIST_FIRST(&t->savings));
	while ((k = TAILQ_FIRST(&t->tokens)) != NULL)
		token_leave(t, k);
	while ((n = TAILQ_FIRST(&t->list)) != NULL)
		tenant_leave(n);
	hashmap_clear(&t->numbers);
	hashmap_clear(&t->names);
	hashmap_clear(&t->ids);
	principal_unref(t->local);
	principal_unref(t->resident);
	free(t);
}

void
tenants_on_ended(struct tenants *t,
    void (*cb)(const struct principal *who, void *arg), void *arg)
{
	t->on_ended = cb;
	t->on_ended_arg = arg;
}
