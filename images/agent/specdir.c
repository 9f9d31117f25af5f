#include "images/agent/specdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "images/agent/owners.h"

#define SPECDIR_NAME_MAX (sizeof(RUNSPEC_DIR_PREFIX) + UUID_TEXT_LEN)

static void
specdir_name(char out[SPECDIR_NAME_MAX], const struct uuid *run)
{
	char text[UUID_TEXT_LEN + 1];

	uuid_format(run, text);
	(void)snprintf(out, SPECDIR_NAME_MAX, RUNSPEC_DIR_PREFIX "%s", text);
}

static int
write_file(int dir, const struct runspec_file *f, enum runspec_user user,
    struct err *e)
{
	AUTO(auto_close) int fd = -1;

	fd = openat(dir, f->name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		return err_set(
		    e, ERR_SYS, "file %s: %s", f->name, strerror(errno));
	if (fd_write_all(fd, f->data, f->len, e) != 0)
		return err_wrap(e, "file %s", f->name);
	if (owners_give(fd, user) == -1 ||
	    fchmod(fd, (mode_t)(f->mode & 0777)) == -1)
		return err_set(
		    e, ERR_SYS, "file %s: %s", f->name, strerror(errno));
	return 0;
}

int
specdir_make(const struct runspec *spec, const struct uuid *run, struct err *e)
{
	AUTO(auto_close) int dir = -1;
	char name[SPECDIR_NAME_MAX];

	specdir_name(name, run);
	if (mkdir(name, 0700) == -1)
		return err_set(
		    e, ERR_SYS, "mkdir %s: %s", name, strerror(errno));
	dir = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir == -1)
		return err_set(
		    e, ERR_SYS, "open %s: %s", name, strerror(errno));
	for (uint32_t i = 0; i < spec->nfiles; i++)
		if (write_file(dir, &spec->files[i], spec->user, e) != 0)
			return e->code;
	if (owners_give(dir, spec->user) == -1)
		return err_set(
		    e, ERR_SYS, "chown %s: %s", name, strerror(errno));
	return 0;
}

struct specdir_removal {
	uint32_t left; /* entries in this slice */
	bool more;     /* the slice was too small */
};

static void remove_entries(struct specdir_removal *r, int dir, int depth);

static void
remove_tree(struct specdir_removal *r, int parent, const char *name, int depth)
{
	int fd;

	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return;
	if (unlinkat(parent, name, AT_REMOVEDIR) == 0 ||
	    depth >= SPECDIR_DEPTH_MAX)
		return;
	fd = openat(parent, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		return;
	remove_entries(r, fd, depth); /* closes it */
	if (!r->more)
		(void)unlinkat(parent, name, AT_REMOVEDIR);
}

static void
remove_entries(struct specdir_removal *r, int dir, int depth)
{
	const struct dirent *d;
	DIR *stream = fdopendir(dir);

	if (stream == NULL) {
		(void)close(dir);
		return;
	}
	while (!r->more && (d = readdir(stream)) != NULL) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (r->left == 0) {
			r->more = true;
			break;
		}
		r->left--;
		remove_tree(r, dirfd(stream), d->d_name, depth + 1);
	}
	(void)closedir(stream);
}

bool
specdir_remove(const struct uuid *run, uint32_t *done)
{
	struct specdir_removal r = {SPECDIR_SLICE, false};
	char name[SPECDIR_NAME_MAX];

	specdir_name(name, run);
	remove_tree(&r, AT_FDCWD, name, 0);
	*done += SPECDIR_SLICE - r.left;
	return !r.more || *done >= SPECDIR_ENTRIES_MAX;
}
