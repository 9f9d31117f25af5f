/* history_route.h - GET /api/v1/runs and /api/v1/stats */
#ifndef FRONT_HISTORY_ROUTE_H
#define FRONT_HISTORY_ROUTE_H

#include "supervisor/front/front.h"
#include "supervisor/front/query.h"

void history_on_runs(struct front *f, struct http_exchange *x);
void history_on_stats(struct front *f, struct http_exchange *x);

extern const struct query_table history_runs_query;

extern const struct query_table history_stats_query;

#endif
