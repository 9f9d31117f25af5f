/*
 * tenants_map.h - the directory's lists and maps, for tenants*.c alone
 *
 * Tenants are found by number and name, tokens by id.  A token's principal is
 * made once and shared by all calls with it, so "the calls of this token" is a
 * comparison of pointers.
 */
#ifndef CORE_TENANTS_MAP_H
#define CORE_TENANTS_MAP_H

#include <sys/queue.h>

#include "supervisor/core/tenants.h"

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
	struct principal *local;
	int64_t next_expiry_ms; /* INT64_MAX: none expires */
	int64_t next_save_ms;
	bool is_behind; /* something is not on disk */
	void (*on_ended)(const struct principal *who, void *arg);
	void *on_ended_arg;
};

/* tenant_enter, token_enter - as the row says, which is copied; a tenant's
 * quotas are the defaults, a token of tenant NULL is of none */
struct tenant *tenant_enter(struct tenants *t, const struct store_tenant *row);
struct token *token_enter(
    struct tenants *t, struct tenant *n, const struct store_token *row);
/* tenant_leave, token_leave - and they are freed */
void tenant_leave(struct tenant *n);
void token_leave(struct tenants *t, struct token *k);

/* tenants_token_counter - how many tokens n, or nobody, has */
unsigned int *tenants_token_counter(struct tenants *t, struct tenant *n);
bool token_is_over(const struct token *k, int64_t wall_ms);

#endif
