#include "supervisor/front/key.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/xmalloc.h"

static int
key_read(const char *path, uint8_t out[KEY_BYTES], struct err *e)
{
	AUTO(auto_close) int fd = -1;
	struct stat st;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd == -1)
		return err_set(e, errno == ENOENT ? ERR_NOTFOUND : ERR_SYS,
		    "open %s: %s", path, strerror(errno));
	if (fstat(fd, &st) == -1)
		return err_set(
		    e, ERR_SYS, "fstat %s: %s", path, strerror(errno));
	if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		return err_set(e, ERR_INVAL,
		    "%s: mode %03o, want 0600: others may have read it, so "
		    "remove it (clients must then connect anew)",
		    path, (unsigned int)(st.st_mode & 0777));
	if (!S_ISREG(st.st_mode) || st.st_size != KEY_BYTES)
		return err_set(e, ERR_INVAL,
		    "%s is not a file of %d bytes: remove it", path, KEY_BYTES);
	if (fd_pread_all(fd, out, KEY_BYTES, 0, e) != KEY_BYTES)
		return err_set(e, ERR_SYS, "%s: short read", path);
	return 0;
}

static int
sync_dir(const char *dir, struct err *e)
{
	AUTO(auto_close) int fd = -1;

	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 || fsync(fd) != 0)
		return err_set(
		    e, ERR_SYS, "fsync %s: %s", dir, strerror(errno));
	return 0;
}

static int
write_new(const char *path, struct err *e)
{
	AUTO(auto_close) int fd = -1;
	uint8_t key[KEY_BYTES];

	if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
		return err_set(e, ERR_SYS, "getrandom: %s", strerror(errno));
	fd = open(
	    path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd == -1)
		return err_set(
		    e, ERR_SYS, "create %s: %s", path, strerror(errno));
	if (fd_write_all(fd, key, sizeof(key), e) != 0)
		return err_wrap(e, "%s", path);
	if (fsync(fd) != 0)
		return err_set(
		    e, ERR_SYS, "fsync %s: %s", path, strerror(errno));
	return 0;
}

/* Under another name first: a crash in between leaves no half a key. */
static int
key_make(const char *dir, const char *path, struct err *e)
{
	AUTO(auto_free) char *tmp = xasprintf("%s.new", path);
	int rc;

	(void)unlink(tmp);
	rc = write_new(tmp, e);
	if (rc == 0 && link(tmp, path) != 0 && errno != EEXIST)
		rc = err_set(e, ERR_SYS, "link %s: %s", path, strerror(errno));
	(void)unlink(tmp);
	return rc != 0 ? rc : sync_dir(dir, e);
}

int
key_load(const char *dir, uint8_t out[KEY_BYTES], struct err *e)
{
	AUTO(auto_free) char *path = xasprintf("%s/session.key", dir);
	int rc = key_read(path, out, e);

	if (rc != ERR_NOTFOUND)
		return rc;
	if (key_make(dir, path, e) != 0)
		return e->code;
	return key_read(path, out, e);
}

int
key_look(const char *dir, uint8_t out[KEY_BYTES], struct err *e)
{
	AUTO(auto_free) char *path = xasprintf("%s/session.key", dir);
	int rc = key_read(path, out, e);

	return rc == ERR_NOTFOUND ? 0 : rc;
}
