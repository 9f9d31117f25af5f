/*
 * sandboxctl - the operator's command
 *
 * Exit status: 0 done, 1 failed, 2 wrong usage; what failed is one line on
 * stderr.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/ctl/ctl_call.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unreleased"
#endif

int
main(int argc, char **argv)
{
	struct ctl_options o;
	struct err e = {0};
	int status = CTL_DONE;

	if (ctl_options_parse(argc, argv, &o, &e) != 0)
		status = CTL_USAGE;
	else if (o.help)
		ctl_options_help(stdout);
	else if (o.version)
		(void)puts("sandboxctl " PACKAGE_VERSION);
	else
		status = ctl_commands_run(&o, &e);
	ctl_options_clear(&o);
	if (status != CTL_DONE)
		(void)fprintf(stderr, "sandboxctl: %s\n", e.msg);
	if (fflush(stdout) == 0)
		return status;
	if (status == CTL_DONE)
		(void)fprintf(stderr,
		    "sandboxctl: it was done, but what came of it could not "
		    "be printed: %s\n",
		    strerror(errno));
	return status == CTL_DONE ? CTL_FAILED : status;
}
