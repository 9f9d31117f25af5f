/*
 * tool_text.h - the text block of a tool's result, which models read
 *
 * A transcript (tool_text.c), or, with TOOL_TEXT=json, what the compatible
 * server gives: one line that sums up, then the structured content as indented
 * JSON; when that is longer than TOOL_TEXT_MAX, the transcript's body stands in
 * its place.  A transcript that would be longer is cut, and says by how much:
 * nothing is left out without a word.
 */
#ifndef TOOLS_TOOL_TEXT_H
#define TOOLS_TOOL_TEXT_H

#include <jansson.h>

#define TOOL_TEXT_MAX 65536

struct tool;

enum tool_text_form {
	TOOL_TEXT_TRANSCRIPT,
	TOOL_TEXT_JSON
};

/* tool_text - the caller frees; never NULL */
char *tool_text(
    const struct tool *tool, const json_t *result, enum tool_text_form form);

#endif
