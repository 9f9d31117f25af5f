/*
 * Images with the agent's program in them, where no directory of this host can
 * be mounted (delivery_image.h): one for each base image.
 *
 *	LOOK	is there one of its name, with its labels?  -> END
 *	CREATE	a container of the base, which is never started
 *	FILL	the program, as a tar
 *	COMMIT	an image of it, with a name that no registry serves
 *	REMOVE	the container, also after a failure
 *	LOOK	what that says is the answer	-> END
 *
 * All who ask for one at a time share an attempt.  Images are the engine's and
 * serve every server on it: whoever needs one looks for it by its name, which
 * has the digests of program and base; two that make it at a time make two, and
 * the last has the name.  An id that was found holds until the engine does not
 * know it any more (prepared_forget): program and base are in it.  That the
 * engine refused holds for REFUSED_MS.
 *
 * A container has a name of this worker's and this base's.  What a worker that
 * was killed has left is so in the way of the next one that prepares that base,
 * which removes it; the others prepared_tidy.c finds.
 */
#include "worker/docker/docker_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <openssl/sha.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/frame.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/docker/body.h"

#define REFUSED_MS 5000
#define PROGRAM_BYTES_MAX (32u << 20)
#define TAR_ROOM 8192 /* beside the program */
#define SHORT_LEN 16  /* of a digest in a name */
#define FILL_MS 120000
#define COMMIT_MS 300000

enum prepared_stage {
	PREPARED_REST, /* good, failed, or not asked for yet */
	PREPARED_LOOK,
	PREPARED_MAKE
};

struct prepared_wait {
	image_cb cb; /* NULL: it is not wanted any more */
	void *arg;
	STAILQ_ENTRY(prepared_wait) link;
};

struct prepared_image {
	struct docker *d;
	char *base; /* id */
	char *ref;  /* the base's name, as the one who asked first has it */
	char *box;  /* name of the container */
	enum prepared_stage stage;
	bool made;       /* in this attempt */
	bool in_the_way; /* a container of its name was removed */
	bool is_known;
	struct answer_image is; /* while it is known */
	int rc;
	struct err why;
	uint64_t refused_until_ms;
	STAILQ_HEAD(, prepared_wait) waits;
	STAILQ_ENTRY(prepared_image) link;
};

static void prepared_look(struct prepared_image *p);
static void prepared_create(struct prepared_image *p);

/* ---- the end */

static void
prepared_tell(struct prepared_image *p)
{
	struct prepared_wait *w;

	/* At work again: a callback asked anew, the rest waits for that. */
	while ((w = STAILQ_FIRST(&p->waits)) != NULL &&
	    p->stage == PREPARED_REST) {
		STAILQ_REMOVE_HEAD(&p->waits, link);
		if (w->cb != NULL)
			w->cb(p->rc, p->is.id, &p->why, w->arg);
		free(w);
	}
}

static void
prepared_end(struct prepared_image *p)
{
	static struct log_limit limit;

	p->stage = PREPARED_REST;
	p->is_known = p->rc == 0;
	if (p->rc == 0 && p->made)
		log_info("image %s: the agent's program is in %s now", p->ref,
		    p->is.id);
	else if (p->rc != 0 && !p->d->freeing)
		log_warn_limited(&limit, "%s", p->why.msg);
	prepared_tell(p);
}

static const char *
hint_of(const struct err *why, long status)
{
	if (strcasestr(why->msg, "no space left") != NULL)
		return "; make room on the engine's disk";
	/* What proxies before an engine say, and engines with a policy. */
	if (status == 401 || status == 403 || status == 405 || status == 501)
		return "; let this server make containers, put files into them "
		       "and commit images, or share a directory with the "
		       "engine";
	return "";
}

/* The code of why, ERR_NOTFOUND where the engine answered 404.  a NULL: it was
 * not asked. */
static void
prepared_fail(
    struct prepared_image *p, const struct api_answer *a, const struct err *why)
{
	const char *hint =
	    hint_of(why, a != NULL && a->rc == 0 ? a->status : 0);

	/* One that is away, or lost an image, is asked again at once. */
	if (a != NULL && a->rc == 0 && a->status != 404)
		p->refused_until_ms = clock_mono_ms() + REFUSED_MS;
	p->rc = err_set(&p->why, why->code,
	    "image %.120s cannot be given the agent's program: %.250s%s",
	    p->ref, why->msg, hint);
}

