/*
 * options.h - the command line, and the configuration from its sources
 *
 * Later sources win: --config FILE, environment, KEY=value arguments.  The
 * same sources are read again on SIGHUP.
 */
#ifndef MASTER_OPTIONS_H
#define MASTER_OPTIONS_H

#include <stdio.h>

#include "common/base.h"
#include "common/conf.h"
#include "common/err.h"

enum options_action {
	OPTIONS_RUN,
	OPTIONS_CHECK,
	OPTIONS_DOCTOR,
	OPTIONS_PURGE,
	OPTIONS_CLIENTS,
	OPTIONS_STDIO,
	OPTIONS_HELP,
	OPTIONS_VERSION
};

/* Points into argv, which must stay. */
struct options {
	enum options_action action;
	bool json;               /* with OPTIONS_DOCTOR */
	bool yes;                /* with OPTIONS_PURGE */
	const char *client;      /* with OPTIONS_CLIENTS; NULL: all */
	const char *config_file; /* NULL: none */
	const char *takeover;    /* value of TAKEOVER; NULL: not said */
	char *const *settings;   /* KEY=value */
	size_t nsettings;
};

/* options_parse - ERR_INVAL for what is no option, no KEY=value and no
 * command before these (schema/usage.txt) */
int options_parse(
    int argc, char **argv, struct options *o, struct err *e) MUSTCHECK;
/* options_load - a new configuration, checked; *out is the caller's */
int options_load(
    const struct options *o, struct conf **out, struct err *e) MUSTCHECK;
void options_print_help(FILE *f);

#endif
