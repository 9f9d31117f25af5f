/*
 * tool_text.h - the text block of a tool's result, which models read
 *
 * A transcript (tool_text.c), or, with TOOL_TEXT=json, what the compatible
 * server gives: one line that sums up, then the structured content as indented
 * JSON; when that is longer than TOOL_JSON_MAX, the transcript stands in its
 * place.  A transcript that would be longer is cut, and says by how much:
 * nothing is left out without a word.
 */
#ifndef TOOLS_TOOL_TEXT_H
#define TOOLS_TOOL_TEXT_H

#include <jansson.h>

#include "common/base.h"

/* What clients hand on whole: the least of them cut at 20,000 bytes, or show
 * 2,000 lines from the head (decision 104). */
#define TOOL_TEXT_MAX 16000
#define TOOL_TEXT_LINES_MAX 1900
#define TOOL_JSON_MAX 65536 /* for programs */

struct tool;

enum tool_text_form {
	TOOL_TEXT_TRANSCRIPT,
	TOOL_TEXT_JSON
};

struct tool_text_wish {
	enum tool_text_form form;
	/* How the client reaches this server, no slash at the end; "": links
	 * are paths. */
	const char *server_url;
	/* Files whose pictures follow the text, in their order. */
	const char *const *images;
	size_t nimages;
};

/* tool_text - the caller frees; never NULL */
char *tool_text(const struct tool *tool, const json_t *result,
    const struct tool_text_wish *wish);

#endif
