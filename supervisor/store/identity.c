#include "supervisor/store/identity.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <errno.h>
#include <fcntl.h>

#include "common/xmalloc.h"
#include "supervisor/store/db.h"

static const char *const suffixes[] = {"", "-wal", "-shm"};

struct identity {
	struct {
		char *path;
		dev_t dev;
		ino_t ino;
	} files[ARRAY_LEN(suffixes)];
	int told; /* inotify; -1: nobody tells, each check looks */
};

/* Not its times: who asks Linux (6.13 and later) for them has the next write
 * change them, and a sync of that write then writes the inode as well. */
static int
look_at(const char *path, dev_t *dev, ino_t *ino)
{
	struct statx st;

	if (statx(AT_FDCWD, path, 0, STATX_INO, &st) == -1)
		return -1;
	*dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	*ino = st.stx_ino;
	return 0;
}

/* An inode that is unlinked or renamed over has its count of links changed. */
static void
watch(struct identity *id)
{
	const uint32_t what =
	    IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF | IN_DONT_FOLLOW;

	id->told = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	for (size_t i = 0; id->told != -1 && i < ARRAY_LEN(suffixes); i++) {
		if (inotify_add_watch(id->told, id->files[i].path, what) != -1)
			continue;
		(void)close(id->told);
		id->told = -1;
	}
}

int
identity_new(const char *dir, struct identity **out, struct err *e)
{
	struct identity *id = xcalloc(1, sizeof(*id));

	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
		id->files[i].path =
		    xasprintf("%s/" DB_FILE "%s", dir, suffixes[i]);
	watch(id);
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		const char *path = id->files[i].path;

		if (look_at(path, &id->files[i].dev, &id->files[i].ino) == -1) {
			int rc =
			    err_set(e, ERR_DB, "%s: %s", path, strerror(errno));

			identity_free(id);
			return rc;
		}
	}
	*out = id;
	return 0;
}

void
identity_free(struct identity *id)
{
	if (id == NULL)
		return;
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
		free(id->files[i].path);
	if (id->told != -1)
		(void)close(id->told);
	free(id);
}

int
identity_check(const struct identity *id, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		const char *path = id->files[i].path;
		dev_t dev;
		ino_t ino;
		int rc = look_at(path, &dev, &ino);

		if (rc == 0 && dev == id->files[i].dev &&
		    ino == id->files[i].ino)
			continue;
		if (rc == -1 && errno != ENOENT && errno != ENOTDIR)
			continue; /* a disk's error says nothing of this */
		/* A WAL or its index that is another was removed: SQLite makes
		 * one anew for whoever opens the database next. */
		return err_set(e, ERR_DAMAGED,
		    "%s was %s below the running server: what was done since "
		    "is not kept; put a backup of the database in its place, "
		    "or look for what moved it",
		    path, rc == -1 || i > 0 ? "removed" : "replaced");
	}
	return 0;
}

int
identity_check_told(const struct identity *id, struct err *e)
{
	char events[16 * sizeof(struct inotify_event)];

	if (id->told != -1 && read(id->told, events, sizeof(events)) == -1 &&
	    errno == EAGAIN)
		return 0;
	return identity_check(id, e);
}
