/* base64.h - bytes as text (RFC 4648, section 4), and back */
#ifndef MCP_BASE64_H
#define MCP_BASE64_H

#include "common/base.h"

/* base64_write - the caller frees; never NULL */
char *base64_write(const void *bytes, size_t n);
/* base64_read - 0 and the bytes, the caller's to free; ERR_INVAL for what
 * base64_write does not write */
int base64_read(const char *text, uint8_t **out, size_t *n) MUSTCHECK;

#endif
