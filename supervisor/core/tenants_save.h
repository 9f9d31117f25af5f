/*
 * tenants_save.h - the directory's rows, on their way to disk and away
 *
 * A row that could not be written is so again until it is.
 */
#ifndef CORE_TENANTS_SAVE_H
#define CORE_TENANTS_SAVE_H

#include "supervisor/core/tenants_map.h"

/* tenant_save, token_save, tenants_save_grant - as it is now; done may be NULL
 */
void tenant_save(struct tenant *n, store_done_cb done, void *arg);
void token_save(
    struct tenants *t, struct token *k, store_done_cb done, void *arg);
void tenants_save_grant(
    struct tenant *n, enum quota_key key, store_done_cb done, void *arg);

/* tenants_save_tick - what is behind is written again */
void tenants_save_tick(struct tenants *t, int64_t wall_ms);
/* tenants_save_end - the store calls back no more */
void tenants_save_end(struct tenants *t);

#endif
