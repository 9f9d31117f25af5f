/* fuzz_backup.c - an archive that anybody wrote is unpacked whole or refused
 * with a reason, and nothing is made outside of its directory.
 * libs: ctl */
#include <sys/mman.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

#include "supervisor/ctl/ctl_archive.h"
#include "tests/fuzz/fuzz.h"

static int
any_manifest_cb(const char *manifest, void *arg, struct err *e)
{
	(void)arg;
	(void)e;
	return strlen(manifest) <= CTL_ARCHIVE_MANIFEST_MAX ? 0 : ERR_INVAL;
}

static void
told_cb(uint64_t bytes, void *arg)
{
	REQUIRE(bytes <= *(const size_t *)arg);
}

static int
dropped_cb(const char *name, const struct ctl_archive_blob *blob, void *arg,
    struct err *e)
{
	(void)arg;
	(void)e;
	(void)blob;
	REQUIRE(name[0] != '\0');
	return 0;
}

static int
remove_cb(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	if (type == FTW_SL || type == FTW_SLN) /* we make none */
		abort();
	if (at->level > 4)
		abort();
	return remove(path);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ctl_archive_ops ops = {
	    any_manifest_cb, told_cb, dropped_cb};
	static struct ctl_archive_found found;
	char top[] = "/tmp/fuzz-backup-XXXXXX";
	int fd = memfd_create("archive", MFD_CLOEXEC), dir;
	struct err e = {0};

	if (fd == -1 || mkdtemp(top) == NULL ||
	    write(fd, data, size) != (ssize_t)size ||
	    lseek(fd, 0, SEEK_SET) == -1)
		abort();
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(dir != -1);
	if (ctl_archive_read(fd, dir, &ops, &size, &found, &e) != 0 &&
	    e.msg[0] == '\0')
		abort();
	(void)close(dir);
	(void)close(fd);
	REQUIRE(nftw(top, remove_cb, 8, FTW_DEPTH | FTW_PHYS) == 0);
	return 0;
}
