/* account.h - who somebody is here, and what that tenant has and may have */
#ifndef FRONT_ACCOUNT_H
#define FRONT_ACCOUNT_H

#include "supervisor/front/query.h"
#include "supervisor/front/routes.h"

void account_on_whoami(struct front *f, struct http_exchange *x);
/* account_on_usage - a user's own tenant; an administrator's all, or the one
 * that ?tenant= names */
void account_on_usage(struct front *f, struct http_exchange *x);

extern const struct query_table account_usage_query; /* its parameters */

#endif
