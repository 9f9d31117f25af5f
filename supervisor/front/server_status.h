/* server_status.h - GET /api/v1/status: how it stands with the whole server,
 * for who administers it */
#ifndef FRONT_SERVER_STATUS_H
#define FRONT_SERVER_STATUS_H

#include "supervisor/front/front.h"

void server_status_on_request(struct front *f, struct http_exchange *x);

#endif
