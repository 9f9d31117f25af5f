#include "supervisor/tools/images.h"

#include <strings.h>
#include <unistd.h>

#include "common/xmalloc.h"
#include "supervisor/core/core.h"
#include "supervisor/core/logs.h"
#include "supervisor/core/threads.h"
#include "supervisor/tools/picture.h"

struct candidate {
	uint8_t sha256[32];
	char *name;
	size_t size;
};

struct images {
	struct thread_job job; /* first */
	struct store *store;   /* the thread opens them: calls that wait for
				* it are many, and descriptors are few */
	struct tenant_id tenant;
	struct candidate look[IMAGES_LOOKED_AT];
	size_t nlook;
	struct images_item found[IMAGES_MAX]; /* the thread's, until done */
	size_t n;
	bool is_reading;
	void (*cb)(void *arg); /* NULL: nobody wants them any more */
	void *arg;
};

static void
images_destroy(struct images *im)
{
	for (size_t i = 0; i < im->nlook; i++)
		free(im->look[i].name);
	for (size_t i = 0; i < im->n; i++) {
		free(im->found[i].name);
		free(im->found[i].data);
	}
	free(im);
}

/* ---- on a thread */

/* All of it; NULL: it is not as long as it was said to be, or gave room to
 * newer ones. */
static uint8_t *
read_whole(const struct images *im, const struct candidate *c)
{
	struct err e;
	AUTO(auto_close)
	int fd = store_blob_read(im->store, im->tenant, c->sha256, &e);
	uint8_t *p;
	size_t got = 0;
	ssize_t n = 1;

	if (fd < 0)
		return NULL;
	p = xmalloc(c->size);
	for (; got < c->size && n > 0; got += n > 0 ? (size_t)n : 0)
		n = pread(fd, p + got, c->size - got, (off_t)got);
	if (got == c->size)
		return p;
	free(p);
	return NULL;
}

static bool
take(struct images *im, struct candidate *c)
{
	struct images_item one = {.data = read_whole(im, c), .n = c->size};

	if (one.data != NULL)
		one.type = picture_type(one.data, one.n);
	if (one.type == NULL) {
		free(one.data);
		return false;
	}
	one.name = c->name;
	c->name = NULL;
	im->found[im->n++] = one;
	return true;
}

static enum thread_verdict
images_work(struct thread_job *job, void *room)
{
	struct images *im = (struct images *)job;
	size_t left = IMAGES_BYTES_MAX;

	(void)room;
	for (size_t i = 0; i < im->nlook && im->n < IMAGES_MAX; i++)
		if (im->look[i].size <= left && take(im, &im->look[i]))
			left -= im->look[i].size;
	return THREAD_DONE;
}

/* ---- on the loop */

static void
images_done(struct thread_job *job)
{
	struct images *im = (struct images *)job;

	im->is_reading = false;
	if (im->cb != NULL)
		im->cb(im->arg);
	else
		images_destroy(im);
}

/* The threads end before who waits for them. */
static void
images_drop(struct thread_job *job)
{
	struct images *im = (struct images *)job;

	im->is_reading = false;
	if (im->cb == NULL)
		images_destroy(im);
}

/* Only to save looking at every file: its bytes decide. */
static bool
may_be_picture(const struct store_artifact *a)
{
	static const char *const ends[] = {
	    ".png", ".jpg", ".jpeg", ".gif", ".webp"};
	const char *dot = strrchr(a->path, '.');

	if (dot == NULL || a->size == 0 || a->size > IMAGES_BYTES_MAX ||
	    a->lost_ms != 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (strcasecmp(dot, ends[i]) == 0)
			return true;
	return false;
}

static void
add_candidate(struct images *im, const struct store_artifact *a)
{
	struct candidate *c = &im->look[im->nlook++];

	memcpy(c->sha256, a->sha256, sizeof(c->sha256));
	c->name = xstrdup(a->path);
	c->size = (size_t)a->size;
}

struct images *
images_read(struct core *core, struct tenant_id tenant,
    const struct store_run *row, void (*cb)(void *arg), void *arg)
{
	struct images *im = NULL;

	for (uint32_t i = 0; i < row->nartifacts; i++) {
		if (!may_be_picture(&row->artifacts[i]))
			continue;
		if (im == NULL)
			im = xcalloc(1, sizeof(*im));
		if (im->nlook == IMAGES_LOOKED_AT)
			break;
		add_candidate(im, &row->artifacts[i]);
	}
	if (im == NULL)
		return NULL;
	im->store = core_store(core);
	im->tenant = tenant;
	im->cb = cb;
	im->arg = arg;
	im->is_reading = true;
	im->job = (struct thread_job){
	    .work = images_work, .done = images_done, .drop = images_drop};
	threads_add(
	    logs_threads(core_logs(core)), THREAD_LINE_REQUESTS, &im->job);
	return im;
}

size_t
images_count(const struct images *im)
{
	return im == NULL || im->is_reading ? 0 : im->n;
}

const struct images_item *
images_get(const struct images *im, size_t i)
{
	return &im->found[i];
}

void
images_free(struct images *im)
{
	if (im == NULL)
		return;
	im->cb = NULL;
	if (!im->is_reading)
		images_destroy(im);
}
