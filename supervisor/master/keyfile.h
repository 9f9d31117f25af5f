/*
 * keyfile.h - SECRETS_KEY_FILE: what tenants' secrets are sealed with
 *
 * Lines of 64 hex digits: the first seals, all unseal.  The file belongs to
 * whoever started the server and to nobody else; the front is given a copy in
 * a sealed memory file (as tlsfiles.h), each new one the same, and says what
 * is wrong with the lines.  Made with one key when there is none.
 */
#ifndef MASTER_KEYFILE_H
#define MASTER_KEYFILE_H

#include "common/base.h"
#include "common/err.h"
#include "common/msg/msg_gen.h"

enum keyfile_mode {
	KEYFILE_MAKE, /* when there is none */
	KEYFILE_LOOK
};

/* keyfile_open - *out is a descriptor of the caller's; with KEYFILE_LOOK it
 * stays as it is when there is no file.  path "": in data_dir.  ERR_INVAL,
 * ERR_POLICY (others may read it), ERR_SYS, with what to do */
int keyfile_open(const char *path, const char *data_dir, enum keyfile_mode mode,
    int *out, struct err *e) MUSTCHECK;
/* keyfile_send - if it is a front, and fd not -1 */
void keyfile_send(int fd, struct ipc_chan *chan, enum msg_role role);

#endif
