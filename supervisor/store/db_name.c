#include "supervisor/store/db_name.h"

#include <unistd.h>

#include "common/buf.h"
#include "common/xmalloc.h"

#define NAME_BYTES_MAX 16384

static bool
has_wal(const char *path)
{
	AUTO(auto_free) char *wal = xasprintf("%s-wal", path);
	AUTO(auto_free) char *shm = xasprintf("%s-shm", path);

	return access(wal, F_OK) == 0 && access(shm, F_OK) == 0;
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
	(void)buf_printf(
	    &b, has_wal(path) ? "?readonly_shm=1" : "?immutable=1");
	name = xstrndup((const char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	return name;
}
