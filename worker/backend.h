/*
 * backend.h - what makes, finds and removes boxes
 *
 * A box is the engine's object behind a sandbox: a container.  It has an
 * identity of its own (struct box_identity), which its labels bear and by
 * which it is known again after any crash; which sandbox uses it is a claim
 * on it, and no part of it.
 *
 * One interface; backends.h opens the one that SANDBOX_BACKEND names, and
 * nobody else includes a backend's own header.  Everything is
 * asynchronous on the one loop: a callback is called exactly once and never
 * inside the call that asked for it.  Each has a time limit of its own.
 *
 * What callbacks are given is theirs to read until they return.  Texts of
 * errors are fit for clients: they name the thing and what to do.
 */
#ifndef WORKER_BACKEND_H
#define WORKER_BACKEND_H

#include "common/base.h"
#include "common/err.h"
#include "common/runtimes.h"
#include "common/uuid.h"
#include "worker/policy.h"

#define BACKEND_ID_MAX 64
#define BACKEND_LIFE_MAX 63
#define BACKEND_LIST_MAX 20000

#define BACKEND_MOUNTS_MAX 2
#define BACKEND_CARRIER_MAX 15
#define BACKEND_PATH_MAX 4096

struct backend;
struct backend_create; /* a box that is being made */
struct backend_exec;   /* a program that is being started in one */

/* What a backend can do.  A carrier says which of it it needs (carrier.h);
 * an operation that belongs to one is NULL where the backend has not it. */
enum backend_can {
	BACKEND_HAS_PID = 1,    /* inspections show the first process */
	BACKEND_HAS_MOUNTS = 2, /* directories of this host can be mounted */
	BACKEND_CAN_STOP = 4,   /* a box ends and its files stay (stop) */
	BACKEND_CAN_BOUND = 8,  /* a running box's bounds change (set_bounds) */
	BACKEND_CAN_LOOK_IMAGE = 16, /* it knows its images (look_image) */
	BACKEND_CAN_EXEC =
	    32, /* a program is started in a running box (exec) */
	BACKEND_CAN_PREPARE = 64 /* of images (backend_wishes.prepared) */
};

/*
 * How a backend calls a box.  Copied at will; looked into by backends and,
 * through the functions below, by who needs what they say.
 */
struct backend_handle {
	char id[BACKEND_ID_MAX + 1]; /* "": none.  A name until it is seen */
	/* The backend's text for one life of the box, from a start to its
	 * end; "": not running or not known. */
	char life[BACKEND_LIFE_MAX + 1];
	/* Whose box it is, where each tenant's are in a place of their own;
	 * "": not said, which is enough where all are in one. */
	char tenant[POLICY_WORD_MAX + 1];
};
/* backend_handle_named - for one that was not seen yet; an id does as well */
void backend_handle_named(struct backend_handle *h, const char *id_or_name);
void backend_handle_set_tenant(struct backend_handle *h, const char *tenant);
static inline bool
backend_handle_is_set(const struct backend_handle *h)
{
	return h->id[0] != '\0';
}
static inline const char *
backend_handle_text(const struct backend_handle *h)
{
	return h->id;
}
/* backend_handle_is_same_life - not restarted between the two */
static inline bool
backend_handle_is_same_life(
    const struct backend_handle *a, const struct backend_handle *b)
{
	return strcmp(a->life, b->life) == 0;
}

/* What a box is, from its making to its end, whoever uses it.  It has one
 * tenant for life. */
struct box_identity {
	struct uuid uuid;
	char tenant[POLICY_WORD_MAX + 1]; /* its name; "": not known */
	/* Of the policy it was made under; "": not known. */
	char fingerprint[POLICY_FINGERPRINT_LEN + 1];
};

#define BACKEND_TEXT_MAX 255
#define BACKEND_ENDED_MAX 300
#define BACKEND_ISOLATION_MAX 6000

/* What else an inspection shows of a box of ours: for a person, or for a
 * database that is made anew. */
struct backend_report {
	char name[BACKEND_TEXT_MAX + 1];
	char identifier[BACKEND_TEXT_MAX + 1]; /* "": not known, as below */
	char image[BACKEND_TEXT_MAX + 1];
	uint32_t generation;
	int64_t finished_ms; /* 0: it never ran, or runs; or INT64_MAX */
	/* Who ended it from outside and why; "": nobody, or not known. */
	char ended[BACKEND_ENDED_MAX + 1];
	char isolation[BACKEND_ISOLATION_MAX + 1]; /* JSON (isolation.h) */
};

