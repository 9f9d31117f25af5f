#include "common/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "common/buf.h"
#include "common/xmalloc.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define LOCK_STEP_MS 20
#define FD_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

int
fd_set_nonblock(int fd, struct err *e)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags == -1 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1)
		return err_errno(e, "fcntl O_NONBLOCK on %d", fd);
	return 0;
}

/* No /proc: try every number that can be open. */
static void
fd_close_numbers(int first)
{
	struct rlimit rl;
	int last = 65536;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_max < INT_MAX)
		last = (int)rl.rlim_max;
	for (int fd = first; fd < last; fd++)
		(void)close(fd);
}

static void
fd_close_listed(DIR *dir, int first)
{
	struct dirent *d;

	while ((d = readdir(dir)) != NULL) {
		char *end;
		long fd = strtol(d->d_name, &end, 10);

		if (end == d->d_name || *end != '\0' || fd < first)
			continue;
		if (fd <= INT_MAX && fd != dirfd(dir))
			(void)close((int)fd);
	}
}

void
fd_close_from(int first)
{
	DIR *dir;

	if (close_range((unsigned int)first, ~0U, 0) == 0)
		return;
	dir = opendir("/proc/self/fd");
	if (dir == NULL) {
		fd_close_numbers(first);
		return;
	}
	fd_close_listed(dir, first);
	(void)closedir(dir);
}

