/* level.h - the words for enum mcp_level, as messages have them */
#ifndef MCP_LEVEL_H
#define MCP_LEVEL_H

#include <jansson.h>

#include "supervisor/mcp/offer.h"

#define LEVEL_NONE (-1) /* no messages are asked for */

const char *level_word(enum mcp_level level);
/* level_find - the level of this word, or LEVEL_NONE; of NULL and of what is no
 * text, too */
int level_find(const json_t *word);

#endif
