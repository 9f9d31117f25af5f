/* client.h - what a client says that it is */
#ifndef MCP_CLIENT_H
#define MCP_CLIENT_H

#include <jansson.h>

#include "common/base.h"
#include "common/call.h"

/* client_name - name/version of a clientInfo, for records: UTF-8 without
 * control characters; what is no text is left out, "" when all is */
void client_name(const json_t *info, char out[CALL_CLIENT_MAX + 1]);

#endif
