/*
 * docker_int.h - what the files of worker/docker/ share
 */
#ifndef WORKER_DOCKER_DOCKER_INT_H
#define WORKER_DOCKER_DOCKER_INT_H

#include <sys/queue.h>

#include <jansson.h>

#include "worker/docker/answer.h"
#include "worker/docker/body.h"
#include "worker/docker/docker.h"
#include "worker/docker/sites.h"
#include "worker/http/api.h"

#define DOCKER_CREATE_MS 60000
#define DOCKER_START_MS 60000
#define DOCKER_INSPECT_MS 5000
#define DOCKER_REMOVE_MS 30000
#define DOCKER_STOP_MS 30000
#define DOCKER_UPDATE_MS 30000
#define DOCKER_EXEC_MS 10000
#define DOCKER_PING_MS 3000
#define DOCKER_INFO_MS 10000 /* Podman asks its programs for it */
#define DOCKER_LIST_MS 10000
#define DOCKER_BUILD_MS 1800000
#define DOCKER_FILES_MAX 5
#define ENGINE_IS_MAX 160

struct docker;

/* What engine.c writes: where the engine is, and whether. */
struct engine_hooks {
	void (*on_alive)(struct docker *d); /* it answered; often */
	void (*on_gone)(struct docker *d);  /* it does not any more */
	void (*on_news)(struct docker *d);  /* up or detail changed */
};
struct engine {
	const struct engine_hooks *hooks;
	struct sites sites;
	size_t site;    /* in use, or tried last */
	size_t tried;   /* in this round */
	bool is_chosen; /* that site answered: no other is tried any more */
	bool is_stale;  /* it may have become another version */
	uint64_t doubted_ms; /* when that was said last */
	unsigned int pings;  /* since it was asked what it is */
	int64_t warned_ms;   /* of a certificate's end */
	struct timer *tick;
	bool known; /* asked at least once */
	enum answer_quota quota;
	enum backend_users users;
	bool has_seccomp;
	unsigned int cpus;      /* answer.h */
	unsigned int no_cpuset; /* updates in a row that it refused one in */
	bool has_no_update; /* it cannot bound what runs, and that is said */
	json_t *advisories; /* advisory_list_open */
	bool up;
	bool said_up;
	struct answer_version is; /* while it is up */
	char detail[ERR_TEXT_MAX];
	char said[ERR_TEXT_MAX];
	char said_is[ENGINE_IS_MAX]; /* what it was then */
};

/* What image.c writes. */
struct image;
STAILQ_HEAD(images, image);

/* What prepared.c writes. */
struct prepared_image;
struct prepared_images {
	STAILQ_HEAD(, prepared_image) all;
	int fd; /* of the agent's program; -1: there is none to put in */
	char digest[ANSWER_DIGEST_LEN + 1]; /* its */
	char *by; /* this worker, in labels and names */
	/* Times since the start that something may have been left. */
	unsigned int nleft;
};

/* What prepared_tidy.c writes. */
struct prepared_tidying {
	uint64_t next_ms;
	unsigned int nleft; /* prepared.nleft, the last time */
};

/* What create.c writes. */
struct creates {
	TAILQ_HEAD(, backend_create) all;
	bool no_io_weight;     /* the engine said that it enforces none */
	unsigned int no_quota; /* creates without one: it refused one */
};

/* docker.c's, and in it what each of the others writes. */
struct docker {
	struct backend b;
	struct event_base *base;
	struct api *api;
	const struct policy *policy;
	char *instance;
	char *id; /* of the instance */
	char *dockerfile;
	struct body_podman podman;
	bool auto_build;
	bool looks;      /* for the image */
	bool has_looked; /* since the engine came */
	char lack[ERR_TEXT_MAX];
	const struct backend_watch *user;
	void *user_arg;
	bool freeing;
	const char *files[DOCKER_FILES_MAX + 1];

	struct engine engine;
	struct api_call *events; /* their stream; NULL: none */
	struct images images;
	struct prepared_images prepared;
	struct prepared_tidying tidying;
	struct creates creates;
	TAILQ_HEAD(, backend_exec) execs; /* exec.c's */
};

/* ask.c
 * docker_ask - an API call: as ask says, but for the path, which is printf's,
 * without the version; max_body 0: ANSWER_SMALL_MAX.  The arg must live until
 * on_done. */
struct api_call *docker_ask(struct docker *d, const struct api_ask *ask,
    const char *path, ...) PRINTF(3, 4);
/* docker_check - 0 for a whole answer with status 200, else as docker_fail */
int docker_check(
    const struct api_answer *a, const char *what, struct err *e) MUSTCHECK;
