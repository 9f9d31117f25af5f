/*
 * stdio_command.h - "mcp-sandboxd stdio": this process becomes the bridge
 *
 * The bridge parses what comes from a network, which the supervisor does not:
 * it is a program of its own (supervisor/stdio/), and is told what it needs of
 * the settings by its environment.
 */
#ifndef MASTER_STDIO_COMMAND_H
#define MASTER_STDIO_COMMAND_H

#include "common/conf.h"
#include "common/err.h"
#include "supervisor/master/options.h"

/* stdio_command_data_dir - DATA_DIR where nobody says another, for a person of
 * this machine; the caller frees */
char *stdio_command_data_dir(void);
/* stdio_command_run - returns only when that is not possible, with *e */
void stdio_command_run(
    const struct options *options, const struct conf *conf, struct err *e);

#endif
