/*
 * check.c - is this Host ours, and may this Origin call?
 *
 * Hosts are those of our listeners with their ports, loopback by its names,
 * and ALLOWED_HOSTS; a listener on all addresses takes the one a client
 * reached.  From this machine the loopback names are ours with any port: it is
 * that of whoever forwards (ssh -L, a proxy), and no page can rebind these
 * names.  Origins are loopback pages of our own ports and CORS_ALLOW_ORIGINS:
 * a page on another port of loopback is another program's.
 */
#include "supervisor/front/check.h"

#include <netinet/in.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>

#include "common/xmalloc.h"

#define HOSTS_MAX 128
#define HOST_LEN_MAX 262 /* a DNS name, a colon and a port */

static const char *const loopback_names[] = {"127.0.0.1", "localhost", "[::1]"};

struct check {
	char *hosts[HOSTS_MAX]; /* "127.0.0.1:8080" */
	size_t nhosts;
	uint16_t ports[16]; /* of listeners on all addresses */
	size_t nports;
	bool tls;
	const struct conf *conf; /* lists are looked up there each time */
};

struct check *
check_new(const struct conf *conf)
{
	struct check *c = xcalloc(1, sizeof(*c));

	c->conf = conf;
	return c;
}

void
check_free(struct check *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < c->nhosts; i++)
		free(c->hosts[i]);
	free(c);
}

void
check_set_tls(struct check *c)
{
	c->tls = true;
}

static bool
has_host(const struct check *c, const char *host)
{
	for (size_t i = 0; i < c->nhosts; i++)
		if (strcasecmp(c->hosts[i], host) == 0)
			return true;
	return false;
}

static void
add_host(struct check *c, const char *name, uint16_t port)
{
	char text[HOST_LEN_MAX];

	(void)snprintf(text, sizeof(text), "%s:%u", name, port);
	if (!has_host(c, text) && c->nhosts < HOSTS_MAX)
		c->hosts[c->nhosts++] = xstrdup(text);
}

#define ADDRESS_MAX (NETADDR_TEXT_MAX + 2)

/* "192.0.2.1" or "[2001:db8::1]" and the port; 0 for another family. */
static uint16_t
address_text(const struct sockaddr *sa, char out[ADDRESS_MAX], bool *any)
{
	const struct netaddr a = netaddr_from_sockaddr(sa);
	char text[NETADDR_TEXT_MAX];
	struct sockaddr_in in; /* its port is where that of IPv6 is */

	if (a.kind != NETADDR_V4 && a.kind != NETADDR_V6)
		return 0;
	memcpy(&in, sa, sizeof(in));
	(void)snprintf(out, ADDRESS_MAX, a.kind == NETADDR_V6 ? "[%s]" : "%s",
	    netaddr_format(&a, text));
	*any = strcmp(text, "0.0.0.0") == 0 || strcmp(text, "::") == 0;
	return ntohs(in.sin_port);
}

int
check_may_listen(const struct netaddr *a, struct err *e)
{
	if (netaddr_is_loopback(a))
		return 0;
	return err_set(e, ERR_POLICY,
	    "BIND: this address can be reached from other machines, and there "
	    "is no tenant: everybody could run programs here.  Start with "
	    "REQUIRE_TOKEN=true and make one (sandboxctl tenant add NAME, "
	    "sandboxctl token add NAME), or name tenants and tokens in "
	    "TENANTS_FILE, or an authorization server in OAUTH_ISSUER");
}

void
check_add_listener(struct check *c, const struct sockaddr *sa)
{
	char name[ADDRESS_MAX] = "";
	bool any = false;
	uint16_t port = address_text(sa, name, &any);

	if (port == 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(loopback_names); i++)
		add_host(c, loopback_names[i], port);
	if (!any)
		add_host(c, name, port);
	else if (c->nports < ARRAY_LEN(c->ports))
		c->ports[c->nports++] = port;
}

/* An entry of ALLOWED_HOSTS without a port stands for any port. */
static bool
is_allowed_host(char *const *list, const char *host)
{
	const char *colon = strrchr(host, ':');
	size_t name_len = colon != NULL && strchr(colon, ']') == NULL ?
	    (size_t)(colon - host) :
	    strlen(host);

	for (; list != NULL && *list != NULL; list++) {
		if (strcasecmp(*list, host) == 0)
			return true;
		if (strlen(*list) == name_len &&
		    strncasecmp(*list, host, name_len) == 0)
			return true;
	}
	return false;
}

