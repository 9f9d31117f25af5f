/*
 * secrets.c - all secrets, sealed, by tenant and name
 *
 * Each tenant that has one has an owner, which counts and lists them by name.
 * A value is in the clear while it is sealed (secrets_put: the request's own
 * bytes), while it is sealed anew (reseal), and between give and the caller's
 * wipe of what secrets_fill made.
 */
#include "supervisor/core/secrets.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/runspec.h"
#include "common/xmalloc.h"
#include "supervisor/core/seal.h"

#define REFERENCE "secret://"
#define USED_EVERY_MS 60000  /* how true used_ms is */
#define REASON_BYTES_MAX 255 /* why a command is not executed */

TAILQ_HEAD(secret_list, secret);

struct secret_owner {
	struct tenant_id tenant;
	struct secret_list list;
	size_t count;
	size_t cost;
	struct hash_entry by_number;
};

struct secrets {
	struct store *store;
	struct seal_keys *keys; /* NULL: none */
	struct hashmap owners;
	struct hashmap names;
	size_t cost;
};

/* ---- finding */

struct secrets_name {
	uint64_t tenant;
	const char *name;
};

static bool
is_named(const struct hash_entry *en, const void *key)
{
	const struct secret *s = HASH_OF(en, const struct secret, by_name);
	const struct secrets_name *k = key;

	return s->row.tenant == k->tenant && strcmp(s->row.name, k->name) == 0;
}

struct secret *
secrets_find(
    const struct secrets *ss, struct tenant_id tenant, const char *name)
{
	const struct secrets_name key = {tenant.n, name};

	return HASH_OBJECT(
	    hashmap_get(
		&ss->names, hashmap_key_named(tenant.n, name), is_named, &key),
	    struct secret, by_name);
}

static struct secret_owner *
find_owner(const struct secrets *ss, struct tenant_id tenant)
{
	return HASH_OBJECT(hashmap_get_u64(&ss->owners, tenant.n),
	    struct secret_owner, by_number);
}

const struct secret *
secrets_next(
    const struct secrets *ss, struct tenant_id tenant, const struct secret *s)
{
	const struct secret_owner *o = find_owner(ss, tenant);

	if (s != NULL)
		return TAILQ_NEXT(s, link);
	return o == NULL ? NULL : TAILQ_FIRST(&o->list);
}

size_t
secret_bytes(const struct secret *s)
{
	return s->row.sealed_len < SEAL_EXTRA_BYTES ?
	    0 :
	    s->row.sealed_len - SEAL_EXTRA_BYTES;
}

static size_t
cost_of(const struct secret *s)
{
	return SECRET_COST(secret_bytes(s));
}

bool
secret_is_usable(const struct secrets *ss, const struct secret *s)
{
	return seal_state_of(ss->keys, s->row.sealed, s->row.sealed_len) !=
	    SEAL_UNKNOWN;
}

/* ---- entering and leaving */

static struct secret_owner *
make_owner(struct secrets *ss, struct tenant_id tenant)
{
	struct secret_owner *o = find_owner(ss, tenant);

	if (o != NULL)
		return o;
	o = xcalloc(1, sizeof(*o));
	o->tenant = tenant;
	TAILQ_INIT(&o->list);
	hashmap_put(&ss->owners, &o->by_number, hashmap_key_u64(tenant.n));
	return o;
}

static struct secret *
secret_enter(struct secrets *ss, const struct store_secret *row)
{
	struct secret *s = xcalloc(1, sizeof(*s)), *before;
	struct secret_owner *o =
	    make_owner(ss, (struct tenant_id){row->tenant});

	s->owner = o;
	store_secret_copy(&s->row, row);
	hashmap_put(
	    &ss->names, &s->by_name, hashmap_key_named(row->tenant, row->name));
	TAILQ_FOREACH_REVERSE (before, &o->list, secret_list, link)
		if (strcmp(before->row.name, row->name) < 0)
			break;
	if (before == NULL)
		TAILQ_INSERT_HEAD(&o->list, s, link);
	else
		TAILQ_INSERT_AFTER(&o->list, before, s, link);
	o->count++;
	o->cost += cost_of(s);
	ss->cost += cost_of(s);
	return s;
}

/* Its owner goes with the last. */
static void
secret_leave(struct secrets *ss, struct secret *s)
{
	struct secret_owner *o = s->owner;

	hashmap_del(&ss->names, &s->by_name);
	TAILQ_REMOVE(&o->list, s, link);
	o->count--;
	o->cost -= cost_of(s);
	ss->cost -= cost_of(s);
	store_secret_clear(&s->row);
	free(s);
	if (o->count > 0)
		return;
	hashmap_del(&ss->owners, &o->by_number);
	free(o);
}

