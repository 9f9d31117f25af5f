#include "images/agent/files.h"

#include <errno.h>

#include "common/xmalloc.h"

void
files_init(struct files *f, struct mux *mux)
{
	memset(f, 0, sizeof(*f));
	f->mux = mux;
	TAILQ_INIT(&f->jobs);
	taken_init(&f->taken);
	taken_init(&f->unstored);
}

int
files_claim(struct files *f, uint32_t chan, struct err *e)
{
	if (mux_claim(f->mux, chan, e) != 0)
		return ERR_PROTO;
	if (f->count < FILES_MAX)
		return 1;
	mux_refuse(f->mux, chan, EAGAIN, "too many files at a time");
	return 0;
}

void
files_add(struct files *f, struct file_job *j, uint32_t chan,
    const struct chan_ops *chan_ops, const struct file_job_ops *ops)
{
	j->files = f;
	j->ops = ops;
	mux_add(f->mux, &j->chan, chan, chan_ops, NULL);
	TAILQ_INSERT_TAIL(&f->jobs, j, by_turn);
	f->count++;
}

struct file_job *
files_job_of(struct chan *c)
{
	return HASH_OF(&c->by_number, struct file_job, chan.by_number);
}

static void
job_free(struct file_job *j)
{
	TAILQ_REMOVE(&j->files->jobs, j, by_turn);
	j->files->count--;
	j->ops->free(j);
}

void
files_on_gone(struct chan *c, enum chan_gone how)
{
	(void)how; /* it ends either way */
	job_free(files_job_of(c));
}

void
files_end(struct file_job *j, int error)
{
	mux_close(
	    j->files->mux, &j->chan, error, error != 0 ? strerror(error) : "");
	job_free(j);
}

bool
files_work(struct files *f)
{
	struct uplink *u = f->mux->uplink;
	uint32_t n = f->count;
	bool more = false;

	for (; n > 0 && uplink_has_room(u); n--) {
		struct file_job *j = TAILQ_FIRST(&f->jobs);
		int rc;

		TAILQ_REMOVE(&f->jobs, j, by_turn);
		TAILQ_INSERT_TAIL(&f->jobs, j, by_turn);
		if (!j->ops->can_go_on(j))
			continue;
		rc = j->ops->slice(j);
		uplink_urgent(u);
		if (rc == FILES_GOES_ON)
			more = j->ops->can_go_on(j) || more;
		else
			files_end(j, rc);
	}
	return more || n > 0;
}

char *
files_path(const struct span *path)
{
	if (path->n > 0 && memchr(path->p, '\0', path->n) != NULL) {
		errno = EINVAL;
		return NULL;
	}
	return xstrndup((const char *)path->p, path->n);
}

int
files_on_taken(struct files *f, const struct frame_taken *m, struct err *e)
{
	AUTO(auto_free) char *path = files_path(&m->path);
	struct taken_mark mark;

	_Static_assert(sizeof(mark) == FRAME_MARK_BYTES, "as ENTRY has it");
	(void)e;
	memcpy(&mark, m->mark, sizeof(mark));
	if (path != NULL) /* else no file of ours */
		taken_put(&f->unstored, m->root, path, &mark);
	return 0;
}

int
files_on_stored(
    struct files *f, const struct frame_taken_stored *m, struct err *e)
{
	(void)e;
	if (m->stored)
		taken_move(&f->unstored, &f->taken);
	else
		taken_clear(&f->unstored);
	return 0;
}