/* Listening on all addresses, the one the client reached is ours.  A page
 * cannot rebind a number. */
static bool
is_local_address(
    const struct check *c, const char *host, const struct sockaddr *local)
{
	char name[ADDRESS_MAX] = "", text[HOST_LEN_MAX];
	bool any = false;
	uint16_t port;

	if (local == NULL || c->nports == 0)
		return false;
	port = address_text(local, name, &any);
	(void)snprintf(text, sizeof(text), "%s:%u", name, port);
	for (size_t i = 0; i < c->nports; i++)
		if (c->ports[i] == port && strcasecmp(host, text) == 0)
			return true;
	return false;
}

/* A Host without a port means port 80, or 443. */
static bool
is_own_host(const struct check *c, const char *host)
{
	char text[HOST_LEN_MAX + 4];
	size_t n = strlen(host);

	if (has_host(c, host))
		return true;
	if (n == 0 || n >= HOST_LEN_MAX)
		return false;
	if (strchr(host, ':') != NULL && host[n - 1] != ']')
		return false;
	(void)snprintf(
	    text, sizeof(text), "%s:%s", host, c->tls ? "443" : "80");
	return has_host(c, text);
}

/* Empty, or ":" and a port. */
static bool
is_port_or_none(const char *p)
{
	unsigned int port = 0;

	if (*p == '\0')
		return true;
	if (*p++ != ':')
		return false;
	for (; *p >= '0' && *p <= '9' && port <= UINT16_MAX; p++)
		port = port * 10 + (unsigned int)(*p - '0');
	return *p == '\0' && port > 0 && port <= UINT16_MAX;
}

static bool
is_loopback_name(const char *host)
{
	for (size_t i = 0; i < ARRAY_LEN(loopback_names); i++) {
		size_t n = strlen(loopback_names[i]);

		if (strncasecmp(host, loopback_names[i], n) == 0 &&
		    is_port_or_none(host + n))
			return true;
	}
	return false;
}

static bool
is_host_on_its_way(
    const struct check *c, const char *host, const struct check_way *way)
{
	if (way->peer != NULL && netaddr_is_loopback(way->peer) &&
	    is_loopback_name(host))
		return true;
	return is_local_address(c, host, way->local);
}

/* Of our own only the loopback names: a page that was served under another
 * address of ours is not ours to trust without being asked to. */
static bool
is_own_origin(const struct check *c, const char *origin)
{
	const char *scheme = c->tls ? "https://" : "http://";

	if (strncasecmp(origin, scheme, strlen(scheme)) != 0)
		return false;
	origin += strlen(scheme);
	return is_loopback_name(origin) && is_own_host(c, origin);
}

static bool
is_listed_origin(char *const *list, const char *origin)
{
	for (; list != NULL && *list != NULL; list++)
		if (strcasecmp(*list, origin) == 0)
			return true;
	return false;
}

int
check_request(const struct check *c, const char *host, const char *origin,
    const struct check_way *way, struct check_refusal *why)
{
	if (!is_own_host(c, host) &&
	    !is_allowed_host(conf_list(c->conf, CONF_ALLOWED_HOSTS), host) &&
	    !is_host_on_its_way(c, host, way)) {
		*why = (struct check_refusal){403, "host_not_allowed", ""};
		(void)snprintf(why->text, sizeof(why->text),
		    "Host %.100s is not this server's name: add it to "
		    "ALLOWED_HOSTS",
		    host);
		return -1;
	}
	if (origin != NULL && !is_own_origin(c, origin) &&
	    !is_listed_origin(
		conf_list(c->conf, CONF_CORS_ALLOW_ORIGINS), origin)) {
		*why = (struct check_refusal){403, "origin_not_allowed", ""};
		(void)snprintf(why->text, sizeof(why->text),
		    "Origin %.100s may not call this server: add it to "
		    "CORS_ALLOW_ORIGINS",
		    origin);
		return -1;
	}
	return 0;
}

bool
check_varies(const struct check *c)
{
	char *const *list = conf_list(c->conf, CONF_CORS_ALLOW_ORIGINS);

	return list != NULL && *list != NULL;
}
