/* db_name.h - the name by which SQLite opens a file of ours */
#ifndef STORE_DB_NAME_H
#define STORE_DB_NAME_H

#include "common/base.h"

/* Those behind the first change nothing, not even beside the file. */
enum db_access {
	DB_ACCESS_OWN,
	DB_ACCESS_FILE,   /* no WAL: "immutable" has SQLite make no files */
	DB_ACCESS_SHARED, /* a server runs or was killed: its WAL is read, by
			     "readonly_shm" without a write to its locks */
	/* A WAL without its -shm, which was not copied: nobody has it open.
	 * Without locks SQLite keeps the WAL-index in memory, if its locking
	 * mode is EXCLUSIVE before the first read. */
	DB_ACCESS_COPY
};

/* db_access_to_look - by what is beside the file */
enum db_access db_access_to_look(const char *path);
/* db_name - of the file at path; the caller frees it */
char *db_name(const char *path, enum db_access how);

#endif