/* ---- the container goes */

static void
emptied_cb(const struct api_answer *a, void *arg)
{
	struct prepared_image *p = arg;
	static struct log_limit limit;
	struct err e;

	if (a->rc != 0 || (a->status != 204 && a->status != 404)) {
		(void)docker_fail(a, "remove", &e);
		p->d->prepared.nleft++;
		if (!p->d->freeing)
			log_warn_limited(&limit,
			    "container %s is left over for now: %s", p->box,
			    e.msg);
	}
	if (p->rc == 0)
		prepared_look(p);
	else
		prepared_end(p);
}

static void
box_remove(struct prepared_image *p,
    void (*on_done)(const struct api_answer *, void *))
{
	(void)docker_ask(p->d,
	    &(struct api_ask){.method = "DELETE",
		.timeout_ms = DOCKER_REMOVE_MS,
		.on_done = on_done,
		.arg = p},
	    "/containers/%s?force=1&v=1", p->box);
}

/* ---- making it */

static struct body_prepared
labels_of(const struct prepared_image *p)
{
	return (struct body_prepared){.agent = p->d->prepared.digest,
	    .base = p->base,
	    .by = p->d->prepared.by,
	    .created_ms = clock_wall_ms()};
}

static void
committed_cb(const struct api_answer *a, void *arg)
{
	struct prepared_image *p = arg;
	struct err e;

	if (a->rc == 0 && a->status == 201) {
		p->made = true;
		p->d->prepared.nleft++; /* one of an older base, perhaps */
	} else {
		(void)docker_fail(a, "commit", &e);
		prepared_fail(p, a, &e);
	}
	box_remove(p, emptied_cb);
}

static void
tag_of(const struct prepared_image *p, char *tag, size_t size)
{
	const char *colon = strchr(p->base, ':');

	(void)snprintf(tag, size, "%.*s-%.*s", SHORT_LEN, p->d->prepared.digest,
	    SHORT_LEN, colon != NULL ? colon + 1 : p->base);
}

static void
prepared_commit(struct prepared_image *p)
{
	const struct body_prepared labels = labels_of(p);
	AUTO(auto_free) char *repo = api_escape(PREPARED_REPO);
	AUTO(auto_free) char *body = body_commit(&labels);
	char tag[2 * SHORT_LEN + 2];

	tag_of(p, tag, sizeof(tag));
	(void)docker_ask(p->d,
	    &(struct api_ask){.method = "POST",
		.body = body,
		.body_len = strlen(body),
		.timeout_ms = COMMIT_MS,
		.on_done = committed_cb,
		.arg = p},
	    "/commit?container=%s&repo=%s&tag=%s&pause=0", p->box, repo, tag);
}

static void
filled_cb(const struct api_answer *a, void *arg)
{
	struct prepared_image *p = arg;
	struct err e;

	if (docker_check(a, "archive", &e) == 0) {
		prepared_commit(p);
		return;
	}
	prepared_fail(p, a, &e);
	box_remove(p, emptied_cb);
}

/* hex: of its digest. */
static int
read_file(int fd, char **out, size_t *n,
    char hex[HEX_BYTES(SHA256_DIGEST_LENGTH)], struct err *e)
{
	AUTO(auto_free) char *program = NULL;
	uint8_t digest[SHA256_DIGEST_LENGTH];
	struct stat st;

	if (fstat(fd, &st) == -1)
		return err_errno(e, "the agent's program");
	if (st.st_size <= 0 || st.st_size > PROGRAM_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the agent's program: %lld bytes",
		    (long long)st.st_size);
	*n = (size_t)st.st_size;
	program = xmalloc(*n);
	if (fd_pread_all(fd, program, *n, 0, e) != (ssize_t)*n)
		return err_set(
		    e, ERR_SYS, "the agent's program cannot be read whole");
	(void)SHA256((const uint8_t *)program, *n, digest);
	hex_encode(digest, sizeof(digest), hex);
	*out = program;
	program = NULL;
	return 0;
}

/* The program, from the descriptor that was opened before the fence: only
 * while it is what it was. */
