/*
 * answer.h - what the engine says, read with distrust
 *
 * Every answer is bounded in size and depth before it is parsed, every field
 * is checked for type and range.  ERR_BACKEND with a text that names what was
 * wrong; outputs are touched only on success.
 */
#ifndef WORKER_DOCKER_ANSWER_H
#define WORKER_DOCKER_ANSWER_H

#include "common/base.h"
#include "common/err.h"
#include "worker/backend.h"
#include "worker/http/api.h"

#define ANSWER_SMALL_MAX (1u << 20) /* inspect, info, version, create */
#define ANSWER_LIST_MAX (64u << 20) /* all containers */
#define ANSWER_TEXT_MAX 300         /* of the engine's own messages */
#define ANSWER_IMAGE_ID_MAX 128
#define ANSWER_IMAGES_MAX 20000

/* answer_created - of POST /containers/create; warning: the first, or "" */
int answer_created(const char *s, size_t n, struct backend_handle *out,
    char warning[ANSWER_TEXT_MAX], struct err *e) MUSTCHECK;

/* answer_container - of an inspection; id is our instance's.  out->report is
 * NULL unless it is ours, then report. */
int answer_container(const char *s, size_t n, const char *id,
    struct backend_container *out, struct backend_report *report,
    struct err *e) MUSTCHECK;

/* answer_list - *out is the caller's to free; entries that cannot be read are
 * left out */
int answer_list(const char *s, size_t n, const char *id,
    struct backend_container **out, size_t *nout, struct err *e) MUSTCHECK;

#define ANSWER_DIGEST_LEN 64 /* of SHA-256, hexadecimal */

/* What its labels say that it was prepared from; "": it was not, or they are
 * not as ours are. */
struct answer_prepared {
	char agent[ANSWER_DIGEST_LEN + 1];
	char base[ANSWER_IMAGE_ID_MAX];
};
struct answer_image {
	char id[ANSWER_IMAGE_ID_MAX];
	uint64_t bytes;
	struct answer_prepared from;
};
int answer_image(
    const char *s, size_t n, struct answer_image *out, struct err *e) MUSTCHECK;

/* An image of a list. */
struct answer_listed {
	char id[ANSWER_IMAGE_ID_MAX];
	int64_t created_s;        /* by the engine's clock */
	bool has_tag, has_digest; /* a name by which it may be asked for */
	bool is_prepared;         /* its labels are whole, its names ours */
	struct answer_prepared from;
};
/* answer_images - of GET /images/json; as answer_list.  prefix: of the names
 * that prepared images have. */
int answer_images(const char *s, size_t n, const char *prefix,
    struct answer_listed **out, size_t *nout, struct err *e) MUSTCHECK;

/* A container by which an image is prepared, or was to be. */
#define ANSWER_BY_MAX 80
struct answer_preparing {
	char id[BACKEND_ID_MAX + 1];
	char by[ANSWER_BY_MAX];
	int64_t created_ms; /* by its maker's clock */
	struct answer_prepared from;
};
/* answer_preparings - of GET /containers/json; as answer_list */
int answer_preparings(const char *s, size_t n, struct answer_preparing **out,
    size_t *nout, struct err *e) MUSTCHECK;

struct answer_version {
	char speak[16]; /* of the API's: 1.41, or as near as it can: "v1.41" */
	bool is_podman;
	struct backend_about about; /* all but the runtime */
};
int answer_version(const char *s, size_t n, struct answer_version *out,
    struct err *e) MUSTCHECK;

/* Whether a container's file system can be limited: as far as the storage
 * driver's name tells.  What it really does, a create shows. */
enum answer_quota {
	ANSWER_QUOTA_NONE,
	ANSWER_QUOTA_LAYER, /* what is added to the image */
	ANSWER_QUOTA_WHOLE  /* the image counts, too */
};
struct answer_info {
	bool memory_limit, pids_limit, cpu_quota;
	unsigned int cpus; /* that it has; 0: it does not say */
	bool userns, rootless, seccomp, apparmor, selinux;
	bool has_runtime; /* the one asked for; true for "" */
	char runtimes[RUNTIMES_LIST_MAX];
	enum answer_quota quota;
	char storage[BACKEND_WORD_MAX]; /* the driver and what it stands on, in
					   words */
	char default_runtime[64];       /* printable */
};
/* answer_remaps - root of a container is no root of the host */
static inline bool
answer_remaps(const struct answer_info *info)
{
	return info->userns || info->rootless;
}
int answer_info(const char *s, size_t n, const char *runtime,
    struct answer_info *out, struct err *e) MUSTCHECK;

struct answer_event {
	enum backend_change what;
	struct backend_handle handle;
};
/* answer_event - 1, or 0 for an event of no interest */
int answer_event(
    const char *s, size_t n, struct answer_event *out, struct err *e) MUSTCHECK;

/* answer_progress - a line of a build's or a pull's output: 1 with the text
 * of the failure it reports, else 0 */
int answer_progress(const char *s, size_t n, char text[ANSWER_TEXT_MAX]);

/* answer_time_ms - RFC 3339, with Z or an offset; INT64_MIN for what is not */
int64_t answer_time_ms(const char *s);

/* answer_message - the "message" of an error, or what the body begins with;
 * on one line, printable */
void answer_message(const char *s, size_t n, char text[ANSWER_TEXT_MAX]);

#endif