/* docker_fail - *e from an answer that is not what was wanted */
int docker_fail(const struct api_answer *a, const char *what, struct err *e);

/* container.c: as backend_ops says */
void docker_start(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg);
void docker_inspect(struct backend *b, const struct backend_handle *h,
    backend_container_cb cb, void *arg);
void docker_remove(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg);
void docker_stop(struct backend *b, const struct backend_handle *h,
    backend_done_cb cb, void *arg);
void docker_set_bounds(struct backend *b, const struct backend_handle *h,
    const struct backend_bounds *bounds, backend_done_cb cb, void *arg);
void docker_list(struct backend *b, backend_list_cb cb, void *arg);

/* engine.c
 * engine_init - hooks are kept by pointer; may fork (sites.h) */
int engine_init(struct docker *d, const struct conf *conf,
    const struct engine_hooks *hooks, struct err *e) MUSTCHECK;
/* engine_doubt - it may be another one now: it is asked at once */
void engine_doubt(struct docker *d);
void engine_clear(struct docker *d);
/* Where the policy wants them and the engine is not Podman. */
#define ENGINE_HAS_NO_OWN_USERS                                                \
	"SANDBOX_USERNS=auto is Podman's: Docker has no such mode, it has "    \
	"other users for all sandboxes together (start dockerd with "          \
	"--userns-remap=default and leave SANDBOX_USERNS empty)"

/*
 * image.c: the id of an image, building or pulling it when it is missing.
 * Those who ask at a time share one attempt; what came out holds for 5 s.
 */
struct image_wait;
void image_init(struct docker *d);
typedef void (*image_cb)(
    int rc, const char *id, const struct err *why, void *arg);
/* image_known - what came out last, NULL: ask with image_get */
const char *image_known(struct docker *d, const char *ref);
/* image_bytes - of one that is or was known; else 0 */
uint64_t image_bytes(struct docker *d, const char *ref);
/* cb later, once; image_leave: not at all */
struct image_wait *image_get(
    struct docker *d, const char *ref, image_cb cb, void *arg);
void image_leave(struct image_wait *w);
void image_forget(struct docker *d, const char *ref);
void image_clear(struct docker *d);
/* docker_look_image - as backend_ops says */
void docker_look_image(
    struct backend *b, const char *ref, backend_done_cb cb, void *arg);

/* exec.c: as backend_ops says */
struct backend_exec *exec_new(struct backend *b, const struct backend_handle *h,
    const char *const *command, const struct backend_exec_user *user,
    void *arg);
void exec_cancel(struct backend_exec *x);
/* exec_clear - before api_free: streams end */
void exec_clear(struct docker *d);
/*
 * prepared.c: the image that has the agent's program in it besides, by the id
 * of the one that is its base.  As image_get, and so on.
 */
#define PREPARED_REPO "localhost/mcp-sandboxd/prepared"
struct prepared_wait;
/* prepared_images_init - agent: path of the program, read before the fence;
 * NULL: none.  by: this worker, fit for a container's name. */
int prepared_images_init(struct docker *d, const char *agent, const char *by,
    struct err *e) MUSTCHECK;
/* prepared_known - its id; NULL: ask with prepared_get */
const char *prepared_known(const struct docker *d, const char *base);
/* prepared_failed - why it could not be made just now, or cannot ever; NULL: it
 * is worth asking */
const struct err *prepared_failed(const struct docker *d, const char *base);
/* prepared_bytes - of one that is or was known; else 0 */
uint64_t prepared_bytes(const struct docker *d, const char *base);
/* prepared_get - ref: the base's name, for texts.  ERR_NOTFOUND: base, or what
 * was made of it, went meanwhile. */
struct prepared_wait *prepared_get(struct docker *d, const char *base,
    const char *ref, image_cb cb, void *arg);
void prepared_leave(struct prepared_wait *w);
void prepared_forget(struct docker *d, const char *base);
/* prepared_is_used - this worker makes boxes of the image of that id */
bool prepared_is_used(const struct docker *d, const char *id);
/* prepared_is_at_work - for that base */
bool prepared_is_at_work(const struct docker *d, const char *base);
void prepared_images_clear(struct docker *d);

/* prepared_tidy - while the engine is there, as often as one likes */
void prepared_tidy(struct docker *d);

/* create.c: as backend_ops says */
struct backend_create *create_new(struct backend *b,
    const struct backend_spec *spec, backend_created_cb cb, void *arg);
void create_abandon(struct backend *b, struct backend_create *cr);
/* create_engine_gone - those that wait for their image fail */
void create_engine_gone(struct docker *d);
void create_clear(struct docker *d);

#endif