static int
read_program(const struct prepared_images *all, struct buf *tar, struct err *e)
{
	char hex[HEX_BYTES(SHA256_DIGEST_LENGTH)];
	AUTO(auto_free) char *program = NULL;
	size_t n;

	if (read_file(all->fd, &program, &n, hex, e) != 0)
		return e->code;
	if (strcmp(hex, all->digest) != 0)
		return err_set(e, ERR_SYS,
		    "the agent's program was changed: restart the server");
	return body_tar(
	    (const struct body_entry[]){
		{.name = &(FRAME_PROGRAM_DIR_IN_SANDBOX "/")[1], .mode = 0755},
		{.name = &FRAME_PROGRAM_IN_SANDBOX[1],
		    .mode = 0555,
		    .data = program,
		    .len = n}},
	    2, tar, e);
}

static void
prepared_fill(struct prepared_image *p)
{
	struct buf tar;
	struct err e;

	buf_init(&tar, PROGRAM_BYTES_MAX + TAR_ROOM);
	if (read_program(&p->d->prepared, &tar, &e) == 0) {
		(void)docker_ask(p->d,
		    &(struct api_ask){.method = "PUT",
			.body = buf_data(&tar),
			.body_len = buf_len(&tar),
			.content_type = "application/x-tar",
			.timeout_ms = FILL_MS,
			.on_done = filled_cb,
			.arg = p},
		    "/containers/%s/archive?path=%%2F", p->box);
	} else {
		prepared_fail(p, NULL, &e);
		box_remove(p, emptied_cb);
	}
	buf_clear(&tar);
}

static void
way_cleared_cb(const struct api_answer *a, void *arg)
{
	(void)a; /* the create says whether it is gone */
	prepared_create(arg);
}

static void
made_cb(const struct api_answer *a, void *arg)
{
	struct prepared_image *p = arg;
	struct err e;

	if (a->rc == 0 && a->status == 201) {
		prepared_fill(p);
		return;
	}
	(void)docker_fail(a, "create", &e);
	if (a->rc == 0 && a->status == 409 && !p->in_the_way) {
		p->in_the_way = true;
		box_remove(p, way_cleared_cb);
		return;
	}
	prepared_fail(p, a, &e);
	if (a->rc == 0)
		prepared_end(p);
	else /* it may have been made */
		box_remove(p, emptied_cb);
}

static void
prepared_create(struct prepared_image *p)
{
	const struct body_prepared labels = labels_of(p);
	AUTO(auto_free) char *body = body_prepare(&labels);

	(void)docker_ask(p->d,
	    &(struct api_ask){.method = "POST",
		.body = body,
		.body_len = strlen(body),
		.timeout_ms = DOCKER_CREATE_MS,
		.on_done = made_cb,
		.arg = p},
	    "/containers/create?name=%s", p->box);
}

/* ---- looking for it */

/* A name is short, and an image of it may have come with an archive. */
static bool
is_it(const struct prepared_image *p, const struct answer_image *is)
{
	return strcmp(is->from.agent, p->d->prepared.digest) == 0 &&
	    strcmp(is->from.base, p->base) == 0;
}

static void
found_cb(const struct api_answer *a, void *arg)
{
	struct prepared_image *p = arg;
	struct answer_image is;
	struct err e;
	int rc = docker_check(a, "image", &e);

	if (rc == 0)
		rc = answer_image(a->body, a->len, &is, &e);
	if (rc == 0 && is_it(p, &is)) {
		p->is = is;
		prepared_end(p);
	} else if ((rc == 0 || rc == ERR_NOTFOUND) && !p->made &&
	    !p->d->freeing) {
		log_info(
		    "image %s: the agent's program is put into it", p->ref);
		p->stage = PREPARED_MAKE;
		prepared_create(p);
	} else {
		if (rc == 0)
			(void)err_set(&e, ERR_BACKEND,
			    "the engine keeps no labels of a commit");
		prepared_fail(p, a, &e);
		prepared_end(p);
	}
}

static void
prepared_look(struct prepared_image *p)
{
	char tag[2 * SHORT_LEN + 2];

	p->stage = PREPARED_LOOK;
	p->rc = 0;
	tag_of(p, tag, sizeof(tag));
	(void)docker_ask(p->d,
	    &(struct api_ask){.method = "GET",
		.timeout_ms = DOCKER_INSPECT_MS,
		.on_done = found_cb,
		.arg = p},
	    "/images/" PREPARED_REPO ":%s/json", tag);
}

/* ---- public */

