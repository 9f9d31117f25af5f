/*
 * tlsfiles.h - the certificate, its key and the clients' authority, as copies
 *
 * The front cannot open them and the supervisor does not parse them: here they
 * are read as whoever started the server, and kept as sealed memory files that
 * a front is given, each new one the same.
 */
#ifndef MASTER_TLSFILES_H
#define MASTER_TLSFILES_H

#include "common/base.h"
#include "common/conf.h"
#include "common/err.h"
#include "common/msg/msg_gen.h"

#define TLSFILES_COUNT (MSG_TLS_PART_CLIENT_CA + 1)

struct tlsfiles {
	int fds[TLSFILES_COUNT]; /* by enum msg_tls_part; -1: none */
};
#define TLSFILES_INIT                                                          \
	{                                                                      \
		.fds = { -1, -1, -1 }                                          \
	}

/* tlsfiles_open - copies of what TLS_CERT_FILE, TLS_KEY_FILE and
 * TLS_CLIENT_CA_FILE name; all -1 when there is no TLS_CERT_FILE.  ERR_INVAL
 * or ERR_POLICY (everybody may read the key) with what to do. */
int tlsfiles_open(
    const struct conf *conf, struct tlsfiles *out, struct err *e) MUSTCHECK;
void tlsfiles_close(struct tlsfiles *t);
/* tlsfiles_move - into to, whose own are closed; from is empty then */
void tlsfiles_move(struct tlsfiles *to, struct tlsfiles *from);
/* tlsfiles_send - to a front, TLS_END included; nothing when there are none */
void tlsfiles_send(
    const struct tlsfiles *t, struct ipc_chan *chan, uint32_t number);
/* tlsfiles_scheme - "https" or "http" */
const char *tlsfiles_scheme(const struct conf *conf);

#endif
