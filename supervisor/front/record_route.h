/*
 * record_route.h - /api/v1/runs/ID and below: what is recorded of one run
 */
#ifndef FRONT_RECORD_ROUTE_H
#define FRONT_RECORD_ROUTE_H

#include "supervisor/front/query.h"
#include "supervisor/front/routes.h"

void record_on_run(struct front *f, struct http_exchange *x);
void record_on_output(struct front *f, struct http_exchange *x);
void record_on_artifacts(struct front *f, struct http_exchange *x);
void record_on_cancel(struct front *f, struct http_exchange *x);

/* Their parameters; the first is of a run's record and its cancel. */
extern const struct query_table record_whose_query, record_output_query,
    record_artifacts_query;

#endif
