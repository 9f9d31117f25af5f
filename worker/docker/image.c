/*
 * The id of an image by its name.
 *
 *	look -> there: its id holds for HOLDS_MS
 *	     -> missing: build it (the configured image, from its Dockerfile) or
 *		pull it, once; then look again, and what that says is the answer
 *
 * A name below localhost/ is nobody's but this engine's: it is never pulled.
 *
 * All who ask while an attempt is under way wait for it.
 */
#include "worker/docker/docker_int.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/docker/body.h"

#define HOLDS_MS 5000 /* a new build of the image is seen after that */
#define DOCKERFILE_MAX (1u << 20)
#define LOCAL_PREFIX "localhost/"

struct image_wait {
	struct image *image;
	bool left; /* cb is not wanted any more */
	image_cb cb;
	void *arg;
	STAILQ_ENTRY(image_wait) link;
};

struct image {
	struct docker *d;
	char *ref;
	bool busy;
	bool made; /* building or pulling was tried in this attempt */
	uint64_t holds_until_ms;
	struct answer_image is; /* good while rc is 0 */
	int rc;
	struct err why;
	char problem[ANSWER_TEXT_MAX]; /* of the build or pull */
	STAILQ_HEAD(, image_wait) waits;
	STAILQ_ENTRY(image) link;
};

static void image_inspect(struct image *im);

static void
image_tell(struct image *im)
{
	struct image_wait *w;

	/* busy again: a callback asked anew, the rest waits for that */
	while ((w = STAILQ_FIRST(&im->waits)) != NULL && !im->busy) {
		STAILQ_REMOVE_HEAD(&im->waits, link);
		if (!w->left)
			w->cb(im->rc, im->is.id, &im->why, w->arg);
		free(w);
	}
}

static void
image_end(struct image *im, int rc)
{
	im->busy = false;
	im->rc = rc;
	im->holds_until_ms = clock_mono_ms() + HOLDS_MS;
	image_tell(im);
}

static void
image_missing(struct image *im)
{
	image_end(im,
	    err_set(&im->why, ERR_BACKEND,
		"image %s is missing: build it with ./bootstrap or set "
		"SANDBOX_IMAGE%s%s",
		im->ref, im->problem[0] != '\0' ? "; " : "", im->problem));
}

/* ---- making it */

static void
progress_line_cb(const char *line, size_t n, void *arg)
{
	struct image *im = arg;

	(void)answer_progress(line, n, im->problem);
}

static void
progress_done_cb(const struct api_answer *a, void *arg)
{
	struct image *im = arg;
	struct err e;

	if (docker_check(a, "making it failed", &e) != 0)
		(void)snprintf(
		    im->problem, sizeof(im->problem), "%.290s", e.msg);
	image_inspect(im);
}

/* What the engine is asked to make it with. */
static struct api_ask
make_ask(struct image *im)
{
	im->made = true;
	im->problem[0] = '\0';
	return (struct api_ask){.method = "POST",
	    .content_type = "application/x-tar",
	    .timeout_ms = DOCKER_BUILD_MS,
	    .on_line = progress_line_cb,
	    .on_done = progress_done_cb,
	    .arg = im};
}

static bool
is_local(const struct image *im)
{
	return strncmp(im->ref, LOCAL_PREFIX, sizeof(LOCAL_PREFIX) - 1) == 0;
}

/* Ours is for an image of ours only: under a name that a registry serves it
 * would be another image. */
static const char *
dockerfile_of(const struct image *im)
{
	if (strcmp(im->ref, im->d->policy->image) != 0)
		return NULL;
	if (im->d->dockerfile[0] != '\0')
		return im->d->dockerfile;
	return is_local(im) ? DOCKER_INSTALLED_FILE : NULL;
}

/* 0: it is being built. */
static int
image_build(struct image *im)
{
	const char *dockerfile = dockerfile_of(im);
	AUTO(auto_free) char *tag = api_escape(im->ref);
	AUTO(auto_free) char *text = NULL;
	struct body_entry file;
	struct api_ask ask;
	struct buf tar;
	struct err e;
	size_t n;

	if (dockerfile == NULL)
		return -1;
	if (fd_read_file(dockerfile, DOCKERFILE_MAX, &text, &n, &e) != 0) {
		(void)snprintf(im->problem, sizeof(im->problem),
		    "SANDBOX_DOCKERFILE_PATH: %.250s", e.msg);
		log_warn("image %s: %s", im->ref, im->problem);
		return -1;
	}
	buf_init(&tar, 2 * DOCKERFILE_MAX);
	file = (struct body_entry){
	    .name = "Dockerfile", .mode = 0644, .data = text, .len = n};
	if (body_tar(&file, 1, &tar, &e) != 0) {
		buf_clear(&tar);
		return -1;
	}
	log_info(
	    "image %s is missing: building it from %s", im->ref, dockerfile);
	ask = make_ask(im);
	ask.body = buf_data(&tar);
	ask.body_len = buf_len(&tar);
	(void)docker_ask(im->d, &ask, "/build?rm=1&forcerm=1&t=%s", tag);
	buf_clear(&tar);
	return 0;
}

