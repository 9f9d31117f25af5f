/*
 * header.h - values of headers that a message's own texts become
 *
 * MCP 2026-07-28, transports: a text that is no plain visible ASCII goes as
 * =?base64?...?=, and so does one that looks like that.
 */
#ifndef STDIO_HEADER_H
#define STDIO_HEADER_H

#include "common/base.h"

/* header_is_plain - visible ASCII, perhaps with blanks inside */
bool header_is_plain(const char *text);
/* header_encode - the caller frees */
char *header_encode(const char *text);

#endif
