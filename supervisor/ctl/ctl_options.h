/*
 * ctl_options.h - sandboxctl's command line and environment
 *
 * Where to: --url (or SANDBOXCTL_URL) with a token of role admin, else the
 * admin socket in --data-dir (or DATA_DIR).  The token comes from
 * SANDBOXCTL_TOKEN, --token-file or --token; an argument is seen by everybody
 * who lists processes.
 */
#ifndef CTL_OPTIONS_H
#define CTL_OPTIONS_H

#include <stdio.h>

#include "common/base.h"
#include "common/err.h"

struct ctl_options {
	bool json;
	bool follow;
	bool raw;
	bool force;
	bool drop_damaged;
	bool watch;
	bool help;
	bool version;
	bool has_data_dir; /* as an option; else it may be the default */
	const char *data_dir;
	const char *url; /* NULL: the admin socket */
	char *token;     /* NULL: none; wiped when cleared */
	const char *role;
	const char *name;
	const char *expires;
	const char *head; /* NULL: none */
	bool offline;
	const char *tenant;
	const char *file;
	uint64_t given; /* options of the command line, as bits */
	char **words;   /* what is left of argv: the command */
	int nwords;
};

/* ctl_options_parse - ERR_INVAL with what to do; argv is reordered.  *o is to
 * be cleared in any case */
int ctl_options_parse(
    int argc, char **argv, struct ctl_options *o, struct err *e) MUSTCHECK;
/* ctl_options_given - the next name of an option of the command line, without
 * its dashes, from *at on, which begins at 0; NULL: no more */
const char *ctl_options_given(const struct ctl_options *o, size_t *at);
void ctl_options_clear(struct ctl_options *o);
void ctl_options_help(FILE *f);

#endif
