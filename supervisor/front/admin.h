/*
 * admin.h - tenants and tokens over HTTP: /api/v1/tenants, /api/v1/tokens,
 * /api/v1/whoami, /api/v1/usage
 *
 * What is changed is told when it is on disk.  A token's text is in the answer
 * to the request that made it, and nowhere else.  "-" stands for no tenant
 * where a token of none can be.
 */
#ifndef FRONT_ADMIN_H
#define FRONT_ADMIN_H

#include "supervisor/front/routes.h"

void admin_on_tenants(struct front *f, struct http_exchange *x);
void admin_on_tenant(struct front *f, struct http_exchange *x);
void admin_on_tenant_tokens(struct front *f, struct http_exchange *x);
void admin_on_tokens(struct front *f, struct http_exchange *x);
void admin_on_token(struct front *f, struct http_exchange *x);

#endif
