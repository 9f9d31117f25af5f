#include "worker/http/server_address.h"

#include "common/engine_host.h"
#include "common/netaddr.h"
#include "common/weburl.h"
#include "common/xmalloc.h"

#define HTTPS "https://"

static bool
is_this_machine(const char *name)
{
	struct netaddr address;

	if (netaddr_parse(name, strlen(name), &address) == 0)
		return netaddr_is_loopback(&address);
	return strcmp(name, "localhost") == 0;
}

static int
take_https(const char *url, struct server_address *out, struct err *e)
{
	const char *path = strchr(url + strlen(HTTPS), '/');
	size_t n = path != NULL ? strlen(path) : 0;
	struct weburl at;

	if (weburl_parse(url, &at, e) != 0)
		return ERR_INVAL;
	if (strchr(url, '?') != NULL)
		return err_set(e, ERR_INVAL, "the URL has a query (?)");
	while (n > 0 && path[n - 1] == '/')
		n--;
	if (n > SERVER_ADDRESS_PREFIX_MAX)
		return err_set(e, ERR_INVAL,
		    "the URL's path has more than %d bytes",
		    SERVER_ADDRESS_PREFIX_MAX);
	out->is_https = true;
	(void)strcpy(out->name, at.host);
	out->port = (uint16_t)at.port;
	out->is_loopback = is_this_machine(at.host);
	if (n > 0)
		memcpy(out->prefix, path, n);
	return 0;
}

static int
take_tcp(const char *url, struct server_address *out, struct err *e)
{
	struct engine_host at;

	if (engine_host_parse(url, &at, e) != 0)
		return ERR_INVAL;
	if (at.kind != ENGINE_HOST_TCP)
		return err_set(
		    e, ERR_INVAL, "\"%.100s\" is no tcp://HOST:PORT", url);
	(void)strcpy(out->name, at.name);
	out->port = at.port;
	out->is_loopback = at.is_loopback;
	return 0;
}

int
server_address_parse(const char *url, struct server_address *out, struct err *e)
{
	memset(out, 0, sizeof(*out));
	return strncmp(url, HTTPS, strlen(HTTPS)) == 0 ?
	    take_https(url, out, e) :
	    take_tcp(url, out, e);
}

/* A colon is an IPv6 address's. */
char *
server_address_authority(const struct server_address *at, const char *name)
{
	if (name == NULL)
		name = at->name;
	return xasprintf(strchr(name, ':') != NULL ? "[%s]:%u" : "%s:%u", name,
	    (unsigned int)at->port);
}

char *
server_address_url(
    const struct server_address *at, bool has_tls, const char *name)
{
	AUTO(auto_free) char *authority = server_address_authority(at, name);

	return xasprintf("%s://%s/", has_tls ? "https" : "http", authority);
}
