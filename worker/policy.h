/*
 * policy.h - what a sandbox may be, by the operator's configuration
 *
 * The front asks, this decides: the front is reachable by clients and may
 * have been taken over.  Whatever it asks for is checked here against values
 * that came from the supervisor.
 */
#ifndef WORKER_POLICY_H
#define WORKER_POLICY_H

#include "common/base.h"
#include "common/conf.h"
#include "common/err.h"

#define POLICY_NAME_MAX 64
#define POLICY_WORD_MAX 64
#define POLICY_IMAGE_MAX 255
#define POLICY_FINGERPRINT_LEN 16
#define POLICY_SPOOL_MAX (UINT64_C(1) << 40) /* RUN_OUTPUT_MAX_BYTES' limit */

enum policy_network {
	POLICY_NETWORK_NONE,
	POLICY_NETWORK_BRIDGE
};

enum policy_root { /* may commands be root of their sandbox? */
	POLICY_ROOT_ALLOW,
	POLICY_ROOT_REMAPPED, /* if that is another user of the host */
	POLICY_ROOT_DENY
};

struct policy {
	char *image;
	char **images; /* further ones allowed; NULL-terminated, as all lists */
	enum policy_network network;
	bool no_new_privileges;
	enum policy_root as_root;
	bool own_users;     /* each sandbox has users of its own */
	char **cap_drop;    /* upper case, without CAP_ */
	char **cap_add;     /* with those that the agent needs for itself */
	uint64_t withheld;  /* of these the agent lets no command have */
	char *seccomp;      /* the engine's JSON; "unconfined" */
	char *seccomp_path; /* of the same on this host; NULL: none */
	const char *const *masked;    /* paths a sandbox cannot look into */
	const char *const *read_only; /* and such as it cannot write */
	char *runtime;                /* "": the engine's default */
	char **runtimes;              /* further ones that a rule may name */
	uint64_t memory_bytes;        /* the most a sandbox may have */
	uint64_t nano_cpus;
	uint32_t pids;
	uint64_t tmp_bytes;
	uint64_t disk_bytes; /* beyond its image; 0, as for the next: any */
	uint64_t disk_inodes;
	uint64_t write_bytes_s; /* to write_device; 0: any */
	char *write_device;     /* of the engine's host; "" */
	/* Of network, no-new-privileges, capabilities, system calls and paths:
	 * a sandbox made under another policy is not taken over. */
	char fingerprint[POLICY_FINGERPRINT_LEN + 1];
};

/* policy_init - ERR_INVAL naming the key that cannot be */
int policy_init(
    struct policy *p, const struct conf *c, struct err *e) MUSTCHECK;
void policy_clear(struct policy *p);

/* What the front wants a box to be.  Strings are borrowed. */
struct policy_template {
	const char *image;     /* "": SANDBOX_IMAGE */
	uint64_t memory_bytes; /* 0, as for the next two: all that is allowed */
	uint64_t nano_cpus;
	uint32_t pids;
	uint32_t cpu_shares; /* beside others; 0: as usual */
	const char *runtime; /* "": SANDBOX_RUNTIME */
	bool read_only_root; /* it writes to its own directories alone */
};
/* policy_check - ERR_POLICY with a text for the client, or 0 and the blanks
 * of the template filled in */
int policy_check(
    const struct policy *p, struct policy_template *t, struct err *e) MUSTCHECK;

/* Which sandbox uses a box.  Strings are borrowed. */
struct policy_claim {
	const char *identifier;
	uint32_t generation;
};
/* policy_check_runtime - ERR_POLICY unless SANDBOX_RUNTIMES_ALLOWED has it, or
 * it is SANDBOX_RUNTIME or "" */
int policy_check_runtime(
    const struct policy *p, const char *runtime, struct err *e) MUSTCHECK;

/* policy_check_claim - ERR_POLICY unless its words are fit for labels */
int policy_check_claim(const struct policy_claim *c, struct err *e) MUSTCHECK;
/* policy_is_tenant - a word fit for a label */
bool policy_is_tenant(const char *s);

/* policy_is_name - 2 to POLICY_NAME_MAX of [A-Za-z0-9_.-], first alphanumeric:
 * what an engine takes as a container's name, and safe in a URL path */
bool policy_is_name(const char *s);
/* policy_check_instance - INSTANCE is such a name; ERR_INVAL */
int policy_check_instance(const char *instance, struct err *e) MUSTCHECK;
/* policy_is_id - 12 to 64 lower-case hex digits */
bool policy_is_id(const char *s);

#endif
