#include "supervisor/store/identity.h"

#include <sys/stat.h>
#include <errno.h>

#include "common/xmalloc.h"
#include "supervisor/store/db.h"

static const char *const suffixes[] = {"", "-wal", "-shm"};

struct identity {
	struct {
		char *path;
		dev_t dev;
		ino_t ino;
	} files[ARRAY_LEN(suffixes)];
};

int
identity_new(const char *dir, struct identity **out, struct err *e)
{
	struct identity *id = xcalloc(1, sizeof(*id));
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		char *path = xasprintf("%s/" DB_FILE "%s", dir, suffixes[i]);

		id->files[i].path = path;
		if (stat(path, &st) == -1) {
			int rc =
			    err_set(e, ERR_DB, "%s: %s", path, strerror(errno));

			identity_free(id);
			return rc;
		}
		id->files[i].dev = st.st_dev;
		id->files[i].ino = st.st_ino;
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
	free(id);
}

int
identity_check(const struct identity *id, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		const char *path = id->files[i].path;
		struct stat st;
		int rc = stat(path, &st);

		if (rc == 0 && st.st_dev == id->files[i].dev &&
		    st.st_ino == id->files[i].ino)
			continue;
		if (rc == -1 && errno != ENOENT && errno != ENOTDIR)
			continue; /* a disk's error says nothing of this */
		return err_set(e, ERR_DAMAGED,
		    "%s was %s below the running server: what was done since "
		    "is not kept; put a backup of the database in its place, "
		    "or look for what moved it",
		    path, rc == -1 ? "removed" : "replaced");
	}
	return 0;
}
