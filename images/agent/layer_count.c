#include "images/agent/layer_count.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "images/agent/resolve.h"

#define BLOCK_BYTES 512u /* of st_blocks */
#define STEPS_PER_LOOK 64

void
layer_count_init(struct layer_count *c)
{
	memset(c, 0, sizeof(*c));
	c->root = -1;
}

bool
layer_count_is_running(const struct layer_count *c)
{
	return c->root != -1;
}

void
layer_count_drop(struct layer_count *c)
{
	if (c->dir != NULL)
		(void)closedir(c->dir);
	c->dir = NULL;
	free(c->dir_path);
	c->dir_path = NULL;
	while (c->npending > 0)
		free(c->pending[--c->npending]);
	free(c->pending);
	c->pending = NULL;
	c->pending_cap = 0;
	c->pending_bytes = 0;
	if (c->root != -1)
		(void)close(c->root);
	c->root = -1;
}

/* ---- directories that wait */

static void
push(struct layer_count *c, char *path)
{
	if (c->npending == c->pending_cap) {
		c->pending_cap = c->pending_cap * 2 + 64;
		c->pending = xreallocarray(
		    c->pending, c->pending_cap, sizeof(*c->pending));
	}
	c->pending[c->npending++] = path;
	c->pending_bytes += strlen(path) + 1 + sizeof(path);
}

static char *
pop(struct layer_count *c)
{
	char *path = c->pending[--c->npending];

	c->pending_bytes -= strlen(path) + 1 + sizeof(path);
	return path;
}

/* A path may be longer than the kernel takes at once: piece by piece, each of
 * which resolves below the one before, and without links. */
static int
open_dir(int root, char *path)
{
	int fd = fcntl(root, F_DUPFD_CLOEXEC, 0);

	while (fd != -1 && *path != '\0') {
		size_t n = strlen(path);
		char *end = path + n, *rest = end;
		int next;

		if (n >= PATH_MAX) {
			end = path + PATH_MAX - 1;
			while (*end != '/')
				end--; /* a name has 255 bytes at most */
			rest = end + 1;
			*end = '\0';
		}
		next =
		    resolve_at(fd, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
		if (rest != end)
			*end = '/';
		(void)close(fd);
		fd = next;
		path = rest;
	}
	return fd;
}

static void
open_next(struct layer_count *c)
{
	int fd;

	free(c->dir_path);
	c->dir_path = pop(c);
	fd = open_dir(c->root, c->dir_path);
	if (fd == -1)
		return; /* gone meanwhile */
	c->dir = fdopendir(fd);
	if (c->dir == NULL)
		(void)close(fd);
}

/* ---- one entry */

static int64_t
changed_ns(const struct stat *st)
{
	return st->st_ctim.tv_sec * INT64_C(1000000000) + st->st_ctim.tv_nsec;
}

static void
add(struct layer_count *c, const struct stat *st)
{
	uint64_t bytes = (uint64_t)st->st_blocks * BLOCK_BYTES;

	if (changed_ns(st) < c->since_ns)
		return;
	/* All its names together have it once. */
	if (!S_ISDIR(st->st_mode) && st->st_nlink > 1)
		bytes /= (uint64_t)st->st_nlink;
	c->bytes += bytes;
	c->inodes++;
}

static void
take_entry(struct layer_count *c, const char *name)
{
	struct stat st;

	if (fstatat(dirfd(c->dir), name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return;
	if (S_ISDIR(st.st_mode) && st.st_dev != c->dev)
		return; /* something else is mounted there */
	if (S_ISDIR(st.st_mode) && changed_ns(&st) < c->upper_ns)
		return;
	add(c, &st);
	if (S_ISDIR(st.st_mode))
		push(c,
		    *c->dir_path == '\0' ?
			xstrdup(name) :
			xasprintf("%s/%s", c->dir_path, name));
}

/* One name; false: there is none left. */
static bool
step(struct layer_count *c)
{
	const struct dirent *d;

	if (c->dir == NULL) {
		if (c->npending == 0)
			return false;
		open_next(c);
		return true;
	}
	d = readdir(c->dir);
	if (d == NULL) {
		(void)closedir(c->dir);
		c->dir = NULL;
	} else if (strcmp(d->d_name, ".") != 0 &&
	    strcmp(d->d_name, "..") != 0) {
		take_entry(c, d->d_name);
	}
	return true;
}

/* ---- the whole */

/* When the upper layer was made, if it is known, and later than since_ns if a
 * clock says so: then what is younger than since_ns is looked at. */
static int64_t
find_upper_ns(int root, int64_t since_ns)
{
	struct statx stx;
	struct statfs fs;
	int64_t ns;

	if (fstatfs(root, &fs) == -1 || fs.f_type != OVERLAYFS_SUPER_MAGIC ||
	    statx(root, "", AT_EMPTY_PATH, STATX_BTIME, &stx) == -1 ||
	    (stx.stx_mask & STATX_BTIME) == 0)
		return INT64_MIN;
	ns = stx.stx_btime.tv_sec * INT64_C(1000000000) +
	    (int64_t)stx.stx_btime.tv_nsec;
	return ns < since_ns ? ns : since_ns;
}

void
layer_count_begin(struct layer_count *c, const char *path, int64_t since_ns,
    uint64_t stop_bytes, uint64_t stop_inodes)
{
	struct stat st;

	layer_count_drop(c);
	c->bytes = 0;
	c->inodes = 0;
	c->since_ns = since_ns;
	c->stop_bytes = stop_bytes;
	c->stop_inodes = stop_inodes;
	c->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->root == -1 || fstat(c->root, &st) == -1) {
		layer_count_drop(c);
		return;
	}
	c->dev = st.st_dev;
	c->upper_ns = find_upper_ns(c->root, since_ns);
	push(c, xstrdup(""));
}

static bool
is_enough(const struct layer_count *c)
{
	return c->bytes > c->stop_bytes || c->inodes > c->stop_inodes ||
	    c->pending_bytes > LAYER_PENDING_BYTES;
}

bool
layer_count_slice(struct layer_count *c, uint64_t until_us)
{
	bool more = layer_count_is_running(c);

	while (more && !is_enough(c) && clock_mono_us() < until_us)
		for (int i = 0; i < STEPS_PER_LOOK && more; i++)
			more = step(c);
	if (more && !is_enough(c))
		return false;
	layer_count_drop(c);
	return true;
}
