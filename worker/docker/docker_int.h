/*
 * docker_int.h - what the files of worker/docker/ share
 */
#ifndef WORKER_DOCKER_DOCKER_INT_H
#define WORKER_DOCKER_DOCKER_INT_H

#include <sys/queue.h>

#include <jansson.h>

#include "worker/docker/answer.h"
#include "worker/docker/docker.h"
#include "worker/http/api.h"

#define DOCKER_CREATE_MS 60000
#define DOCKER_START_MS 60000
#define DOCKER_INSPECT_MS 5000
#define DOCKER_REMOVE_MS 30000
#define DOCKER_STOP_MS 30000
#define DOCKER_UPDATE_MS 30000
#define DOCKER_PING_MS 3000
#define DOCKER_LIST_MS 10000
#define DOCKER_BUILD_MS 1800000
#define DOCKER_SOCKETS_MAX 4

struct docker;

/* What engine.c writes: where the engine is, and whether. */
struct engine_hooks {
	void (*on_alive)(struct docker *d); /* it answered; often */
	void (*on_gone)(struct docker *d);  /* it does not any more */
	void (*on_news)(struct docker *d);  /* up or detail changed */
};
struct engine {
	const struct engine_hooks *hooks;
	char *sockets[DOCKER_SOCKETS_MAX];
	size_t nsockets;
	size_t socket; /* in use, or tried last */
	size_t tried;  /* in this round */
	struct timer *tick;
	bool known; /* asked at least once */
	enum answer_quota quota;
	enum backend_users users;
	bool has_seccomp;
	unsigned int cpus;      /* answer.h */
	unsigned int no_cpuset; /* updates in a row that it refused one in */
	json_t *advisories;     /* advisory_list_open */
	bool up;
	bool said_up;
	struct answer_version is; /* while it is up */
	char detail[ERR_TEXT_MAX];
	char said[ERR_TEXT_MAX];
};

/* What image.c writes. */
struct image;
STAILQ_HEAD(images, image);

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
	bool auto_build;
	bool looks;      /* for the image */
	bool has_looked; /* since the engine came */
	char lack[ERR_TEXT_MAX];
	const struct backend_watch *user;
	void *user_arg;
	bool freeing;
	const char *files[3];

	struct engine engine;
	struct api_call *events; /* their stream; NULL: none */
	struct images images;
	struct creates creates;
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
 * docker_usual_sockets - paths of where an engine usually listens, in the
 * order in which they are tried, and how many; the caller frees each */
size_t docker_usual_sockets(char *out[DOCKER_SOCKETS_MAX]);
/* engine_init - hooks are kept by pointer */
int engine_init(struct docker *d, const char *host,
    const struct engine_hooks *hooks, struct err *e) MUSTCHECK;
void engine_clear(struct docker *d);

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

/* create.c: as backend_ops says */
struct backend_create *create_new(struct backend *b,
    const struct backend_spec *spec, backend_created_cb cb, void *arg);
void create_abandon(struct backend *b, struct backend_create *cr);
/* create_engine_gone - those that wait for their image fail */
void create_engine_gone(struct docker *d);
void create_clear(struct docker *d);

#endif
