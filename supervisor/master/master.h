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
#include "supervisor/master/options.h"
#include "supervisor/master/prepare.h"

/* master_run - returns the exit status; reloads change conf and given->tls, and
 * the listeners of given are closed when draining begins */
int master_run(
    const struct options *options, struct conf *conf, struct prepared *given);

#endif
