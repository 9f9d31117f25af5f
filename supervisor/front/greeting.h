/* greeting.h - a short page for who opens the server in a browser */
#ifndef FRONT_GREETING_H
#define FRONT_GREETING_H

#include "common/base.h"

struct front;
struct http_exchange;

/* greeting_is_wanted - it asks as browsers do: GET, and for text/html by name
 */
bool greeting_is_wanted(const struct http_exchange *x);
void greeting_reply(struct front *f, struct http_exchange *x);

#endif
