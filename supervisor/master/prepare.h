/*
 * prepare.h - what must hold before the first child starts: one list of
 * steps, which a start takes and --check-config tries
 *
 * What children look at when they start, their programs say (check_data.h,
 * visit.h): --check-config asks them.
 */
#ifndef MASTER_PREPARE_H
#define MASTER_PREPARE_H

#include "common/base.h"
#include "common/child.h"
#include "common/conf.h"
#include "common/err.h"
#include "supervisor/master/bounds.h"
#include "supervisor/master/datadir.h"
#include "supervisor/master/instance.h"
#include "supervisor/master/keyfile.h"
#include "supervisor/master/listen.h"
#include "supervisor/master/tlsfiles.h"
#include "supervisor/master/users.h"

struct prepared {
	const struct conf *conf;
	bool is_look; /* nothing is made or changed */
	struct listener listener;
	struct listener admin;
	struct tlsfiles tls;
	struct bounds bounds;
	int secrets_key; /* keyfile.h; -1: none */
	struct users users;
	struct datadir datadir;
	char instance[INSTANCE_ID_LEN + 1];
	char *paths[CHILD_ROLES]; /* of the programs; NULL: not wanted */
};
#define PREPARED_INIT                                                          \
	{                                                                      \
		.listener = LISTENER_INIT, .admin = LISTENER_INIT,             \
		.tls = TLSFILES_INIT, .secrets_key = -1, .datadir = {          \
			.lock_fd = -1                                          \
		}                                                              \
	}

/* prepare_start - all of it, and then without the rights that only this
 * needed; the first that fails ends it.  *p is to be cleared in any case. */
int prepare_start(
    const struct conf *conf, struct prepared *p, struct err *e) MUSTCHECK;
/* prepare_look - all of it but for what changes something, and what the
 * children's programs say: each failure is logged.  0; or *e is the first of
 * ours, or the exit status of the first child's is returned */
int prepare_look(const struct conf *conf, struct err *e) MUSTCHECK;
void prepared_clear(struct prepared *p);

#endif
