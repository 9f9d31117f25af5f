/*
 * What preparing images (prepared.c) has left and nobody needs: looked for at
 * the start, when there may be something (prepared.nleft), and every hour.
 *
 *	containers	of this worker's, which was killed at it; of others
 *			when they are LEFT_MS old
 *	images		no container was made of (the engine refuses to remove
 *			such a one), this worker does not use, and
 *			- whose base has no name any more: it was built anew,
 *			  or removed; or who lost their own to a later one; or
 *			- which are of another program, or of a base that a
 *			  digest alone names, and OTHERS_MS old: another server
 *			  may use them, and would have to make them again
 *
 * Every worker does it; two at a time do no harm.
 */
#include "worker/docker/docker_int.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/docker/body.h"

#define TIDY_MS 3600000
#define LEFT_MS 3600000
#define OTHERS_MS 86400000

struct tidy_call {
	struct docker *d;
	char what[ANSWER_IMAGE_ID_MAX];
};

/* ---- removing */

/* 404: another worker was faster; 409: it is in use. */
static void
tidied_cb(const struct api_answer *a, void *arg)
{
	struct tidy_call *c = arg;
	struct err e;

	if (a->rc == 0 && (a->status == 200 || a->status == 204)) {
		log_info("%s was left of preparing images: removed", c->what);
	} else if (a->rc == 0 && a->status != 404 && a->status != 409) {
		(void)docker_fail(a, "remove", &e);
		log_debug("%s: %s", c->what, e.msg);
	}
	free(c);
}

static void
tidy_remove(
    struct docker *d, const char *kind, const char *id, const char *options)
{
	struct tidy_call *c = xcalloc(1, sizeof(*c));

	c->d = d;
	(void)snprintf(c->what, sizeof(c->what), "%s", id);
	(void)docker_ask(d,
	    &(struct api_ask){.method = "DELETE",
		.timeout_ms = DOCKER_REMOVE_MS,
		.on_done = tidied_cb,
		.arg = c},
	    "/%s/%s?%s", kind, id, options);
}

/* ---- images */

static const struct answer_listed *
base_of(
    const struct answer_listed *l, const struct answer_listed *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(all[i].id, l->from.base) == 0)
			return &all[i];
	return NULL;
}

static bool
is_over(const struct docker *d, const struct answer_listed *l,
    const struct answer_listed *all, size_t n)
{
	const struct answer_listed *base = base_of(l, all, n);

	if (!l->is_prepared || prepared_is_used(d, l->id) ||
	    prepared_is_at_work(d, l->from.base))
		return false;
	if (base == NULL || (!base->has_tag && !base->has_digest) ||
	    !l->has_tag)
		return true;
	if (base->has_tag && strcmp(l->from.agent, d->prepared.digest) == 0)
		return false;
	return clock_wall_ms() - l->created_s * 1000 >= OTHERS_MS;
}

static void
images_cb(const struct api_answer *a, void *arg)
{
	AUTO(auto_free) struct answer_listed *all = NULL;
	struct docker *d = arg;
	size_t n = 0;
	struct err e;
	int rc = docker_check(a, "images", &e);

	if (rc == 0)
		rc = answer_images(
		    a->body, a->len, PREPARED_REPO ":", &all, &n, &e);
	if (rc != 0)
		log_debug("prepared images: %s", e.msg);
	for (size_t i = 0; i < n; i++)
		if (is_over(d, &all[i], all, n))
			tidy_remove(d, "images", all[i].id, "noprune=1");
}

/* ---- containers */

static bool
is_left(const struct docker *d, const struct answer_preparing *p)
{
	if (strcmp(p->by, d->prepared.by) == 0)
		return !prepared_is_at_work(d, p->from.base);
	return clock_wall_ms() - p->created_ms >= LEFT_MS;
}

static void
containers_cb(const struct api_answer *a, void *arg)
{
	AUTO(auto_free) struct answer_preparing *all = NULL;
	struct docker *d = arg;
	size_t n = 0;
	struct err e;
	int rc = docker_check(a, "containers", &e);

	if (rc == 0)
		rc = answer_preparings(a->body, a->len, &all, &n, &e);
	if (rc != 0)
		log_debug("containers of prepared images: %s", e.msg);
	for (size_t i = 0; i < n; i++)
		if (is_left(d, &all[i]))
			tidy_remove(d, "containers", all[i].id, "force=1&v=1");
}

/* ---- public */

void
prepared_tidy(struct docker *d)
{
	struct prepared_tidying *t = &d->tidying;
	AUTO(auto_free) char *filters = NULL;

	if (d->prepared.fd == -1 ||
	    (clock_mono_ms() < t->next_ms && t->nleft == d->prepared.nleft))
		return;
	t->next_ms = clock_mono_ms() + TIDY_MS;
	t->nleft = d->prepared.nleft;
	filters = body_filters_prepared();
	(void)docker_ask(d,
	    &(struct api_ask){.method = "GET",
		.timeout_ms = DOCKER_LIST_MS,
		.max_body = ANSWER_LIST_MAX,
		.on_done = containers_cb,
		.arg = d},
	    "/containers/json?all=1&filters=%s", filters);
	(void)docker_ask(d,
	    &(struct api_ask){.method = "GET",
		.timeout_ms = DOCKER_LIST_MS,
		.max_body = ANSWER_LIST_MAX,
		.on_done = images_cb,
		.arg = d},
	    "/images/json");
}