/* A box as the engine describes it. */
struct backend_container {
	struct backend_handle handle;
	/* Of its first process; 0: not running, or no BACKEND_HAS_PID. */
	int64_t pid;
	char name[POLICY_NAME_MAX + 1]; /* in lists; "": longer than ours are */
	bool running;
	bool created;  /* was never started */
	bool removing; /* someone is taking it away */
	bool oom_killed;
	int32_t exit_code;
	/* A box of our instance, with all labels in order.  Others' labels
	 * are not believed: what follows is then empty. */
	bool is_ours;
	bool is_trial; /* of our instance, and no box: backend_spec.is_trial */
	bool has_old_files; /* of another box of its sandbox, which was lost */
	struct box_identity identity;
	int64_t created_ms;
	uint64_t
	    nano_cpus; /* it was made with; 0, as for the next: not known */
	uint64_t memory_bytes;
	/* The carrier that it was made for; "": none was named then. */
	char carrier[BACKEND_CARRIER_MAX + 1];
	/* The callback's to read; NULL in lists. */
	const struct backend_report *report;
};
/* backend_is_at_work - it is ours and does not rest: it runs, or may yet */
static inline bool
backend_is_at_work(const struct backend_container *c)
{
	return c->is_ours && (c->running || c->created);
}
/* What to say of a container that has its name and is none. */
#define BACKEND_IS_NO_BOX                                                      \
	"its container does not bear our mcp.instance_id, or another "         \
	"sandbox's mcp.sandbox or mcp.tenant: it is another DATA_DIR's, or "   \
	"an earlier version's, and is left alone; where no other server uses " \
	"it: docker rm -f"
/* backend_is_box - it is ours and bears that UUID and that tenant */
static inline bool
backend_is_box(const struct backend_container *c, const struct box_identity *id)
{
	return c->is_ours && uuid_is_equal(&c->identity.uuid, &id->uuid) &&
	    strcmp(c->identity.tenant, id->tenant) == 0;
}
/* backend_why_ended - of one that does not run any more, for a client;
 * BACKEND_WHY_MAX bytes are enough */
#define BACKEND_WHY_MAX (BACKEND_ENDED_MAX + 1)
void backend_why_ended(
    const struct backend_container *c, char *why, size_t size);

struct backend_mount {
	char source[BACKEND_PATH_MAX]; /* on this host, absolute */
	const char *target;            /* a literal */
};
/* What delivery and carrier need of the box: the agent is started in it and
 * can be reached. */
struct backend_wishes {
	struct backend_mount mounts[BACKEND_MOUNTS_MAX]; /* all read-only */
	size_t nmounts;
	const char *const *command; /* the agent's; literals, then NULL */
	const char *carrier;        /* a literal, at most
				     * BACKEND_CARRIER_MAX bytes; NULL: none */
	/* BACKEND_CAN_PREPARE: the box's image has the agent's program as
	 * FRAME_PROGRAM_IN_SANDBOX; a create puts it in where it is not. */
	bool prepared;
	bool listens; /* the agent waits for who comes, and goes to nobody */
};

/* What to make.  Checked by policy_check before it comes here. */
struct backend_spec {
	const char *name;
	struct box_identity identity;
	struct policy_template template;
	struct policy_claim claim;
	uint32_t ttl_s; /* as it is now; 0: it has none */
	const struct backend_wishes *wishes;
	/* No sandbox will ever use it: it is not among the boxes (is_ours). */
	bool is_trial;
};

typedef void (*backend_created_cb)(
    int rc, const struct backend_handle *h, const struct err *why, void *arg);
typedef void (*backend_container_cb)(int rc, const struct backend_container *c,
    const struct err *why, void *arg);
typedef void (*backend_list_cb)(int rc, const struct backend_container *list,
    size_t n, const struct err *why, void *arg);
typedef void (*backend_done_cb)(int rc, const struct err *why, void *arg);
/* Of a program that is started in a box: joined comes once, never inside the
 * call that asked, and after one with 0 ended comes once. */
struct backend_exec_user {
	/* rc 0: fd is a stream socket that does not block, and the callee's;
	 * what is written to it is the program's standard input, what is read
	 * its standard output. */
	void (*joined)(int rc, int fd, const struct err *why, void *arg);
	/* The stream is over, by whichever side; why for a person. */
	void (*ended)(const char *why, void *arg);
};

enum backend_change {
	BACKEND_DIED,
	BACKEND_OOM,
	BACKEND_DESTROYED
};

/* What the backend says unasked. */
/* What the engine says that it is: bounded, printable, "" for what it does not
 * say. */
