#include "supervisor/front/front.h"

#include <stdio.h>

/* Probes: alive is whoever answers; ready is who can serve calls now. */

static void
reply_status(struct http_exchange *x, const char *status)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "{\"status\":\"%s\"}", status);

	http_add_header(x, "Cache-Control", "no-store");
	http_reply(x, 200, "application/json", text, (size_t)n);
}

void
front_on_healthz(struct front *f, struct http_exchange *x)
{
	(void)f;
	reply_status(x, "ok");
}

void
front_on_readyz(struct front *f, struct http_exchange *x)
{
	struct err e;

	if (core_check(f->core, &e) != 0)
		http_error(x, 503, "not_ready", "%s", e.msg);
	else if (f->draining)
		http_error(x, 503, "not_ready", "shutting down");
	else
		reply_status(x, "ready");
}
