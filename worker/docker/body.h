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
#define BODY_LABEL_EXPIRES "mcp.expires_at_unix_ms"
#define BODY_LABEL_FINGERPRINT "mcp.policy_fingerprint"
#define BODY_LABEL_IMAGE "mcp.image"
#define BODY_LABEL_TENANT "mcp.tenant"
#define BODY_LABEL_IDENTIFIER "mcp.identifier"
#define BODY_LABEL_GENERATION "mcp.generation"
#define BODY_LABEL_CPUS "mcp.nano_cpus"
#define BODY_LABEL_MEMORY "mcp.memory_bytes"
#define BODY_LABEL_CARRIER "mcp.carrier"
#define BODY_ROLE "sandbox"
#define BODY_ROLE_TRIAL "carrier-trial"
/* Of an image with the agent's program in it, and of the container that such
 * an image is made by. */
#define BODY_ROLE_PREPARED "prepared"
#define BODY_LABEL_PREPARED_AGENT "mcp.prepared_agent"
#define BODY_LABEL_PREPARED_BASE "mcp.prepared_base"
#define BODY_LABEL_PREPARED_BY "mcp.prepared_by"

/* What Podman asks for by itself is millions, and it starts nothing where its
 * own limits are lower and may not be raised. */
struct body_podman {
	uint64_t files, processes; /* of a user */
};
/* body_look_at_limits - what Podman has, if it has what we do: before the
 * process is confined */
void body_look_at_limits(struct body_podman *out);

struct body_create {
	const struct policy *policy;
	const char *instance;
	const char *id;       /* of the instance */
	const char *image_id; /* sha256:... */
	const struct backend_spec *spec;
	int64_t created_ms;
	bool has_io_weight; /* the engine enforces it */
	bool is_podman;     /* which takes paths where Docker takes lists */
	struct body_podman podman;
	/* The engine limits the file system, with this of the image in it;
	 * else the agent does. */
	bool has_quota;
	uint64_t quota_image_bytes;
};
/* body_create - of POST /containers/create; the caller frees */
char *body_create(const struct body_create *c);

/* body_exec - of POST /containers/ID/exec, and body_exec_start of the start of
 * what was made so; the caller frees */
char *body_exec(const char *const *command);
char *body_exec_start(void);

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

/* What a prepared image is: by its labels. */
struct body_prepared {
	const char *agent; /* digest of the program, hexadecimal */
	const char *base;  /* the image's id */
	const char *by;    /* which worker makes it */
	int64_t created_ms;
};
/* body_prepare - of POST /containers/create, for a container that is filled
 * and never started; the caller frees, as for the next */
char *body_prepare(const struct body_prepared *p);
/* body_commit - of POST /commit */
char *body_commit(const struct body_prepared *p);
/* body_filters_prepared - what is being prepared, whoever does it; as
 * body_filters_list */
char *body_filters_prepared(void);

/* body_tar - a tar archive of these, root's.  A name has no "/" before it; one
 * with a "/" behind it is a directory and has no data.  ERR_LIMIT: out has no
 * room for it. */
#define BODY_TAR_NAME_MAX 99
struct body_entry {
	const char *name;
	unsigned int mode;
	const void *data;
	size_t len;
};
int body_tar(const struct body_entry *entries, size_t n, struct buf *out,
    struct err *e) MUSTCHECK;

#endif
