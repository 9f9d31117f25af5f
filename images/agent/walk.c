/*
 * walk.c - the channel kind "walk": the entries below a directory
 *
 * Directories are visited one after another, each opened anew below the root
 * without following links.  Stream 0 is ENTRY frames, under credit by number.
 * The walk ends with E2BIG, after what it could say, at WALK_SCAN_MAX entries
 * looked at, or when the directories still to visit fill WALK_PENDING_BYTES.
 * What cannot be read, or vanishes, is left out.
 */
#include "images/agent/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/xmalloc.h"
#include "images/agent/resolve.h"

#define WALK_SCAN_MAX 200000u
#define WALK_PENDING_BYTES (1u << 20)
#define WALK_SLICE 64

struct walk {
	struct file_job job;
	char *root;
	bool changed_only;
	int root_fd;
	DIR *dir;
	char *dir_path; /* of dir below root, "" for root itself */
	char **pending;
	size_t npending;
	size_t pending_cap;
	size_t pending_bytes;
	uint32_t scanned;
	struct credit credit; /* of entries */
};

static void
push_dir(struct walk *w, char *path)
{
	if (w->npending == w->pending_cap) {
		w->pending_cap = w->pending_cap * 2 + 16;
		w->pending = xreallocarray(
		    w->pending, w->pending_cap, sizeof(*w->pending));
	}
	w->pending[w->npending++] = path;
	w->pending_bytes += strlen(path) + 1 + sizeof(path);
}

static char *
pop_dir(struct walk *w)
{
	char *path = w->pending[--w->npending];

	w->pending_bytes -= strlen(path) + 1 + sizeof(path);
	return path;
}

/* ---- one entry */

static char
kind_of(mode_t mode)
{
	return S_ISREG(mode) ? 'f' :
	    S_ISDIR(mode)    ? 'd' :
	    S_ISLNK(mode)    ? 'l' :
			       '?';
}

static void
send_entry(struct walk *w, const char *path, const struct stat *st)
{
	struct uplink *u = w->job.files->mux->uplink;
	struct taken_mark mark;
	struct frame_entry m = {.chan = w->job.chan.number,
	    .index = w->credit.sent++,
	    .kind = (uint8_t)kind_of(st->st_mode),
	    .mode = st->st_mode & 07777,
	    .size = (uint64_t)st->st_size,
	    .mtime_ns =
		st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec,
	    .mark = (const uint8_t *)&mark,
	    .path = {(const uint8_t *)path, strlen(path)}};

	taken_mark_of(st, &mark);
	uplink_put(u, frame_put_entry(&u->out, &m));
}

static bool
is_wanted(const struct walk *w, const char *path, const struct stat *st)
{
	const struct taken_mark *known;
	struct taken_mark mark;

	if (!w->changed_only)
		return true;
	if (!S_ISREG(st->st_mode))
		return false;
	taken_mark_of(st, &mark);
	known = taken_find(&w->job.files->taken, w->root, path);
	return known == NULL || !taken_mark_is_equal(known, &mark);
}

/* One name of the open directory; FILES_GOES_ON, or E2BIG. */
static int
walk_entry(struct walk *w, const char *name)
{
	AUTO(auto_free) char *path = NULL;
	struct stat st;

	if (fstatat(dirfd(w->dir), name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return FILES_GOES_ON;
	path = *w->dir_path == '\0' ? xstrdup(name) :
				      xasprintf("%s/%s", w->dir_path, name);
	if (strlen(path) > FRAME_PATH_MAX)
		return FILES_GOES_ON;
	if (is_wanted(w, path, &st))
		send_entry(w, path, &st);
	if (S_ISDIR(st.st_mode)) {
		if (w->pending_bytes >= WALK_PENDING_BYTES)
			return E2BIG;
		push_dir(w, path);
		path = NULL;
	}
	return FILES_GOES_ON;
}

/* ---- a slice */

static bool
open_next_dir(struct walk *w)
{
	int fd;

	free(w->dir_path);
	w->dir_path = pop_dir(w);
	fd = *w->dir_path == '\0' ? fcntl(w->root_fd, F_DUPFD_CLOEXEC, 0) :
				    resolve_at(w->root_fd, w->dir_path,
					O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	if (fd == -1)
		return false;
	w->dir = fdopendir(fd);
	if (w->dir == NULL)
		(void)close(fd);
	return w->dir != NULL;
}

/* The next name of the open directory, or of the next one: FILES_GOES_ON, or
 * the errno to end with. */
static int
walk_step(struct walk *w)
{
	const struct dirent *d;

	if (w->dir == NULL) {
		if (w->npending == 0)
			return 0;
		(void)open_next_dir(w);
		return FILES_GOES_ON;
	}
	d = readdir(w->dir);
	if (d == NULL) {
		(void)closedir(w->dir);
		w->dir = NULL;
		return FILES_GOES_ON;
	}
	if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
		return FILES_GOES_ON;
	if (++w->scanned > WALK_SCAN_MAX)
		return E2BIG;
	return walk_entry(w, d->d_name);
}

/* Without credit nothing is read: the next entry may be one to send. */
static bool
can_go_on(const struct file_job *j)
{
	const struct walk *w = (const struct walk *)j;

	return credit_left(&w->credit) > 0;
}

static int
slice(struct file_job *j)
{
	struct walk *w = (struct walk *)j;
	int rc = FILES_GOES_ON;

	for (int i = 0; i < WALK_SLICE && rc == FILES_GOES_ON && can_go_on(j) &&
	     uplink_has_room(j->files->mux->uplink);
	     i++)
		rc = walk_step(w);
	return rc;
}

/* ---- life */

static void
job_free(struct file_job *j)
{
	struct walk *w = (struct walk *)j;

	if (w->dir != NULL)
		(void)closedir(w->dir);
	free(w->dir_path);
	while (w->npending > 0)
		free(pop_dir(w));
	free(w->pending);
	(void)close(w->root_fd);
	free(w->root);
	free(w);
}

static const struct file_job_ops job_ops = {can_go_on, slice, job_free};

static int
on_credit(struct chan *c, const struct frame_credit *m, struct err *e)
{
	struct walk *w = (struct walk *)files_job_of(c);

	if (m->stream != 0)
		return err_set(e, ERR_PROTO, "stream %u", m->stream);
	return credit_grant(&w->credit, m->taken, m->limit, e);
}

static const struct chan_ops chan_ops = {
    .on_credit = on_credit, .on_gone = files_on_gone};

int
walk_on_open(struct files *f, const struct frame_open_walk *m, struct err *e)
{
	struct walk *w;
	int fd, rc = files_claim(f, m->chan, e);

	if (rc <= 0)
		return rc;
	fd = resolve_root(m->root);
	if (fd == -1) {
		mux_refuse(f->mux, m->chan, errno, strerror(errno));
		return 0;
	}
	w = xcalloc(1, sizeof(*w));
	w->root = xstrdup(m->root);
	w->root_fd = fd;
	w->changed_only = m->changed_only;
	credit_open(&w->credit, 0, m->limit);
	push_dir(w, xstrdup(""));
	files_add(f, &w->job, m->chan, &chan_ops, &job_ops);
	return 0;
}