static void
set_sealed(struct secrets *ss, struct secret *s, const void *value, size_t n)
{
	const struct seal_for what = {s->row.tenant, s->row.name};

	s->owner->cost -= cost_of(s);
	ss->cost -= cost_of(s);
	free(s->row.sealed);
	s->row.sealed_len = n + SEAL_EXTRA_BYTES;
	s->row.sealed = xmalloc(s->row.sealed_len);
	seal_close(ss->keys, &what, value, n, s->row.sealed);
	s->owner->cost += cost_of(s);
	ss->cost += cost_of(s);
}

/* ---- life */

int
secrets_open(struct store *s, struct secrets **out, struct err *e)
{
	struct store_secrets rows;
	struct secrets *ss;
	int rc = store_secrets_read(s, &rows, e);

	if (rc != 0)
		return rc;
	ss = xcalloc(1, sizeof(*ss));
	ss->store = s;
	for (size_t i = 0; i < rows.n; i++)
		(void)secret_enter(ss, &rows.rows[i]);
	store_secrets_clear(&rows);
	*out = ss;
	return 0;
}

void
secrets_free(struct secrets *ss)
{
	struct hash_entry *en, *next;

	if (ss == NULL)
		return;
	HASHMAP_FOREACH (en, next, &ss->names)
		secret_leave(ss, HASH_OF(en, struct secret, by_name));
	hashmap_clear(&ss->owners);
	hashmap_clear(&ss->names);
	seal_keys_free(ss->keys);
	free(ss);
}

/* The value is in the clear until the caller wipes it: *out is its own. */
static int
open_value(const struct secrets *ss, const struct secret *s, size_t before,
    char **out, struct err *e)
{
	const struct seal_for what = {s->row.tenant, s->row.name};
	size_t n = secret_bytes(s);
	char *text = xcalloc(1, before + n + 1);

	int rc = seal_open(ss->keys, &what, s->row.sealed, s->row.sealed_len,
	    text + before, e);

	if (rc == 0)
		*out = text;
	else
		free(text);
	return rc;
}

static void
reseal(struct secrets *ss, struct secret *s, struct rekeying *k)
{
	size_t n = secret_bytes(s);
	struct err e;
	char *text;

	if (open_value(ss, s, 0, &text, &e) != 0) {
		log_warn("tenant %llu: %s", (unsigned long long)s->row.tenant,
		    e.msg);
		rekeying_leave(k);
		return;
	}
	set_sealed(ss, s, text, n);
	explicit_bzero(text, n);
	free(text);
	rekeying_begin(k);
	store_secret_put(ss->store, &s->row, seal_stored_cb, k);
}

int
secrets_unlock(struct secrets *ss, const char *text, size_t n,
    struct rekeying *k, struct err *e)
{
	size_t unknown = 0;
	struct hash_entry *en, *next;

	if (seal_keys_parse(text, n, &ss->keys, e) != 0)
		return e->code;
	HASHMAP_FOREACH (en, next, &ss->names) {
		struct secret *s = HASH_OF(en, struct secret, by_name);
		enum seal_state state =
		    seal_state_of(ss->keys, s->row.sealed, s->row.sealed_len);

		if (state == SEAL_UNKNOWN) {
			unknown++;
			rekeying_leave(k);
		}
		if (state == SEAL_OLD)
			reseal(ss, s, k);
	}
	if (unknown > 0)
		log_warn("%zu secrets are sealed with a key that "
			 "SECRETS_KEY_FILE does not have: put it back as a "
			 "further line, or set them anew",
		    unknown);
	return 0;
}

bool
secrets_have_older_key(const struct secrets *ss)
{
	return seal_keys_have_older(ss->keys);
}

/* ---- changing */

int
secrets_check_name(const char *name, struct err *e)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "_.-";
	size_t n = strlen(name);

	/* "." and ".." are no part of a path. */
	if (n >= 1 && n <= SECRET_NAME_MAX && strspn(name, good) == n &&
	    strspn(name, ".") != n)
		return 0;
	return err_set(e, ERR_INVAL,
	    "a secret's name is 1 to %d letters, digits, \"_\", \".\" and "
	    "\"-\", not dots alone",
	    SECRET_NAME_MAX);
}

static int
check_value(const struct span *value, struct err *e)
{
	if (value->n < 1 || value->n > SECRET_BYTES_MAX)
		return err_set(e, ERR_INVAL,
		    "a secret has 1 to %d bytes, this one %zu",
		    SECRET_BYTES_MAX, value->n);
	if (memchr(value->p, '\0', value->n) != NULL)
		return err_set(e, ERR_INVAL,
		    "a secret has no NUL bytes: a variable cannot");
	return 0;
}

