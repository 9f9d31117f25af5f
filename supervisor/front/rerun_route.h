/* rerun_route.h - POST /api/v1/runs/ID/rerun: a run once more */
#ifndef FRONT_RERUN_ROUTE_H
#define FRONT_RERUN_ROUTE_H

#include "supervisor/front/front.h"
#include "supervisor/front/query.h"

void rerun_on_run(struct front *f, struct http_exchange *x);

extern const struct query_table rerun_query;

#endif
