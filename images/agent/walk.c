#include "images/agent/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/msg/frame_gen.h"
#include "common/xmalloc.h"
#include "images/agent/resolve.h"

#define WALK_MORE (-1)

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

struct walk *
walk_new(char *root, bool changed_only, uint32_t max)
{
	struct walk *w;
	int fd = resolve_root(root);

	if (fd == -1) {
		int error = errno;

		free(root);
		errno = error;
		return NULL;
	}
	w = xcalloc(1, sizeof(*w));
	w->root = root;
	w->root_fd = fd;
	w->changed_only = changed_only;
	w->max = max < FRAME_WALK_MAX ? max : FRAME_WALK_MAX;
	push_dir(w, xstrdup(""));
	return w;
}

void
walk_close(struct walk *w)
{
	if (w->dir != NULL)
		(void)closedir(w->dir);
	w->dir = NULL;
	free(w->dir_path);
	w->dir_path = NULL;
	while (w->npending > 0)
		free(pop_dir(w));
	free(w->pending);
	w->pending = NULL;
	w->pending_cap = 0;
	if (w->root_fd != -1)
		(void)close(w->root_fd);
	w->root_fd = -1;
}

void
walk_free(struct walk *w)
{
	if (w == NULL)
		return;
	walk_close(w);
	for (size_t i = 0; i < w->nfiles; i++)
		free(w->files[i].path);
	free(w->files);
	free(w->root);
	free(w);
}

static char
kind_of(mode_t mode)
{
	return S_ISREG(mode) ? 'f' :
	    S_ISDIR(mode)    ? 'd' :
	    S_ISLNK(mode)    ? 'l' :
			       '?';
}

static void
send_entry(
    uint32_t request, struct uplink *u, const char *path, const struct stat *st)
{
	size_t at;
	struct buf *b = uplink_begin(u, FRAME_FILE_ENTRY, &at);

	wire_put_u32(b, request);
	wire_put_u8(b, (uint8_t)kind_of(st->st_mode));
	wire_put_u32(b, st->st_mode & 07777);
	wire_put_u64(b, (uint64_t)st->st_size);
	wire_put_i64(
	    b, st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec);
	wire_put_bytes(b, path, strlen(path));
	uplink_end(u, at);
}

/* Keeps path, for WALK_TAKEN. */
static void
remember(struct walk *w, char *path, const struct taken_mark *mark)
{
	if (w->nfiles == w->files_cap) {
		w->files_cap = w->files_cap * 2 + 16;
		w->files =
		    xreallocarray(w->files, w->files_cap, sizeof(*w->files));
	}
	w->files[w->nfiles].path = path;
	w->files[w->nfiles++].mark = *mark;
}

static bool
is_wanted(const struct walk *w, const char *path, const struct stat *st,
    const struct taken_mark *mark, const struct taken *taken)
{
	const struct taken_mark *known;

	if (!w->changed_only)
		return true;
	if (!S_ISREG(st->st_mode))
		return false;
	known = taken_find(taken, w->root, path);
	return known == NULL || !taken_mark_is_equal(known, mark);
}

/* One name of the open directory; 0, or E2BIG. */
static int
walk_entry(struct walk *w, const char *name, uint32_t request, struct uplink *u,
    const struct taken *taken)
{
	AUTO(auto_free) char *path = NULL;
	struct taken_mark mark;
	struct stat st;

	if (fstatat(dirfd(w->dir), name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return 0;
	path = *w->dir_path == '\0' ? xstrdup(name) :
				      xasprintf("%s/%s", w->dir_path, name);
	if (strlen(path) > FRAME_PATH_MAX)
		return 0;
	taken_mark_of(&st, &mark);
	if (is_wanted(w, path, &st, &mark, taken)) {
		if (w->sent == w->max)
			return E2BIG;
		send_entry(request, u, path, &st);
		w->sent++;
		if (S_ISREG(st.st_mode)) {
			remember(w, path, &mark);
			path = NULL;
		}
	}
	if (path != NULL && S_ISDIR(st.st_mode)) {
		if (w->pending_bytes >= WALK_PENDING_BYTES)
			return E2BIG;
		push_dir(w, path);
		path = NULL;
	}
	return 0;
}

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

int
walk_slice(struct walk *w, uint32_t request, struct uplink *u,
    const struct taken *taken)
{
	for (int i = 0; i < WALK_SLICE && uplink_has_room(u); i++) {
		const struct dirent *d;
		int rc;

		if (w->dir == NULL) {
			if (w->npending == 0)
				return 0;
			(void)open_next_dir(w);
			continue;
		}
		d = readdir(w->dir);
		if (d == NULL) {
			(void)closedir(w->dir);
			w->dir = NULL;
			continue;
		}
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (++w->scanned > WALK_SCAN_MAX)
			return E2BIG;
		rc = walk_entry(w, d->d_name, request, u, taken);
		if (rc != 0)
			return rc;
	}
	return WALK_MORE;
}

const struct walk_file *
walk_find(struct walk *w, const char *path)
{
	/* They are taken in the order in which they were sent. */
	for (size_t i = 0; i < w->nfiles; i++) {
		size_t at = (w->hint + i) % w->nfiles;

		if (strcmp(w->files[at].path, path) != 0)
			continue;
		w->hint = at + 1;
		return &w->files[at];
	}
	return NULL;
}
