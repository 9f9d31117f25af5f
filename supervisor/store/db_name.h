/* db_name.h - the name by which SQLite opens a file of ours */
#ifndef STORE_DB_NAME_H
#define STORE_DB_NAME_H

#include "common/base.h"

enum db_access {
	DB_ACCESS_OWN,
	DB_ACCESS_LOOK /* nothing is changed, not even beside the file */
};

/*
 * db_name - of the file at path; the caller frees it
 *
 * To look it is a URI, in which "readonly_shm" has SQLite read the WAL of a
 * server that runs or was killed without writing to the file of its locks, and
 * "immutable" keeps it from making files beside a database that has none.
 */
char *db_name(const char *path, enum db_access how);

#endif
