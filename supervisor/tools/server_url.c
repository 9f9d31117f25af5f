#include "supervisor/tools/server_url.h"

#include "common/xmalloc.h"

char *
server_url_of(const struct conf *conf, const struct call *call)
{
	const char *url = conf_str(conf, CONF_PUBLIC_URL);
	size_t n;

	if (url[0] == '\0')
		url = call->server_url;
	for (n = strlen(url); n > 0 && url[n - 1] == '/'; n--)
		;
	return xstrndup(url, n);
}
