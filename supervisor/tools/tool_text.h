/*
 * tool_text.h - the text block of a tool's result, for models that are not
 * shown structured content
 *
 * One line that sums up, then the structured content as indented JSON.  When
 * that would be longer than TOOL_TEXT_MAX, the outputs' heads and tails come
 * in its place, with the number of bytes left out.
 */
#ifndef TOOLS_TOOL_TEXT_H
#define TOOLS_TOOL_TEXT_H

#include <jansson.h>

#define TOOL_TEXT_MAX 65536

struct tool;

/* text_member - a text of a result or of arguments; "" when there is none */
const char *text_member(const json_t *o, const char *key);

/* tool_text - the caller frees; never NULL */
char *tool_text(const struct tool *tool, const json_t *result);

#endif
