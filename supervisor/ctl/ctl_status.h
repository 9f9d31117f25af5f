/* ctl_status.h - sandboxctl status */
#ifndef CTL_STATUS_H
#define CTL_STATUS_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/ctl/ctl_call.h"

/* ctl_status_show - once; with --watch each second until SIGINT, also while no
 * server answers */
int ctl_status_show(const struct ctl_call *c, struct err *e);

#endif
