#include "worker/ceilings.h"

#include <stdio.h>

#include <openssl/sha.h>

#include "common/hashmap.h"
#include "common/hex.h"
#include "common/principal.h"
#include "common/xmalloc.h"

#define MIB (UINT64_C(1) << 20)
#define NANO UINT64_C(1000000000)

struct ceilings_item {
	struct ceiling c;
	char tenant[PRINCIPAL_TENANT_MAX + 1];
	struct hash_entry by_name;
};

struct ceilings {
	struct hashmap by_name;
	struct ceiling others; /* TENANT_CEILING */
	struct ceiling total;  /* TOTAL_CEILING */
};

static bool
is_named(const struct hash_entry *en, const void *key)
{
	return strcmp(HASH_OF(en, const struct ceilings_item, by_name)->tenant,
		   key) == 0;
}

static struct ceilings_item *
find(const struct ceilings *cs, const char *tenant)
{
	return HASH_OBJECT(hashmap_get(&cs->by_name, hashmap_key_text(tenant),
			       is_named, tenant),
	    struct ceilings_item, by_name);
}

/* ---- life */

struct ceilings *
ceilings_new(void)
{
	return xcalloc(1, sizeof(struct ceilings));
}

void
ceilings_free(struct ceilings *cs)
{
	struct hash_entry *en, *next;

	if (cs == NULL)
		return;
	HASHMAP_FOREACH (en, next, &cs->by_name)
		free(HASH_OF(en, struct ceilings_item, by_name));
	hashmap_clear(&cs->by_name);
	free(cs);
}

/* ---- what is said */

int
ceilings_say(
    struct ceilings *cs, const char *tenant, const char *word, struct err *e)
{
	struct ceilings_item *it = find(cs, tenant);

	if (strlen(tenant) > PRINCIPAL_TENANT_MAX)
		return err_set(e, ERR_PROTO, "%.60s: no tenant", tenant);
	if (it == NULL) {
		it = xcalloc(1, sizeof(*it));
		(void)snprintf(it->tenant, sizeof(it->tenant), "%s", tenant);
		hashmap_put(
		    &cs->by_name, &it->by_name, hashmap_key_text(it->tenant));
	}
	return ceiling_word(&it->c, word, e);
}

static int
take_item(struct ceiling *out, const char *item, struct err *e)
{
	AUTO(auto_free) char *key = xstrdup(item);
	char *equals = strchr(key, '=');

	if (equals == NULL)
		return err_set(e, ERR_INVAL, "%.60s: want KEY=VALUE,...", item);
	*equals = '\0';
	return ceiling_set(out, key, equals + 1, e);
}

static int
take_list(
    struct ceiling *out, char *const *list, const char *name, struct err *e)
{
	for (size_t i = 0; list != NULL && list[i] != NULL; i++)
		if (list[i][0] != '\0' && take_item(out, list[i], e) != 0)
			return err_wrap(e, "%s", name);
	return 0;
}

/* Else it would be said and hold nobody. */
static int
check_total(const struct ceiling *c, struct err *e)
{
	if (c->most[QUOTA_SANDBOX_CPU_CORES] == 0 &&
	    c->most[QUOTA_SANDBOX_MEMORY_MB] == 0 &&
	    c->most[QUOTA_SANDBOX_PIDS] == 0)
		return 0;
	return err_set(e, ERR_INVAL,
	    "TOTAL_CEILING: want sandboxes, cpu_cores or memory_mb: what one "
	    "sandbox has is said in TENANT_CEILING");
}

int
ceilings_settle(struct ceilings *cs, const struct conf *c, struct err *e)
{
	struct hash_entry *en, *next;

	if (take_list(&cs->others, conf_list(c, CONF_TENANT_CEILING),
		"TENANT_CEILING", e) != 0 ||
	    take_list(&cs->total, conf_list(c, CONF_TOTAL_CEILING),
		"TOTAL_CEILING", e) != 0 ||
	    check_total(&cs->total, e) != 0)
		return ERR_INVAL;
	HASHMAP_FOREACH (en, next, &cs->by_name)
		ceiling_fill(&HASH_OF(en, struct ceilings_item, by_name)->c,
		    &cs->others);
	return 0;
}

int
ceilings_check_conf(const struct conf *c, struct err *e)
{
	struct ceilings cs = {.total = {.runtime = ""}};

	return ceilings_settle(&cs, c, e);
}

static const struct ceiling none;

const struct ceiling *
ceilings_of(const struct ceilings *cs, const char *tenant)
{
	const struct ceilings_item *it = cs == NULL ? NULL : find(cs, tenant);

	if (it != NULL)
		return &it->c;
	return cs == NULL ? &none : &cs->others;
}

