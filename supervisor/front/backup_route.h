/* backup_route.h - POST /api/v1/backups: somebody makes one.  It is written
 * down, and who makes it is told where artifacts are and what stays free */
#ifndef FRONT_BACKUP_ROUTE_H
#define FRONT_BACKUP_ROUTE_H

#include "supervisor/front/front.h"

void backup_on_request(struct front *f, struct http_exchange *x);

#endif
