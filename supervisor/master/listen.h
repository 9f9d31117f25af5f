/*
 * listen.h - the listening socket, which outlives every front
 *
 * While no front runs, connections wait in the backlog.
 */
#ifndef MASTER_LISTEN_H
#define MASTER_LISTEN_H

#include "common/base.h"
#include "common/err.h"

#define LISTEN_BACKLOG 1024
#define LISTEN_ADDRESS_MAX 64

struct listener {
	int fd;                           /* non-blocking; -1: closed */
	char address[LISTEN_ADDRESS_MAX]; /* 127.0.0.1:8080, [::1]:8080 */
	uint16_t port;                    /* the real one, when 0 was asked */
};
#define LISTENER_INIT                                                          \
	{                                                                      \
		.fd = -1                                                       \
	}

/* listen_open - bind and listen.  ERR_CONFLICT when the port is taken, for
 * two seconds: what a killed server leaves over holds it for a moment; ERR_SYS
 * for anything else; the text says what to do.  *l is changed only on success.
 */
int listen_open(const char *bind_to, uint16_t port, struct listener *l,
    struct err *e) MUSTCHECK;
/* listen_open_admin - a Unix socket of this name in the directory data, mode
 * 0600; one that an earlier server left is replaced: whoever calls has locked
 * the directory */
int listen_open_admin(
    int data, const char *name, struct listener *l, struct err *e) MUSTCHECK;
void listen_close(struct listener *l);

#endif
