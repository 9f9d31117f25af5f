#include "images/agent/emptiness.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"

#define OLD_SECONDS 2

static bool
is_same(const struct emptiness *em, const struct stat *st)
{
	return em->known && em->dev == st->st_dev && em->ino == st->st_ino &&
	    em->changed.tv_sec == st->st_ctim.tv_sec &&
	    em->changed.tv_nsec == st->st_ctim.tv_nsec;
}

static void
learn(struct emptiness *em, const struct stat *st)
{
	em->dev = st->st_dev;
	em->ino = st->st_ino;
	em->changed = st->st_ctim;
	em->known = clock_wall_ms() / 1000 - st->st_ctim.tv_sec > OLD_SECONDS;
}

static bool
fd_has_entries(int fd)
{
	/* d_ino, d_off, d_reclen, d_type, d_name: three entries are enough */
	char buf[1024] __attribute__((aligned(8)));
	bool has = false;
	long n;

	while (!has && (n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
		for (long used = 0; used < n && !has;) {
			const char *name = buf + used + 19;
			uint16_t reclen;

			memcpy(&reclen, buf + used + 16, sizeof(reclen));
			has = strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
			used += reclen;
		}
	return has;
}

static int
look(struct emptiness *em, const char *path, uint32_t changes, struct stat *st)
{
	uint64_t now = clock_mono_us();
	int fd;

	steady_hold(&em->place, path, changes, now);
	fd = steady_fd(&em->place, path, changes, now);
	return fd == -1 ? lstat(path, st) : fstat(fd, st);
}

bool
emptiness_has_entries(struct emptiness *em, const char *path, uint32_t changes)
{
	AUTO(auto_close) int fd = -1;
	struct stat st;
	bool has;

	if (look(em, path, changes, &st) == -1 || is_same(em, &st))
		return false;
	em->known = false;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 || fstat(fd, &st) == -1)
		return false;
	has = fd_has_entries(fd);
	if (!has)
		learn(em, &st); /* as it was before it was read */
	return has;
}
