#include "supervisor/store/overwrite.h"

#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>

#include "common/xmalloc.h"

#define INODES_A_BLOCK 16 /* of 256 bytes, as mke2fs has them */
#define TRIES 32
#define LINK_MAX_BYTES 256

static bool is_known; /* that this one has no journal */
static dev_t known;

struct overwrite {
	int fd;
	int idle; /* of the same file system; nothing is written to it */
};

/* ---- is it ext4 without a journal? */

/* The last part of what /sys/dev/block/MAJOR:MINOR points to. */
static bool
device_name(dev_t dev, char *out, size_t size)
{
	char link[64], target[LINK_MAX_BYTES];
	const char *name;
	ssize_t n;

	(void)snprintf(
	    link, sizeof(link), "/sys/dev/block/%u:%u", major(dev), minor(dev));
	n = readlink(link, target, sizeof(target));
	if (n <= 0 || (size_t)n >= sizeof(target))
		return false;
	target[n] = '\0';
	name = strrchr(target, '/');
	return name != NULL &&
	    (size_t)snprintf(out, size, "%s", name + 1) < size;
}

static bool
has_no_journal(dev_t dev)
{
	AUTO(auto_free) char *path = NULL;
	char name[64], text[8] = "";
	ssize_t n;
	int file;

	if (!device_name(dev, name, sizeof(name)))
		return false;
	path = xasprintf("/sys/fs/ext4/%s/journal_task", name);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file == -1)
		return false;
	n = read(file, text, sizeof(text) - 1);
	(void)close(file);
	return n > 0 && strcmp(text, "<none>\n") == 0;
}

void
overwrite_look(const char *dir)
{
	struct statfs fs;
	struct stat st;

	is_known = statfs(dir, &fs) == 0 && fs.f_type == EXT4_SUPER_MAGIC &&
	    stat(dir, &st) == 0 && has_no_journal(st.st_dev);
	if (is_known)
		known = st.st_dev;
}

static bool
is_known_of(int fd)
{
	struct stat st;

	return is_known && fstat(fd, &st) == 0 && st.st_dev == known;
}

/* ---- the file that is idle */

static uint64_t
block_of(int fd)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH, STATX_INO, &st) == -1 ?
	    UINT64_MAX :
	    (st.stx_ino - 1) / INODES_A_BLOCK;
}

/* Its inode's block is better not the file's, nor one of those that are given
 * out next: it would be written with them. */
static int
open_idle(const char *path, uint64_t block)
{
	AUTO(auto_free) char *dir = xstrdup(path);
	char *end = strrchr(dir, '/');
	int fds[TRIES], n = 0, idle = -1;

	if (end == NULL)
		return -1;
	*end = '\0';
	while (n < TRIES) {
		fds[n] = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (fds[n] == -1)
			break;
		n++;
	}
	while (n-- > 0)
		if (idle == -1 && (n == 0 || block_of(fds[n]) != block))
			idle = fds[n];
		else
			(void)close(fds[n]);
	return idle;
}

struct overwrite *
overwrite_new(const char *path)
{
	struct overwrite *o = xcalloc(1, sizeof(*o));

	o->idle = -1;
	o->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (o->fd != -1 && is_known_of(o->fd))
		o->idle = open_idle(path, block_of(o->fd));
	if (o->idle != -1 && overwrite_sync(o) == 0)
		return o;
	overwrite_free(o);
	return NULL;
}

void
overwrite_free(struct overwrite *o)
{
	if (o == NULL)
		return;
	if (o->fd != -1)
		(void)close(o->fd);
	if (o->idle != -1)
		(void)close(o->idle);
	free(o);
}

/* Not its times: see identity.c. */
uint64_t
overwrite_size(const struct overwrite *o)
{
	struct statx st;

	return statx(o->fd, "", AT_EMPTY_PATH, STATX_SIZE, &st) == -1 ?
	    0 :
	    st.stx_size;
}

/* All of the file: others may have written, too. */
int
overwrite_sync(const struct overwrite *o)
{
	if (sync_file_range(o->fd, 0, 0,
		SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
		    SYNC_FILE_RANGE_WAIT_AFTER) == -1)
		return -1;
	return fdatasync(o->idle);
}
