/*
 * file_write.c - the channel kind "write": a file's new contents, whole
 *
 * They are collected in a file of its own beside the target, in a directory
 * that was reached without following a link, and take the target's name in
 * one step when all has come: nobody sees half of it, a link of that name is
 * replaced and not followed, and a write that ends otherwise leaves nothing.
 */
#include "images/agent/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/uuid.h"
#include "common/xmalloc.h"
#include "images/agent/owners.h"
#include "images/agent/resolve.h"

/* The worker is granted more when it has used so much of its credit. */
#define WRITE_GRANT_BYTES (FRAME_WINDOW_BYTES / 4)
#define WRITE_PREFIX ".write-"
#define WRITE_NAME_BYTES (sizeof(WRITE_PREFIX) + UUID_TEXT_LEN)

struct file_write {
	struct file_job job;
	int dir;
	int fd;
	char *name;                   /* in dir */
	char draft[WRITE_NAME_BYTES]; /* in dir, until it has that name */
	mode_t mode;
	enum runspec_user owner;
	struct grant grant;
};

static struct file_write *
write_of(struct chan *c)
{
	return (struct file_write *)files_job_of(c);
}

/* ---- life */

static bool
never_goes_on(const struct file_job *j)
{
	(void)j; /* the worker sends, not we */
	return false;
}

static void
job_free(struct file_job *j)
{
	struct file_write *w = (struct file_write *)j;

	if (*w->draft != '\0')
		(void)unlinkat(w->dir, w->draft, 0);
	(void)close(w->fd);
	(void)close(w->dir);
	free(w->name);
	free(w);
}

static const struct file_job_ops job_ops = {
    .can_go_on = never_goes_on, .free = job_free};

/* ---- from the worker */

static void
grant(struct file_write *w)
{
	struct uplink *u = w->job.files->mux->uplink;
	const struct frame_credit m = {.chan = w->job.chan.number,
	    .taken = w->grant.got,
	    .limit = w->grant.got + FRAME_WINDOW_BYTES};

	w->grant.limit = m.limit;
	uplink_put(u, frame_put_credit(&u->out, &m));
	uplink_urgent(u);
}

static int
on_data(struct chan *c, const struct frame_data *m, struct err *e)
{
	struct file_write *w = write_of(c);
	struct err why;

	if (m->stream != 0)
		return err_set(e, ERR_PROTO, "stream %u", m->stream);
	if (grant_take(&w->grant, m->offset, m->bytes.n, e) != 0)
		return ERR_PROTO;
	errno = 0;
	if (fd_write_all(w->fd, m->bytes.p, m->bytes.n, &why) != 0)
		files_end(&w->job, errno != 0 ? errno : EIO);
	else if (w->grant.limit - w->grant.got <
	    FRAME_WINDOW_BYTES - WRITE_GRANT_BYTES)
		grant(w);
	return 0;
}

/* The draft is whole: gives it its name.  0 or an errno. */
static int
take_place(struct file_write *w)
{
	if (owners_give(w->fd, w->owner) == -1 ||
	    fchmod(w->fd, w->mode) == -1 ||
	    renameat(w->dir, w->draft, w->dir, w->name) == -1)
		return errno;
	*w->draft = '\0';
	return 0;
}

static int
on_stream_end(struct chan *c, const struct frame_stream_end *m, struct err *e)
{
	struct file_write *w = write_of(c);

	if (m->stream != 0)
		return err_set(e, ERR_PROTO, "stream %u", m->stream);
	files_end(&w->job, take_place(w));
	return 0;
}

static const struct chan_ops chan_ops = {.on_data = on_data,
    .on_stream_end = on_stream_end,
    .on_gone = files_on_gone};

/* ---- open */

/* The directory below root that path's last part is to be in; *name is that
 * part, in path.  -1 with errno. */
static int
open_parent(const char *root, char *path, char **name)
{
	AUTO(auto_close) int dir = resolve_root(root);
	char *slash = strrchr(path, '/');
	int parent;

	if (dir == -1)
		return -1;
	*name = slash == NULL ? path : slash + 1;
	if (**name == '\0' || strcmp(*name, ".") == 0 ||
	    strcmp(*name, "..") == 0 || slash == path) {
		errno = slash == path ? EXDEV : EISDIR;
		return -1;
	}
	if (slash == NULL) {
		parent = dir;
		dir = -1;
		return parent;
	}
	*slash = '\0';
	return resolve_at(dir, path, O_RDONLY | O_DIRECTORY);
}

/* 0 or an errno */
static int
write_open(struct file_write *w, const char *root, const struct span *bytes)
{
	AUTO(auto_free) char *path = files_path(bytes);
	char text[UUID_TEXT_LEN + 1], *name;
	struct uuid u;

	if (path == NULL)
		return errno;
	w->dir = open_parent(root, path, &name);
	if (w->dir == -1)
		return errno;
	w->name = xstrdup(name);
	uuid_random(&u);
	uuid_format(&u, text);
	(void)snprintf(w->draft, sizeof(w->draft), WRITE_PREFIX "%s", text);
	w->fd = openat(w->dir, w->draft,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (w->fd != -1)
		return 0;
	*w->draft = '\0';
	return errno;
}

int
file_write_on_open(
    struct files *f, const struct frame_open_write *m, struct err *e)
{
	struct file_write *w;
	const char *lack;
	int error, rc = files_claim(f, m->chan, e);

	if (rc <= 0)
		return rc;
	w = xcalloc(1, sizeof(*w));
	w->dir = w->fd = -1;
	w->mode = (mode_t)m->mode;
	w->owner = m->owner == FRAME_USER_ROOT ? RUNSPEC_USER_ROOT :
						 RUNSPEC_USER_SANDBOX;
	lack = owners_lack(w->owner);
	error = lack != NULL ? EPERM : write_open(w, m->root, &m->path);
	if (error != 0) {
		mux_refuse(f->mux, m->chan, error,
		    lack != NULL ? lack : strerror(error));
		job_free(&w->job);
		return 0;
	}
	files_add(f, &w->job, m->chan, &chan_ops, &job_ops);
	grant_open(&w->grant, 0, 0);
	grant(w);
	return 0;
}
