/*
 * body.h - what is sent to the engine
 *
 * The only place that writes engine JSON.  Nothing in it comes from a client
 * but words that policy_check has let through.
 */
#ifndef WORKER_DOCKER_BODY_H
#define WORKER_DOCKER_BODY_H

#include <sched.h>

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "worker/backend.h"
#include "worker/policy.h"

#define BODY_LABEL_ROLE "mcp.role"
#define BODY_LABEL_INSTANCE "mcp.instance"
#define BODY_LABEL_ID "mcp.instance_id"
#define BODY_LABEL_BOX "mcp.sandbox"
#define BODY_LABEL_CREATED "mcp.created_at_unix_ms"
#define BODY_LABEL_FINGERPRINT "mcp.policy_fingerprint"
#define BODY_LABEL_IMAGE "mcp.image"
#define BODY_LABEL_TENANT "mcp.tenant"
#define BODY_LABEL_IDENTIFIER "mcp.identifier"
#define BODY_LABEL_GENERATION "mcp.generation"
#define BODY_LABEL_CPUS "mcp.nano_cpus"
#define BODY_LABEL_MEMORY "mcp.memory_bytes"
#define BODY_ROLE "sandbox"

struct body_create {
	const struct policy *policy;
	const char *instance;
	const char *id;       /* of the instance */
	const char *image_id; /* sha256:... */
	const struct backend_spec *spec;
	int64_t created_ms;
	bool has_io_weight; /* the engine enforces it */
	bool is_podman;     /* which takes paths where Docker takes lists */
	/* The engine limits the file system, with this of the image in it;
	 * else the agent does. */
	bool has_quota;
	uint64_t quota_image_bytes;
};
/* body_create - of POST /containers/create; the caller frees */
char *body_create(const struct body_create *c);

/* body_bounds - of POST /containers/ID/update, NUL-terminated.  cpuset: which
 * processors, NULL: as it is.  An engine takes
 * processors in one of two forms, for all of a container's life: a quota of a
 * period, as body_create makes them, or NanoCpus. */
#define BODY_CPUSET_MAX 512
#define BODY_BOUNDS_MAX (128 + BODY_CPUSET_MAX)
enum body_cpus {
	BODY_CPUS_AS_QUOTA,
	BODY_CPUS_AS_NANO
};
void body_bounds(char out[BODY_BOUNDS_MAX], const struct backend_bounds *b,
    enum body_cpus form, const char *cpuset);

/* body_cpuset - n of those processors from the first on, the lowest behind the
 * highest, as cpuset(7) has lists: "0-3,6"; n 0: all.  The front counts them
 * from 0 on; a host may have some that are off, or not ours.  False: there are
 * not so many, or the list is too long. */
bool body_cpuset(const cpu_set_t *of, unsigned int first, unsigned int n,
    char out[BODY_CPUSET_MAX]) MUSTCHECK;

/* body_filters_x - what "filters=" is for lists and events of the instance of
 * that id, percent-encoded; the caller frees */
char *body_filters_list(const char *id);
char *body_filters_events(const char *id);

/* body_tar - a tar archive with one file named Dockerfile */
int body_tar(
    const char *s, size_t len, struct buf *out, struct err *e) MUSTCHECK;

#endif
