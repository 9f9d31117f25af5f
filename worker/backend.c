#include "worker/backend.h"

#include <stdio.h>

void
backend_handle_named(struct backend_handle *h, const char *id_or_name)
{
	memset(h, 0, sizeof(*h));
	(void)snprintf(h->id, sizeof(h->id), "%s", id_or_name);
}
