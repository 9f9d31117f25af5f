/*
 * tenant_metrics.h - what each tenant has and did, for /metrics
 *
 * The first TENANT_METRICS_MAX tenants, in the order in which they were made,
 * have samples of their own; those of all others are added up as "other", as
 * are those of a tenant of that name.
 */
#ifndef FRONT_TENANT_METRICS_H
#define FRONT_TENANT_METRICS_H

#include "common/buf.h"
#include "supervisor/core/core.h"

#define TENANT_METRICS_MAX 200

void tenant_metrics_add(struct buf *b, const struct core *c);

#endif
