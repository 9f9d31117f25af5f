/* list_text.h - the text of a list of runs or sandboxes, a line for each */
#ifndef TOOLS_LIST_TEXT_H
#define TOOLS_LIST_TEXT_H

#include <jansson.h>

#include "common/buf.h"

/* list_text_write - nothing for a result that is no list; b has a bound */
void list_text_write(struct buf *b, const json_t *result);

#endif