static void
image_pull(struct image *im)
{
	AUTO(auto_free) char *name = xstrdup(im->ref);
	AUTO(auto_free) char *from = NULL;
	AUTO(auto_free) char *which = NULL;
	struct api_ask ask = make_ask(im);
	char *colon = strrchr(name, ':');
	const char *tag = "latest";

	if (strchr(name, '@') != NULL) {
		tag = ""; /* the digest says which */
	} else if (colon != NULL && strchr(colon, '/') == NULL) {
		*colon = '\0';
		tag = colon + 1;
	}
	from = api_escape(name);
	which = api_escape(tag);
	log_info("image %s is missing: pulling it", im->ref);
	(void)docker_ask(
	    im->d, &ask, "/images/create?fromImage=%s&tag=%s", from, which);
}

/* ---- looking for it */

static void
image_inspected_cb(const struct api_answer *a, void *arg)
{
	struct image *im = arg;

	if (a->rc == 0 && a->status == 200) {
		image_end(im, answer_image(a->body, a->len, &im->is, &im->why));
	} else if (a->rc != 0 || a->status != 404) {
		(void)docker_fail(a, "image", &im->why);
		image_end(im, ERR_BACKEND);
	} else if (im->made || !im->d->auto_build || im->d->freeing) {
		image_missing(im);
	} else if (image_build(im) != 0) {
		if (is_local(im))
			image_missing(im);
		else
			image_pull(im);
	}
}

static void
image_inspect(struct image *im)
{
	(void)docker_ask(im->d,
	    &(struct api_ask){.method = "GET",
		.timeout_ms = DOCKER_INSPECT_MS,
		.on_done = image_inspected_cb,
		.arg = im},
	    "/images/%s/json", im->ref);
}

/* ---- looking only */

struct image_look {
	struct docker *d;
	char *ref;
	backend_done_cb cb;
	void *arg;
};

/* As image_inspected_cb goes on where it is missing. */
static int
say_missing(const struct image_look *l, struct err *e)
{
	const struct image im = {.d = l->d, .ref = l->ref};
	const char *dockerfile = dockerfile_of(&im);

	if (l->d->auto_build && dockerfile != NULL &&
	    access(dockerfile, R_OK) == 0)
		return err_set(e, ERR_WRONG_STATE,
		    "image %s is missing: its first use builds it from %s",
		    l->ref, dockerfile);
	if (l->d->auto_build && !is_local(&im))
		return err_set(e, ERR_WRONG_STATE,
		    "image %s is missing: its first use pulls it", l->ref);
	return err_set(e, ERR_NOTFOUND,
	    "image %s is missing, and no sandbox can be made of it: build it "
	    "with ./bootstrap or set SANDBOX_IMAGE",
	    l->ref);
}

static void
looked_cb(const struct api_answer *a, void *arg)
{
	struct image_look *l = arg;
	struct err e = {0};
	int rc = docker_check(a, "image", &e);

	if (a->rc == 0 && a->status == 404)
		rc = say_missing(l, &e);
	l->cb(rc, &e, l->arg);
	free(l->ref);
	free(l);
}

void
docker_look_image(
    struct backend *b, const char *ref, backend_done_cb cb, void *arg)
{
	struct image_look *l = xcalloc(1, sizeof(*l));

	l->d = (struct docker *)b;
	l->ref = xstrdup(ref);
	l->cb = cb;
	l->arg = arg;
	(void)docker_ask(l->d,
	    &(struct api_ask){.method = "GET",
		.timeout_ms = DOCKER_INSPECT_MS,
		.on_done = looked_cb,
		.arg = l},
	    "/images/%s/json", ref);
}

/* ---- public */

void
image_init(struct docker *d)
{
	STAILQ_INIT(&d->images);
}

static struct image *
image_find(struct docker *d, const char *ref)
{
	struct image *im;

	STAILQ_FOREACH (im, &d->images, link)
		if (strcmp(im->ref, ref) == 0)
			return im;
	return NULL;
}

struct image_wait *
image_get(struct docker *d, const char *ref, image_cb cb, void *arg)
{
	struct image_wait *w = xcalloc(1, sizeof(*w));
	struct image *im = image_find(d, ref);

	if (im == NULL) {
		im = xcalloc(1, sizeof(*im));
		im->d = d;
		im->ref = xstrdup(ref);
		STAILQ_INIT(&im->waits);
		STAILQ_INSERT_TAIL(&d->images, im, link);
	}
	w->image = im;
	w->cb = cb;
	w->arg = arg;
	STAILQ_INSERT_TAIL(&im->waits, w, link);
	if (im->busy)
		return w;
	im->busy = true;
	im->made = false;
	im->problem[0] = '\0';
	image_inspect(im);
	return w;
}

const char *
image_known(struct docker *d, const char *ref)
{
	const struct image *im = image_find(d, ref);

	if (im == NULL || im->busy || im->rc != 0 ||
	    clock_mono_ms() >= im->holds_until_ms)
		return NULL;
	return im->is.id;
}

uint64_t
image_bytes(struct docker *d, const char *ref)
{
	const struct image *im = image_find(d, ref);

	return im == NULL ? 0 : im->is.bytes;
}

void
image_leave(struct image_wait *w)
{
	w->left = true;
}

void
image_forget(struct docker *d, const char *ref)
{
	struct image *im = image_find(d, ref);

	if (im != NULL)
		im->holds_until_ms = 0;
}

void
image_clear(struct docker *d)
{
	struct image_wait *w;
	struct image *im;

	while ((im = STAILQ_FIRST(&d->images)) != NULL) {
		STAILQ_REMOVE_HEAD(&d->images, link);
		while ((w = STAILQ_FIRST(&im->waits)) != NULL) {
			STAILQ_REMOVE_HEAD(&im->waits, link);
			free(w);
		}
		free(im->ref);
		free(im);
	}
}
