/*
 * check_data.h - whether the front could keep its data where the settings say
 *
 * The front asks this at its start, before it makes anything; and, started as
 * "mcp-sandboxd-front check", it does nothing else, for --check-config.
 */
#ifndef FRONT_CHECK_DATA_H
#define FRONT_CHECK_DATA_H

#include "common/base.h"
#include "common/conf.h"
#include "common/err.h"

/* check_data_places - the way to DATA_DIR, and ARTIFACTS_DIR; ERR_INVAL names
 * which, and the cure */
int check_data_places(const struct conf *conf, struct err *e) MUSTCHECK;

/* check_data_main - the settings come in the environment; what is wrong is
 * said in the log.  A server may have the database open.  The exit status: 0,
 * or 78 */
int check_data_main(void);

#endif