int
fd_write_all(int fd, const void *p, size_t n, struct err *e)
{
	const uint8_t *s = p;

	while (n > 0) {
		ssize_t w = write(fd, s, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return err_errno(e, "write");
		s += w;
		n -= (size_t)w;
	}
	return 0;
}

ssize_t
fd_pread_all(int fd, void *p, size_t n, uint64_t off, struct err *e)
{
	size_t done = 0;

	if (n > SSIZE_MAX || off > INT64_MAX - (uint64_t)n) {
		(void)err_set(e, ERR_INVAL, "pread of %zu bytes at %llu", n,
		    (unsigned long long)off);
		return -1;
	}
	while (done < n) {
		ssize_t r = pread(
		    fd, (uint8_t *)p + done, n - done, (off_t)(off + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0) {
			(void)err_errno(e, "pread");
			return -1;
		}
		if (r == 0)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

int
fd_memfd(const char *name, struct err *e)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags);

	/* Hosts with vm.memfd_noexec=2 want it said, older kernels know no
	 * such flag. */
	if (fd == -1 && errno == EACCES)
		fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	if (fd == -1)
		return err_errno(e, "memfd_create %s", name);
	return fd;
}

int
fd_memfd_sealed(const char *name, const void *p, size_t n, struct err *e)
{
	AUTO(auto_close) int fd = fd_memfd(name, e);
	int out;

	if (fd < 0)
		return ERR_SYS;
	if (fd_write_all(fd, p, n, e) != 0)
		return err_wrap(e, "memfd %s", name);
	if (fcntl(fd, F_ADD_SEALS, FD_SEALS | F_SEAL_SEAL) == -1 ||
	    lseek(fd, 0, SEEK_SET) == -1)
		return err_errno(e, "seal memfd %s", name);
	out = fd;
	fd = -1;
	return out;
}

int
fd_copy_sealed(const char *name, int fd, size_t n, struct err *e)
{
	uint8_t *mem = xmalloc(n);
	int copy;

	if (fd_pread_all(fd, mem, n, 0, e) != (ssize_t)n)
		copy = err_set(e, ERR_INVAL, "short read");
	else
		copy = fd_memfd_sealed(name, mem, n, e);
	explicit_bzero(mem, n);
	free(mem);
	return copy;
}

int
fd_lock(int fd, uint32_t patience_ms)
{
	const struct timespec pause = {.tv_nsec = LOCK_STEP_MS * 1000000L};
	int rc = flock(fd, LOCK_EX | LOCK_NB);

	for (uint32_t waited = 0;
	     rc == -1 && errno == EWOULDBLOCK && waited < patience_ms;
	     waited += LOCK_STEP_MS) {
		(void)nanosleep(&pause, NULL);
		rc = flock(fd, LOCK_EX | LOCK_NB);
	}
	return rc;
}

int
fd_read_sealed(
    int fd, size_t max, uint8_t **out, size_t *out_len, struct err *e)
{
	AUTO(auto_free) uint8_t *mem = NULL;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	size_t n;

	if (seals == -1 || (seals & FD_SEALS) != FD_SEALS)
		return err_set(
		    e, ERR_PROTO, "the descriptor is no sealed memory file");
	if (fstat(fd, &st) == -1)
		return err_errno(e, "fstat");
	if (st.st_size < 0 || (uint64_t)st.st_size > max)
		return err_set(e, ERR_LIMIT, "%lld bytes, limit %zu",
		    (long long)st.st_size, max);
	n = (size_t)st.st_size;
	mem = xmalloc(n);
	if (fd_pread_all(fd, mem, n, 0, e) != (ssize_t)n)
		return err_set(e, ERR_SYS, "cannot read a sealed memory file");
	*out_len = n;
	*out = mem;
	mem = NULL;
	return 0;
}

/* To the end, not to st_size: files of /proc and /sys say 0. */
static int
fd_read_to_end(int fd, size_t max, struct buf *b, struct err *e)
{
	for (;;) {
		size_t room = buf_room(b) < 65536 ? buf_room(b) : 65536;
		uint8_t *p = buf_reserve(b, room);
		ssize_t n;

		if (p == NULL || room == 0)
			return err_set(
			    e, ERR_LIMIT, "more than %zu bytes", max);
		n = read(fd, p, room);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, "read");
		if (n == 0)
			return 0;
		buf_commit(b, (size_t)n);
	}
}

int
fd_read_file(
    const char *path, size_t max, char **out, size_t *out_len, struct err *e)
{
	AUTO(auto_close) int fd = -1;
	struct stat st;
	struct buf b;

	/* O_NONBLOCK: a FIFO must not hold us up. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1 && errno == ENOENT)
		return err_set(
		    e, ERR_NOTFOUND, "open %s: %s", path, strerror(ENOENT));
	if (fd == -1)
		return err_errno(e, "open %s", path);
	if (fstat(fd, &st) == -1)
		return err_errno(e, "fstat %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVAL, "%s is no regular file", path);
	if (st.st_size > 0 && (uint64_t)st.st_size > max)
		return err_set(e, ERR_LIMIT, "%s: %lld bytes, limit %zu", path,
		    (long long)st.st_size, max);
	buf_init(&b, max + 1); /* one more, to see that it is too long */
	if (fd_read_to_end(fd, max, &b, e) != 0 || buf_append(&b, "", 1) != 0) {
		buf_clear(&b);
		return err_wrap(e, "%s", path);
	}
	*out_len = buf_len(&b) - 1;
	*out = (char *)b.mem; /* nothing was consumed: starts there */
	return 0;
}

bool
fd_is_zero(int fd, uint64_t from, uint64_t upto)
{
	uint8_t piece[4096];
	struct err ignored;

	if (from >= upto)
		return false;
	while (from < upto) {
		size_t want = upto - from < sizeof(piece) ?
		    (size_t)(upto - from) :
		    sizeof(piece);
		ssize_t n = fd_pread_all(fd, piece, want, from, &ignored);

		if (n <= 0)
			return false;
		for (ssize_t i = 0; i < n; i++)
			if (piece[i] != 0)
				return false;
		from += (uint64_t)n;
	}
	return true;
}

int
fd_sync_above(const char *path)
{
	AUTO(auto_free) char *copy = xstrdup(path);
	AUTO(auto_close)
	int dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return dir == -1 ? -1 : fsync(dir);
}

static int
fd_mkdir_one(const char *path, mode_t mode, struct err *e)
{
	struct stat st;
	int saved;

	if (mkdir(path, mode) == 0) {
		/* Of a directory that may not be read, or cannot be synced, as
		 * good as the system has it. */
		if (fd_sync_above(path) == 0 || errno == EACCES ||
		    errno == EINVAL)
			return 0;
		return err_errno(e, "mkdir %s: sync", path);
	}
	saved = errno;
	/* Any failure is fine if it is there: EEXIST, but also EROFS. */
	if (stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return 0;
		saved = ENOTDIR;
	}
	return err_set(e, ERR_SYS, "mkdir %s: %s", path, strerror(saved));
}

int
fd_mkdir_all(const char *path, mode_t mode, struct err *e)
{
	AUTO(auto_free) char *copy = NULL;

	if (path[0] == '\0')
		return err_set(e, ERR_INVAL, "mkdir: the path is empty");
	copy = xstrdup(path);
	for (char *p = copy + 1; *p != '\0'; p++) {
		if (*p != '/' || p[-1] == '/')
			continue;
		*p = '\0';
		if (fd_mkdir_one(copy, mode, e) != 0)
			return ERR_SYS;
		*p = '/';
	}
	return fd_mkdir_one(copy, mode, e);
}
