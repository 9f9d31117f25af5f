#include "supervisor/front/openapi_route.h"

#include "supervisor/front/etag.h"

void
openapi_on_request(struct front *f, struct http_exchange *x)
{
	static char tag[ETAG_BYTES]; /* the document is one for all time */
	const struct embed_file *doc = &embed_openapi[0];

	(void)f;
	if (tag[0] == '\0')
		etag_of_bytes(doc->data, doc->len, tag);
	etag_reply(x, tag, doc->data, doc->len);
}