struct backend_about {
	char name[64];                    /* "Docker Engine - Community" */
	char version[64];                 /* "20.10.24+dfsg1" */
	char api[16];                     /* "1.41", the newest that it has */
	char runtime[64];                 /* "runc" */
	char runtimes[RUNTIMES_LIST_MAX]; /* all (common/runtimes.h) */
};

struct backend_watch {
	/* The engine came, went, or has something to complain about. */
	void (*on_state)(bool up, const char *detail, void *arg);
	/* The handle is as good as the one that came from opening the box,
	 * but its life is not known. */
	void (*on_change)(const struct backend_handle *h,
	    enum backend_change what, void *arg);
	/* Before on_state says that it is up; may be NULL. */
	void (*on_about)(const struct backend_about *about, void *arg);
	/* While it is up: what a box cannot be made without and is not there,
	 * for people; "": nothing.  Before on_state says that it is up, and
	 * when that changed; may be NULL. */
	void (*on_lack)(const char *text, void *arg);
};

enum backend_users {
	BACKEND_USERS_UNKNOWN, /* it has not said yet */
	BACKEND_USERS_SAME,    /* root of a box is this host's */
	BACKEND_USERS_MAPPED   /* it is another user */
};

/* What a box that runs may have of the host beside others. */
struct backend_bounds {
	uint32_t cpu_shares; /* while all want the processors */
	uint64_t nano_cpus;  /* at any time; 0: as it is */
	/* Of the host's, counted from 0; cpus 0: all, or as it is where the
	 * backend cannot choose.  What the host has not is not chosen. */
	unsigned int first_cpu, cpus;
};

/* What is removed of the files that outlive a box. */
enum backend_forget {
	BACKEND_FORGET_NOTHING, /* the next box of its sandbox finds them */
	BACKEND_FORGET_NEW,     /* unless they were another box's before */
	BACKEND_FORGET_ALL
};

struct backend_files {
	enum backend_forget forget;
	/* Of it also what any box left that does not run; "": the box's own
	 * alone. */
	const char *left_by;
};

/* What a sweep of such files goes by. */
struct backend_sweep {
	int64_t asof_ms; /* wall clock: when the next was known */
	/* The box is there, or may be; NULL: none is, and nobody will come back
	 * for files. */
	bool (*is_used)(const struct uuid *box, void *arg);
	void *arg;
};

struct backend_ops {
	unsigned int can; /* of enum backend_can */
	/* Calls what is still to be called, with ERR_WRONG_STATE. */
	void (*free)(struct backend *b);
	/* Makes the box, and its image where that can be made; starts nothing.
	 * spec is kept by pointer until cb.  ERR_CONFLICT: another container
	 * has its name; ERR_NOTFOUND: what is to be mounted is not on the
	 * engine's host; ERR_LOST: it may have been made, the engine did not
	 * say; with all others nothing was made, ERR_BACKEND: the engine is
	 * away or refused. */
	struct backend_create *(*create)(struct backend *b,
	    const struct backend_spec *spec, backend_created_cb cb, void *arg);
	/* The box is not wanted any more: before the engine was asked to make
	 * it cb comes soon with ERR_WRONG_STATE, later as it would have.  Only
	 * before cb was called. */
	void (*abandon)(struct backend *b, struct backend_create *c);
	void (*start)(struct backend *b, const struct backend_handle *h,
	    backend_done_cb cb, void *arg);
	/* A start that is under way is not wanted any more: its cb comes soon,
	 * with ERR_BACKEND; the box is left.  NULL: starts are short. */
	void (*start_abandon)(
	    struct backend *b, const struct backend_handle *h);
	/* ERR_NOTFOUND: the engine knows none; ERR_BACKEND: it did not say. */
	void (*inspect)(struct backend *b, const struct backend_handle *h,
	    backend_container_cb cb, void *arg);
	/* By force, and waited for; what is gone already is removed well. */
	void (*remove)(struct backend *b, const struct backend_handle *h,
	    backend_done_cb cb, void *arg);
	/* Files that outlive their box go with it: asked for before it is
	 * removed, or when it is gone.  What the next box of its sandbox has
	 * taken over stays.  files is copied.  NULL, as the next: no files
	 * outlive a box. */
	void (*forget_files)(struct backend *b, const struct box_identity *id,
	    const struct backend_files *files, backend_done_cb cb, void *arg);
	/* Such files of boxes that are gone, when nobody came back for them for
	 * as long as the settings say.  how is copied, its arg is kept. */
	void (*sweep_files)(struct backend *b, const struct backend_sweep *how,
	    backend_done_cb cb, void *arg);
	/* BACKEND_CAN_STOP.  What rests already, or is gone, is stopped
	 * well. */
	void (*stop)(struct backend *b, const struct backend_handle *h,
	    backend_done_cb cb, void *arg);
	/* BACKEND_CAN_BOUND.  What is gone already is bounded well. */
	void (*set_bounds)(struct backend *b, const struct backend_handle *h,
	    const struct backend_bounds *bounds, backend_done_cb cb, void *arg);
	/* Is that a handle of ours as the front may name one?  What the
	 * front says is put into a path of the API. */
	bool (*is_id)(const char *id);
	/* Whose users those of a box are, as the backend says. */
	enum backend_users (*users)(const struct backend *b);
	/* All boxes of our instance, in any state; where each tenant has a
	 * place of its own (is_per_tenant), those of tenants that were named
	 * or whose boxes were asked for. */
	void (*list)(struct backend *b, backend_list_cb cb, void *arg);
	/* A tenant that may have boxes, for list.  NULL: it needs no names. */
	void (*name_tenant)(struct backend *b, const char *tenant);
	/* BACKEND_CAN_LOOK_IMAGE: whether it has that image, which is neither
	 * built nor pulled.  ERR_WRONG_STATE: it has not, and why says how the
	 * image's first use will make it; ERR_NOTFOUND: it has not, and nothing
	 * will; ERR_BACKEND: the backend did not say.  Only while it is up. */
	void (*look_image)(
	    struct backend *b, const char *ref, backend_done_cb cb, void *arg);
	/* BACKEND_CAN_EXEC: starts command (literals, then NULL) as root of a
	 * box that runs.  user is kept by pointer.  ERR_BACKEND: the engine is
	 * away or refused; ERR_NOTFOUND: there is no such box, or it does not
	 * run. */
	struct backend_exec *(*exec)(struct backend *b,
	    const struct backend_handle *h, const char *const *command,
	    const struct backend_exec_user *user, void *arg);
	/* Not wanted any more: nothing is called, and a stream ends.  Only
	 * before joined came with an error, and before ended. */
	void (*exec_cancel)(struct backend_exec *x);
	/* Files of this host that it reads after its start, for the fence:
	 * paths, then NULL. */
	const char *const *(*files)(const struct backend *b);
};

