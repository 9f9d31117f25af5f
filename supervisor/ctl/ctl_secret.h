/* ctl_secret.h - sandboxctl secret set, list, delete */
#ifndef CTL_SECRET_H
#define CTL_SECRET_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/ctl/ctl_options.h"
#include "supervisor/ctl/ctl_request.h"

/* Of --tenant; else of the token's own with --url, of "default" without. */

/* ctl_secret_set - the value is --file's content, or what stdin has, without
 * one newline at its end */
int ctl_secret_set(const struct ctl_options *o, struct ctl_link *l,
    const char *name, struct err *e) MUSTCHECK;
/* ctl_secret_list - *out is the caller's */
int ctl_secret_list(const struct ctl_options *o, struct ctl_link *l,
    json_t **out, struct err *e) MUSTCHECK;
int ctl_secret_delete(const struct ctl_options *o, struct ctl_link *l,
    const char *name, struct err *e) MUSTCHECK;

#endif
