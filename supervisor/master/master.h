/*
 * master.h - the supervisor at work: from "everything is prepared" to the
 * last child's end
 *
 *	SIGTERM, SIGINT	drain, then exit 0; a second one skips the wait
 *	SIGHUP		read the configuration again; when the terminal went
 *			away (and we are not under nohup): as SIGTERM
 */
#ifndef MASTER_MASTER_H
#define MASTER_MASTER_H

#include "common/base.h"
#include "common/conf.h"
#include "supervisor/master/datadir.h"
#include "supervisor/master/listen.h"
#include "supervisor/master/options.h"
#include "supervisor/master/bounds.h"
#include "supervisor/master/tlsfiles.h"
#include "supervisor/master/users.h"

struct master_setup { /* all of it stays the caller's */
	const struct options *options;
	struct conf *conf; /* reloads change it */
	const struct users *users;
	const struct datadir *datadir;
	const char *instance; /* its id */
	const struct bounds *bounds;
	struct tlsfiles *tls;      /* reloads change them */
	int secrets_key;           /* keyfile.h */
	struct listener *listener; /* closed when draining begins */
	struct listener *admin;    /* likewise */
	char *const *paths;        /* of the programs, as in crew.h */
};

/* master_run - returns the exit status */
int master_run(const struct master_setup *setup);

#endif
