#include "supervisor/mcp/client.h"

#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

void
client_name(const json_t *info, char out[CALL_CLIENT_MAX + 1])
{
	const char *version = js_text(info, "version");
	AUTO(auto_free)
	char *all = xasprintf("%s%s%s", js_text(info, "name"),
	    version[0] != '\0' ? "/" : "", version);

	utf8_copy(out, CALL_CLIENT_MAX + 1, all);
	out[utf8_mask_controls(out, strlen(out))] = '\0';
}