const struct ceiling *
ceilings_total(const struct ceilings *cs)
{
	return cs == NULL ? &none : &cs->total;
}

/* ---- one sandbox */

/* A blank is all that policy and ceiling allow. */
static int
check_size(const struct ceiling *c, enum quota_key key, uint64_t unit,
    uint64_t allowed, uint64_t *value, struct err *e)
{
	uint64_t most = (uint64_t)c->most[key] * unit;

	if (*value == 0)
		*value = most != 0 && most < allowed ? most : allowed;
	if (most == 0 || *value <= most)
		return 0;
	return err_set(e, ERR_POLICY,
	    "a sandbox of this tenant has at most %lld %s (its ceiling %s, "
	    "which TENANTS_FILE or TENANT_CEILING says; set quota.%s)",
	    (long long)c->most[key], quota_rule(key)->unit,
	    quota_rule(key)->key, quota_rule(key)->key);
}

/* Root's word for a tenant needs no list of what is allowed. */
static int
check_runtime(const struct ceiling *c, const struct policy *p,
    struct policy_template *t, struct err *e)
{
	if (c->runtime[0] == '\0')
		return policy_check_runtime(p, t->runtime, e);
	if (t->runtime[0] != '\0' && strcmp(t->runtime, c->runtime) != 0)
		return err_set(e, ERR_POLICY,
		    "runtime %.60s: TENANTS_FILE says rule.runtime=%s for "
		    "this tenant",
		    t->runtime, c->runtime);
	t->runtime = c->runtime;
	return 0;
}

int
ceilings_check(const struct ceiling *c, const struct policy *p,
    struct policy_template *t, struct err *e)
{
	uint64_t pids = t->pids;

	if (check_size(c, QUOTA_SANDBOX_CPU_CORES, NANO, p->nano_cpus,
		&t->nano_cpus, e) != 0 ||
	    check_size(c, QUOTA_SANDBOX_MEMORY_MB, MIB, p->memory_bytes,
		&t->memory_bytes, e) != 0 ||
	    check_size(c, QUOTA_SANDBOX_PIDS, 1, p->pids, &pids, e) != 0 ||
	    check_runtime(c, p, t, e) != 0)
		return e->code;
	t->pids = (uint32_t)pids;
	if (c->root == CEILING_ROOT_READ_ONLY)
		t->read_only_root = true;
	return 0;
}

void
ceilings_fingerprint(const struct ceiling *c, const struct policy *p,
    char out[POLICY_FINGERPRINT_LEN + 1])
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	char text[256];
	int n;

	memcpy(out, p->fingerprint, POLICY_FINGERPRINT_LEN + 1);
	if (c->runtime[0] == '\0' && c->root != CEILING_ROOT_READ_ONLY)
		return;
	n = snprintf(text, sizeof(text), "%s|%s|%d", p->fingerprint, c->runtime,
	    (int)c->root);
	(void)SHA256((const uint8_t *)text, (size_t)n, digest);
	hex_encode(digest, POLICY_FINGERPRINT_LEN / 2, out);
}

/* ---- all sandboxes */

void
ceilings_add(struct ceilings_sum *t, uint64_t nano_cpus, uint64_t memory_bytes)
{
	t->sandboxes++;
	t->nano_cpus += nano_cpus;
	t->memory_bytes += memory_bytes;
}

bool
ceilings_counts(const struct ceiling *c)
{
	return c->most[QUOTA_SANDBOXES] != 0 || c->most[QUOTA_CPU_CORES] != 0 ||
	    c->most[QUOTA_MEMORY_MB] != 0;
}

int
ceilings_check_sum(const struct ceiling *c, const struct ceilings_sum *others,
    const struct policy_template *t, const char *whose, struct err *e)
{
	const struct {
		enum quota_key key;
		uint64_t unit, sum;
	} sums[] = {
	    {QUOTA_SANDBOXES, 1, others->sandboxes + 1},
	    {QUOTA_CPU_CORES, NANO, others->nano_cpus + t->nano_cpus},
	    {QUOTA_MEMORY_MB, MIB, others->memory_bytes + t->memory_bytes},
	};

	for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
		int64_t most = c->most[sums[i].key];

		if (most != 0 && sums[i].sum > (uint64_t)most * sums[i].unit)
			return err_set(e, ERR_LIMIT,
			    "%s has its ceiling of %lld %s (%s); delete a "
			    "sandbox, or have the operator raise it",
			    whose, (long long)most,
			    quota_rule(sums[i].key)->unit,
			    quota_rule(sums[i].key)->key);
	}
	return 0;
}