static int
check_room(const struct secrets *ss, struct tenant_id tenant,
    const struct secret *old, size_t n, struct err *e)
{
	const struct secret_owner *o = find_owner(ss, tenant);
	size_t gone = old == NULL ? 0 : cost_of(old);
	size_t count = o == NULL ? 0 : o->count;
	size_t cost = (o == NULL ? 0 : o->cost) - gone + SECRET_COST(n);

	if (old == NULL && count >= SECRETS_PER_TENANT)
		return err_set(e, ERR_LIMIT,
		    "this tenant has %d secrets already: delete one",
		    SECRETS_PER_TENANT);
	if (cost > SECRETS_TENANT_BYTES)
		return err_set(e, ERR_LIMIT,
		    "this tenant's secrets would have over %u bytes, 256 for "
		    "each counted in: delete some",
		    SECRETS_TENANT_BYTES);
	if (ss->cost - gone + SECRET_COST(n) > SECRETS_ALL_BYTES)
		return err_set(e, ERR_LIMIT,
		    "the secrets of all tenants would have over %u bytes: ask "
		    "an administrator",
		    SECRETS_ALL_BYTES);
	return 0;
}

int
secrets_put(struct secrets *ss, struct tenant_id tenant, const char *name,
    const struct span *value, store_done_cb done, void *arg, struct err *e)
{
	AUTO(auto_free) char *copy = xstrdup(name);
	const struct store_secret row = {
	    .tenant = tenant.n, .name = copy, .created_ms = clock_wall_ms()};
	struct secret *s = secrets_find(ss, tenant, name);

	if (secrets_check_name(name, e) != 0 || check_value(value, e) != 0 ||
	    check_room(ss, tenant, s, value->n, e) != 0)
		return e->code;
	if (ss->keys == NULL)
		return err_set(e, ERR_NO_SECRET_KEY,
		    "the server has no key to seal it with: its log says what "
		    "is wrong with SECRETS_KEY_FILE");
	if (s == NULL)
		s = secret_enter(ss, &row);
	set_sealed(ss, s, value->p, value->n);
	s->row.changed_ms = clock_wall_ms();
	store_secret_put(ss->store, &s->row, done, arg);
	return 0;
}

void
secrets_drop(
    struct secrets *ss, struct secret *s, store_done_cb done, void *arg)
{
	store_secret_drop(ss->store, &s->row, done, arg);
	secret_leave(ss, s);
}

void
secrets_forget(struct secrets *ss, struct tenant_id tenant)
{
	struct secret_owner *o;

	while ((o = find_owner(ss, tenant)) != NULL)
		secret_leave(ss, TAILQ_FIRST(&o->list));
}

/* ---- references */

bool
secrets_is_reference(const char *value)
{
	return strncmp(value, REFERENCE, strlen(REFERENCE)) == 0;
}

/* The name that a variable refers to, if it is one; NULL: it is its own value.
 */
static const char *
reference_of(const char *pair)
{
	const char *value = strchr(pair, '=') + 1;

	return secrets_is_reference(value) ? value + strlen(REFERENCE) : NULL;
}

bool
secrets_are_in(const struct span *spec)
{
	return memmem(spec->p, spec->n, "=" REFERENCE, strlen("=" REFERENCE)) !=
	    NULL;
}

/* Whose it is; *out is NULL when the variable is its own value. */
static int
look_up(const struct secrets *ss, struct tenant_id tenant, const char *pair,
    struct secret **out, struct err *e)
{
	const char *name = reference_of(pair);

	*out = NULL;
	if (name == NULL)
		return 0;
	if (secrets_check_name(name, e) != 0)
		return err_wrap(e, "%.*s: " REFERENCE "NAME",
		    (int)(strcspn(pair, "=") > 40 ? 40 : strcspn(pair, "=")),
		    pair);
	*out = secrets_find(ss, tenant, name);
	if (*out == NULL)
		return err_set(e, ERR_NO_SECRET,
		    "there is no secret %s: set it (PUT /api/v1/secrets/%s), "
		    "or refer to another",
		    name, name);
	if (!secret_is_usable(ss, *out))
		return err_set(e, ERR_NO_SECRET_KEY,
		    "secret %s cannot be unsealed: ask an administrator to "
		    "put its key back into SECRETS_KEY_FILE, or set it anew",
		    name);
	return 0;
}

/* All variables of a command; their values are added to *bytes. */
static int
check_command(const struct secrets *ss, struct tenant_id tenant,
    const struct runspec_command *c, size_t *bytes, struct err *e)
{
	struct secret *s;

	for (uint32_t i = 0; i < c->nenv; i++) {
		if (look_up(ss, tenant, c->env[i], &s, e) != 0)
			return e->code;
		*bytes += s == NULL ? 0 : secret_bytes(s);
	}
	if (*bytes > RUNSPEC_BYTES_MAX)
		return err_set(e, ERR_LIMIT,
		    "commands, environment and files have over %u bytes with "
		    "the values of their secrets",
		    RUNSPEC_BYTES_MAX);
	return 0;
}