struct backend {
	const struct backend_ops *ops;
	char port[8]; /* that it connects to by TCP, for the fence; "": none */
	/* Each tenant's boxes are in a place of their own. */
	bool is_per_tenant;
};
static inline bool
backend_can(const struct backend *b, enum backend_can what)
{
	return (b->ops->can & (unsigned int)what) != 0;
}

#define BACKEND_WORD_MAX 80
/* Of an engine's runtimes, and what is known of each. */
#define BACKEND_RUNTIMES_SAID 16
struct backend_runtime {
	char name[RUNTIMES_NAME_MAX + 1];
	enum runtimes_kind kind;
	char platform[32]; /* gVisor's, when its arguments say it; "" */
};

/* Whether sandboxes that are to have no network have none. */
enum backend_network {
	BACKEND_NETWORK_NOT_TRIED, /* there is nothing to try */
	BACKEND_NETWORK_CLOSED,
	BACKEND_NETWORK_OPEN,
	BACKEND_NETWORK_UNKNOWN
};

/* What a backend says of itself, for the doctor; "" and false for what it does
 * not say. */
struct backend_facts {
	char where[BACKEND_PATH_MAX]; /* a socket's path, or a URL */
	bool is_cluster; /* of what its nodes are it says nothing */
	enum backend_network network;
	char network_why[ERR_TEXT_MAX]; /* of CLOSED "" */
	bool is_remote, has_tls;
	/* When its certificate ends, the authority's and ours; 0: none. */
	int64_t peer_ends_ms, ca_ends_ms, own_ends_ms;
	char engine[BACKEND_WORD_MAX]; /* versions as they are given */
	char containerd[BACKEND_WORD_MAX];
	char runc[BACKEND_WORD_MAX];   /* "": another runtime, or not said */
	char cgroup[BACKEND_WORD_MAX]; /* "1" or "2" */
	char kernel[BACKEND_WORD_MAX]; /* its release, as uname -r */
	char root[BACKEND_PATH_MAX];   /* where it keeps its data */
	char
	    storage[BACKEND_WORD_MAX]; /* its driver, and what that stands on */
	char runtimes[RUNTIMES_LIST_MAX];
	struct backend_runtime runtime[BACKEND_RUNTIMES_SAID];
	size_t nruntimes; /* of them */
	bool limits_memory, limits_pids, limits_cpu, limits_disk;
	bool rootless, maps_users, seccomp, apparmor, selinux;
	int64_t ahead_ms; /* its clock before ours; INT64_MIN: not said */
};
#endif
