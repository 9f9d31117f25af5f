#include "supervisor/store/db_name.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/xmalloc.h"

#define NAME_BYTES_MAX 16384

static const char *const queries[] = {[DB_ACCESS_FILE] = "?immutable=1",
    [DB_ACCESS_SHARED] = "?readonly_shm=1",
    [DB_ACCESS_COPY] = "?vfs=unix-none"};

enum db_access
db_access_to_look(const char *path)
{
	AUTO(auto_free) char *wal = xasprintf("%s-wal", path);
	AUTO(auto_free) char *shm = xasprintf("%s-shm", path);
	struct stat st;

	if (stat(wal, &st) == -1 || st.st_size == 0)
		return DB_ACCESS_FILE;
	return access(shm, F_OK) == 0 ? DB_ACCESS_SHARED : DB_ACCESS_COPY;
}

char *
db_name(const char *path, enum db_access how)
{
	struct buf b;
	char *name;

	if (how == DB_ACCESS_OWN)
		return xstrdup(path);
	buf_init(&b, NAME_BYTES_MAX);
	(void)buf_printf(&b, "file:");
	for (const char *p = path; *p != '\0'; p++)
		(void)buf_printf(&b,
		    strchr("%?#", *p) != NULL ? "%%%02x" : "%c",
		    (unsigned char)*p);
	(void)buf_printf(&b, "%s", queries[how]);
	name = xstrndup((const char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	return name;
}