/* What a spec has without values, and with a reason at each command. */
static size_t
size_without(size_t encoded, const struct runspec *spec)
{
	return encoded + (size_t)spec->ncommands * REASON_BYTES_MAX;
}

static int
measure(const struct runspec *spec, size_t *bytes, struct err *e)
{
	struct buf b;
	int rc;

	buf_init(&b, RUNSPEC_BYTES_MAX);
	rc = runspec_encode(spec, &b, e);
	*bytes = size_without(buf_len(&b), spec);
	buf_clear(&b);
	return rc;
}

static bool
refers(const struct runspec *spec)
{
	for (uint32_t i = 0; i < spec->ncommands; i++)
		for (uint32_t k = 0; k < spec->commands[i].nenv; k++)
			if (reference_of(spec->commands[i].env[k]) != NULL)
				return true;
	return false;
}

int
secrets_check(const struct secrets *ss, const struct principal *who,
    const struct runspec *spec, struct err *e)
{
	size_t bytes;

	if (!refers(spec))
		return 0;
	if (who->role != PRINCIPAL_USER)
		return err_set(e, ERR_POLICY,
		    "the run refers to secrets of tenant %s, which programs "
		    "that an administrator starts are not given: have it run "
		    "with a token of role user of this tenant",
		    who->tenant_name);
	if (measure(spec, &bytes, e) != 0)
		return e->code;
	for (uint32_t i = 0; i < spec->ncommands; i++)
		if (check_command(
			ss, who->tenant, &spec->commands[i], &bytes, e) != 0)
			return e->code;
	return 0;
}

/* ---- values */

static void
note_use(struct secrets *ss, struct secret *s)
{
	int64_t now = clock_wall_ms();

	if (now - s->row.used_ms < USED_EVERY_MS && now >= s->row.used_ms)
		return;
	s->row.used_ms = now;
	store_secret_use(ss->store, &s->row);
}

/* "NAME=value" in place of "NAME=secret://..." */
static int
give(struct secrets *ss, struct secret *s, char **pair, struct err *e)
{
	size_t n = strcspn(*pair, "=") + 1;
	char *filled;

	if (open_value(ss, s, n, &filled, e) != 0)
		return e->code;
	memcpy(filled, *pair, n);
	free(*pair);
	*pair = filled;
	note_use(ss, s);
	return 0;
}

static int
fill_command(struct secrets *ss, struct tenant_id tenant,
    struct runspec_command *c, size_t *bytes, struct err *e)
{
	struct secret *s;

	if (check_command(ss, tenant, c, bytes, e) != 0)
		return e->code;
	for (uint32_t i = 0; i < c->nenv; i++)
		if (look_up(ss, tenant, c->env[i], &s, e) != 0 ||
		    (s != NULL && give(ss, s, &c->env[i], e) != 0))
			return e->code;
	return 0;
}

static void
refuse_command(struct runspec_command *c, const struct err *e)
{
	c->flags |= RUNSPEC_NO_SECRET;
	free(c->deny);
	c->deny = xasprintf(
	    "%s: %.*s", err_name(e->code), REASON_BYTES_MAX - 40, e->msg);
}

static void
fill_spec(struct secrets *ss, struct tenant_id tenant, struct runspec *spec,
    size_t bytes)
{
	for (uint32_t i = 0; i < spec->ncommands; i++) {
		struct runspec_command *c = &spec->commands[i];
		size_t with = bytes;
		struct err e;

		if ((c->flags & RUNSPEC_DENIED) != 0)
			continue;
		if (fill_command(ss, tenant, c, &with, &e) != 0)
			refuse_command(c, &e);
		else
			bytes = with;
	}
}

int
secrets_fill(struct secrets *ss, struct tenant_id tenant,
    const struct span *spec, struct buf *out, struct err *e)
{
	struct runspec s;
	int rc = ERR_SYS;

	buf_init(out, RUNSPEC_BYTES_MAX);
	if (runspec_decode(spec->p, spec->n, &s, e) != 0)
		return e->code;
	fill_spec(ss, tenant, &s, size_without(spec->n, &s));
	/* At once: what grows leaves copies behind. */
	if (buf_reserve(out, RUNSPEC_BYTES_MAX) == NULL)
		(void)err_set(e, ERR_SYS, "no room for a spec");
	else
		rc = runspec_encode(&s, out, e);
	runspec_clear(&s);
	return rc;
}