static int
digest_program(struct prepared_images *all, struct err *e)
{
	AUTO(auto_free) char *program = NULL;
	size_t n = 0;

	return read_file(all->fd, &program, &n, all->digest, e);
}

int
prepared_images_init(
    struct docker *d, const char *agent, const char *by, struct err *e)
{
	struct prepared_images *all = &d->prepared;

	STAILQ_INIT(&all->all);
	all->fd = -1;
	if (agent == NULL)
		return 0;
	all->by = xstrdup(by);
	all->fd = open(agent, O_RDONLY | O_CLOEXEC);
	if (all->fd == -1)
		return err_errno(e, "open %s", agent);
	return digest_program(all, e);
}

static struct prepared_image *
prepared_find(const struct docker *d, const char *base)
{
	struct prepared_image *p;

	STAILQ_FOREACH (p, &d->prepared.all, link)
		if (strcmp(p->base, base) == 0)
			return p;
	return NULL;
}

const char *
prepared_known(const struct docker *d, const char *base)
{
	const struct prepared_image *p = prepared_find(d, base);

	return p != NULL && p->is_known ? p->is.id : NULL;
}

const struct err *
prepared_failed(const struct docker *d, const char *base)
{
	static const struct err none = {.code = ERR_BACKEND,
	    .msg = "this server has no program of the agent to put into an "
		   "image"};
	const struct prepared_image *p = prepared_find(d, base);

	if (d->prepared.fd == -1)
		return &none;
	return p != NULL && clock_mono_ms() < p->refused_until_ms ? &p->why :
								    NULL;
}

uint64_t
prepared_bytes(const struct docker *d, const char *base)
{
	const struct prepared_image *p = prepared_find(d, base);

	return p == NULL ? 0 : p->is.bytes;
}

bool
prepared_is_used(const struct docker *d, const char *id)
{
	const struct prepared_image *p;

	STAILQ_FOREACH (p, &d->prepared.all, link)
		if (p->is_known && strcmp(p->is.id, id) == 0)
			return true;
	return false;
}

bool
prepared_is_at_work(const struct docker *d, const char *base)
{
	const struct prepared_image *p = prepared_find(d, base);

	return p != NULL && p->stage != PREPARED_REST;
}

static struct prepared_image *
prepared_new(struct docker *d, const char *base, const char *ref)
{
	struct prepared_image *p = xcalloc(1, sizeof(*p));
	const char *colon = strchr(base, ':');

	p->d = d;
	p->base = xstrdup(base);
	p->ref = xstrdup(ref);
	p->box = xasprintf("mcp-prepare-%s-%.*s", d->prepared.by, SHORT_LEN,
	    colon != NULL ? colon + 1 : base);
	STAILQ_INIT(&p->waits);
	STAILQ_INSERT_TAIL(&d->prepared.all, p, link);
	return p;
}

struct prepared_wait *
prepared_get(
    struct docker *d, const char *base, const char *ref, image_cb cb, void *arg)
{
	struct prepared_wait *w = xcalloc(1, sizeof(*w));
	struct prepared_image *p = prepared_find(d, base);

	if (p == NULL)
		p = prepared_new(d, base, ref);
	w->cb = cb;
	w->arg = arg;
	STAILQ_INSERT_TAIL(&p->waits, w, link);
	if (p->stage != PREPARED_REST)
		return w;
	p->is_known = false;
	p->made = false;
	p->in_the_way = false;
	prepared_look(p);
	return w;
}

void
prepared_leave(struct prepared_wait *w)
{
	w->cb = NULL;
}

void
prepared_forget(struct docker *d, const char *base)
{
	struct prepared_image *p = prepared_find(d, base);

	if (p != NULL)
		p->is_known = false;
}

void
prepared_images_clear(struct docker *d)
{
	struct prepared_images *all = &d->prepared;
	struct prepared_wait *w;
	struct prepared_image *p;

	while ((p = STAILQ_FIRST(&all->all)) != NULL) {
		STAILQ_REMOVE_HEAD(&all->all, link);
		while ((w = STAILQ_FIRST(&p->waits)) != NULL) {
			STAILQ_REMOVE_HEAD(&p->waits, link);
			free(w);
		}
		free(p->base);
		free(p->ref);
		free(p->box);
		free(p);
	}
	if (all->fd != -1)
		(void)close(all->fd);
	free(all->by);
}
