/*
 * instance.h - which server's sandboxes are whose: an id that DATA_DIR keeps
 *
 * DATA_DIR/instance is made once and holds 128 random bits; every sandbox on
 * the engine bears them.  It also says which file it is (inode and time of
 * birth): a copy of the directory, or one put back from a backup, is seen by
 * that, and takes nothing over without being told to (settings: TAKEOVER).
 */
#ifndef MASTER_INSTANCE_H
#define MASTER_INSTANCE_H

#include "common/base.h"
#include "common/err.h"

#define INSTANCE_ID_BYTES 16
#define INSTANCE_ID_LEN (2 * INSTANCE_ID_BYTES)

enum instance_takeover {
	INSTANCE_ASK,
	INSTANCE_ADOPT, /* a copy goes on as the original */
	INSTANCE_FORGET /* a copy becomes an instance of its own */
};

/*
 * instance_open - the id of the directory, which is made when there is none
 *
 *	dir	a descriptor of DATA_DIR; path is for the texts and is kept in
 *		the file, to tell the reader of a copy where it came from
 *
 * ERR_POLICY: the directory is a copy and nobody said whose its sandboxes are;
 * ERR_INVAL: the file is not as it was written, or is another user's.  Nothing
 * is changed then.
 */
int instance_open(int dir, const char *path, enum instance_takeover takeover,
    char id[INSTANCE_ID_LEN + 1], struct err *e) MUSTCHECK;
/* instance_look - what instance_open would say; nothing is made or changed */
int instance_look(int dir, const char *path, enum instance_takeover takeover,
    struct err *e) MUSTCHECK;
/* instance_read - the id of a directory that has one; else ERR_NOTFOUND */
int instance_read(int dir, const char *path, char id[INSTANCE_ID_LEN + 1],
    struct err *e) MUSTCHECK;

#endif
