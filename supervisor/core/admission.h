/*
 * admission.h - may one more sandbox, one more run begin?
 *
 * What the whole server has room for, and what the tenant may have of it
 * (quota_use.h).  Of MAX_ACTIVE_RUNS and MAX_SANDBOXES a tenant that is not
 * the host's own gets no more than ADMISSION_SHARE times what is still free:
 * however many it asks for, there is room for the next tenant.
 */
#ifndef CORE_ADMISSION_H
#define CORE_ADMISSION_H

#include "common/base.h"
#include "common/err.h"

#define ADMISSION_SHARE 4

struct conf;
struct disk;
struct quota_use;
struct runs;
struct sandbox;

struct admission { /* all kept by pointer */
	const struct conf *conf;
	struct disk *disk;
	const struct runs *runs;
	bool is_draining;
};

/* admission_any - ERR_WRONG_STATE: the server is shutting down;
 * ERR_DISK_FULL */
int admission_any(const struct admission *a, struct err *e) MUSTCHECK;
/* admission_sandbox - one more of u's tenant, with the configured limits;
 * ERR_QUOTA, ERR_LIMIT */
int admission_sandbox(
    const struct admission *a, struct quota_use *u, struct err *e) MUSTCHECK;
/* admission_run - in sb (NULL: in one that is to be made); ERR_QUOTA,
 * ERR_LIMIT */
int admission_run(const struct admission *a, struct quota_use *u,
    const struct sandbox *sb, struct err *e) MUSTCHECK;

#endif
