/* ctl_webhook.h - sandboxctl webhook add, list, show, set, delete, test */
#ifndef CTL_WEBHOOK_H
#define CTL_WEBHOOK_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/ctl/ctl_call.h"

int ctl_webhook_add(const struct ctl_call *c, struct err *e);
int ctl_webhook_list(const struct ctl_call *c, struct err *e);
int ctl_webhook_show(const struct ctl_call *c, struct err *e);
int ctl_webhook_set(const struct ctl_call *c, struct err *e);
int ctl_webhook_delete(const struct ctl_call *c, struct err *e);
int ctl_webhook_test(const struct ctl_call *c, struct err *e);

#endif
