/* openapi_route.h - GET /api/v1/openapi.json: what this API is, for programs
 * (schema/openapi.json, as it was when the server was built) */
#ifndef FRONT_OPENAPI_ROUTE_H
#define FRONT_OPENAPI_ROUTE_H

#include "supervisor/front/front.h"

void openapi_on_request(struct front *f, struct http_exchange *x);

#endif
