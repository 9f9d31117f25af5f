/*
 * tenant_metrics.h - what each tenant has and did, for /metrics
 *
 * METRIC_TENANTS - 1 tenants have samples of their own, in the order in which
 * they were made as long as there is a place; those of all others are added up
 * as "other", as are those of a tenant of that name.
 */
#ifndef FRONT_TENANT_METRICS_H
#define FRONT_TENANT_METRICS_H

#include "common/metric.h"
#include "supervisor/core/core.h"

/* tenant_metrics_note - into the cells; names (NULL: not wanted): who has
 * which place, borrowed, NULL where nobody has it */
void tenant_metrics_note(
    const struct core *c, const char *names[METRIC_TENANTS]);

#endif
