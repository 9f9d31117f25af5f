#include "common/engine_host.h"

#include "common/netaddr.h"
#include "common/xmalloc.h"

#define UNIX_PREFIX "unix://"
#define TCP_PREFIX "tcp://"
#define PORT_DIGITS_MAX 5
#define PORT_MAX 65535

static int
take_path(const char *path, struct engine_host *out, struct err *e)
{
	if (path[0] != '/' || strlen(path) > ENGINE_HOST_PATH_MAX)
		return err_set(e, ERR_INVAL,
		    "DOCKER_HOST is \"unix://%.120s\", want unix:///path of at "
		    "most %d bytes",
		    path, ENGINE_HOST_PATH_MAX);
	out->kind = ENGINE_HOST_UNIX;
	(void)strcpy(out->path, path);
	return 0;
}

static int
take_port(const char *s, uint16_t *out)
{
	size_t n = strlen(s);
	unsigned long port;

	if (n == 0 || n > PORT_DIGITS_MAX || strspn(s, "0123456789") != n)
		return ERR_INVAL;
	port = strtoul(s, NULL, 10);
	if (port == 0 || port > PORT_MAX)
		return ERR_INVAL;
	*out = (uint16_t)port;
	return 0;
}

/* n bytes, in brackets or not. */
static int
take_name(const char *s, size_t n, struct engine_host *out)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	struct netaddr address;

	out->is_ipv6 = n > 2 && s[0] == '[' && s[n - 1] == ']';
	if (out->is_ipv6) {
		s++;
		n -= 2;
		if (memchr(s, ':', n) == NULL)
			return ERR_INVAL;
	} else if (n == 0 || strspn(s, good) < n) {
		return ERR_INVAL;
	}
	if (n > ENGINE_HOST_NAME_MAX)
		return ERR_INVAL;
	for (size_t i = 0; i < n; i++)
		out->name[i] =
		    (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] + 0x20 : s[i]);
	out->name[n] = '\0';
	if (netaddr_parse(out->name, n, &address) == 0)
		out->is_loopback = netaddr_is_loopback(&address);
	else if (out->is_ipv6)
		return ERR_INVAL;
	else
		out->is_loopback = strcmp(out->name, "localhost") == 0;
	return 0;
}

int
engine_host_parse(const char *text, struct engine_host *out, struct err *e)
{
	const char *at = text + strlen(TCP_PREFIX);
	const char *colon;

	memset(out, 0, sizeof(*out));
	if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0)
		return take_path(text + strlen(UNIX_PREFIX), out, e);
	if (strncmp(text, TCP_PREFIX, strlen(TCP_PREFIX)) != 0)
		return err_set(e, ERR_INVAL,
		    "DOCKER_HOST is \"%.100s\", want unix:///path or "
		    "tcp://HOST:PORT",
		    text);
	colon = strrchr(at, ':');
	out->kind = ENGINE_HOST_TCP;
	if (colon == NULL || take_port(colon + 1, &out->port) != 0 ||
	    take_name(at, (size_t)(colon - at), out) != 0)
		return err_set(e, ERR_INVAL,
		    "DOCKER_HOST is \"%.100s\", want tcp://HOST:PORT: a name "
		    "or an address (of IPv6 in brackets), and a port, which is "
		    "usually 2376 with TLS",
		    text);
	return 0;
}

/* Of the user who asks. */
static char *
runtime_directory(void)
{
	const char *named = getenv("XDG_RUNTIME_DIR");

	return named != NULL && named[0] == '/' ?
	    xstrdup(named) :
	    xasprintf("/run/user/%lu", (unsigned long)geteuid());
}

size_t
engine_host_usual(char *out[ENGINE_HOST_USUAL_MAX])
{
	AUTO(auto_free) char *own = runtime_directory();

	out[0] = xasprintf("%s/podman/podman.sock", own);
	out[1] = xasprintf("%s/docker.sock", own);
	out[2] = xstrdup("/run/podman/podman.sock");
	out[3] = xstrdup("/var/run/docker.sock");
	return ENGINE_HOST_USUAL_MAX;
}
