/* server_url.h - with what links to this server begin */
#ifndef TOOLS_SERVER_URL_H
#define TOOLS_SERVER_URL_H

#include "common/call.h"
#include "common/conf.h"

/* server_url_of - PUBLIC_URL, else as the call's client reached the server;
 * without a slash at its end, "": nobody knows.  The caller frees. */
char *server_url_of(const struct conf *conf, const struct call *call);

#endif
