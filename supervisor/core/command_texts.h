/* command_texts.h - what the row of a command says of it */
#ifndef CORE_COMMAND_TEXTS_H
#define CORE_COMMAND_TEXTS_H

#include "common/runspec.h"
#include "supervisor/store/store.h"

#define ENV_NOT_KEPT "***" /* in a row, in place of a variable's value */

/* command_texts_fill - shell or argv, cwd and the names of variables, in place
 * of what the row has */
void command_texts_fill(
    struct store_command *row, const struct runspec_command *c);

#endif
