#include "common/conf.h"

#include <arpa/inet.h>
#include <regex.h>
#include <strings.h>

#include "common/engine_host.h"
#include "common/netaddr.h"
#include "common/outside.h"
#include "common/weburl.h"

#define CONF_PATTERN_COUNT_MAX 255 /* RE_DUP_MAX of POSIX */
#define CONF_PROXIES_MAX 64
#define CONF_INSTANCE_MAX 63 /* what a label value may have anywhere */

static const char conf_letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "abcdefghijklmnopqrstuvwxyz0123456789_.-";

/* The paths that the server answers itself; MCP_PATH cannot be one of them
 * nor lie below. */
static const char *const conf_own_paths[] = {"/api", "/artifacts", "/healthz",
    "/messages", "/metrics", "/readyz", "/sse", "/ui"};

static int
conf_check_bind(const struct conf *c, struct err *e)
{
	const char *bind = conf_str(c, CONF_BIND);
	struct in6_addr a;

	if (strcmp(bind, CONF_BIND_NONE) != 0 &&
	    inet_pton(AF_INET, bind, &a) != 1 &&
	    inet_pton(AF_INET6, bind, &a) != 1)
		return err_set(e, ERR_INVAL,
		    "BIND is \"%.64s\", want an IPv4 or IPv6 address, or none",
		    bind);
	return 0;
}

static int
conf_check_proxies(const struct conf *c, struct err *e)
{
	char *const *list = conf_list(c, CONF_TRUSTED_PROXIES);
	struct netblock block;

	for (size_t i = 0; list != NULL && list[i] != NULL; i++) {
		if (i == CONF_PROXIES_MAX)
			return err_set(e, ERR_INVAL,
			    "TRUSTED_PROXIES: more than %d entries",
			    CONF_PROXIES_MAX);
		if (netblock_parse(list[i], &block, e) != 0)
			return err_wrap(e, "TRUSTED_PROXIES");
	}
	return 0;
}

static int
conf_check_tls(const struct conf *c, struct err *e)
{
	bool cert = conf_str(c, CONF_TLS_CERT_FILE)[0] != '\0';

	if (cert != (conf_str(c, CONF_TLS_KEY_FILE)[0] != '\0'))
		return err_set(e, ERR_INVAL,
		    "TLS_CERT_FILE and TLS_KEY_FILE belong together, and only "
		    "one of them is set");
	if (!cert && conf_str(c, CONF_TLS_CLIENT_CA_FILE)[0] != '\0')
		return err_set(e, ERR_INVAL,
		    "TLS_CLIENT_CA_FILE is set, but without TLS_CERT_FILE and "
		    "TLS_KEY_FILE there is no TLS");
	return 0;
}

static int
conf_check_mcp_path(const struct conf *c, struct err *e)
{
	const char *path = conf_str(c, CONF_MCP_PATH);
	size_t len = strlen(path);

	if (path[0] != '/' || strstr(path, "//") != NULL || len > 255 ||
	    (len > 1 && path[len - 1] == '/'))
		return err_set(e, ERR_INVAL,
		    "MCP_PATH is \"%.64s\", want a path that starts, but does"
		    " not end, with a slash",
		    path);
	for (const char *p = path; *p != '\0'; p++)
		if (*p != '/' && strchr(conf_letters, *p) == NULL)
			return err_set(e, ERR_INVAL,
			    "MCP_PATH is \"%.64s\", want only letters, digits,"
			    " / _ . and -",
			    path);
	for (size_t i = 0; i < ARRAY_LEN(conf_own_paths); i++) {
		size_t n = strlen(conf_own_paths[i]);

		if (strncmp(path, conf_own_paths[i], n) == 0 &&
		    (path[n] == '\0' || path[n] == '/'))
			return err_set(e, ERR_INVAL,
			    "MCP_PATH is \"%.64s\", but %s is in use by the"
			    " server; want another path",
			    path, conf_own_paths[i]);
	}
	return 0;
}

static int
conf_check_words(const struct conf *c, struct err *e)
{
	const char *instance = conf_str(c, CONF_INSTANCE);

	if (conf_str(c, CONF_DATA_DIR)[0] == '\0')
		return err_set(
		    e, ERR_INVAL, "DATA_DIR is empty, want a directory");
	if (conf_str(c, CONF_SANDBOX_IMAGE)[0] == '\0')
		return err_set(e, ERR_INVAL,
		    "SANDBOX_IMAGE is empty, want the name of an image");
	if (strlen(instance) > CONF_INSTANCE_MAX ||
	    strspn(instance, conf_letters) != strlen(instance))
		return err_set(e, ERR_INVAL,
		    "INSTANCE is \"%.64s\", want at most %d letters, digits,"
		    " _ . and -",
		    instance, CONF_INSTANCE_MAX);
	return 0;
}

/* As Docker's clients read them, which mean the same by any word but an empty
 * one, except that TLS without verification is not to be had: it keeps nobody
 * from the engine. */
static int
conf_check_engine(const struct conf *c, struct err *e)
{
	const char *host = conf_str(c, CONF_DOCKER_HOST);
	const char *files = conf_str(c, CONF_DOCKER_CERT_PATH);
	bool verifies = conf_str(c, CONF_DOCKER_TLS_VERIFY)[0] != '\0';
	struct engine_host at;

	if (host[0] == '\0')
		return 0;
	if (engine_host_parse(host, &at, e) != 0)
		return ERR_INVAL;
	if (at.kind == ENGINE_HOST_UNIX)
		return 0;
	if (!verifies && files[0] != '\0')
		return err_set(e, ERR_INVAL,
		    "DOCKER_CERT_PATH is set and DOCKER_TLS_VERIFY is not: "
		    "that "
		    "would be TLS with whoever answers, set "
		    "DOCKER_TLS_VERIFY=1 "
		    "(or for no TLS at all DOCKER_CERT_PATH to nothing)");
	if (verifies && files[0] != '/')
		return err_set(e, ERR_INVAL,
		    "DOCKER_TLS_VERIFY is set and DOCKER_CERT_PATH is "
		    "\"%.100s\", want the absolute path of the directory of "
		    "ca.pem, cert.pem and key.pem",
		    files);
	return 0;
}

static int
conf_check_numbers(const struct conf *c, struct err *e)
{
	int64_t ttl = conf_int(c, CONF_DEFAULT_TTL_SECONDS);
	int64_t ttl_max = conf_int(c, CONF_MAX_TTL_SECONDS);

	if (ttl > ttl_max)
		return err_set(e, ERR_INVAL,
		    "DEFAULT_TTL_SECONDS is %lld, want at most"
		    " MAX_TTL_SECONDS, which is %lld",
		    (long long)ttl, (long long)ttl_max);
	return 0;
}

/* What regcomp takes, and who looks for the patterns does not
 * (supervisor/core/denylist.c); NULL: nothing. */
static const char *
conf_pattern_fault(const char *p)
{
	for (; *p != '\0'; p++) {
		if (*p == '{' &&
		    strtoul(p + 1, NULL, 10) > CONF_PATTERN_COUNT_MAX)
			return "a count above 255";
		if (*p != '\\')
			continue;
		p++;
		if (*p >= '1' && *p <= '9')
			return "a back reference";
		if (*p == '\0')
			break;
	}
	return NULL;
}

static int
conf_check_denylist(const struct conf *c, struct err *e)
{
	if (!conf_bool(c, CONF_DENYLIST_ENABLED))
		return 0;
	for (char *const *p = conf_list(c, CONF_DENYLIST_PATTERNS); *p != NULL;
	     p++) {
		const char *fault = conf_pattern_fault(*p);
		char why[128];
		regex_t re;
		int rc = regcomp(&re, *p, REG_EXTENDED | REG_NOSUB);

		if (rc != 0) {
			(void)regerror(rc, &re, why, sizeof(why));
			fault = why;
		} else {
			regfree(&re);
		}
		if (fault != NULL)
			return err_set(e, ERR_INVAL,
			    "DENYLIST_PATTERNS has \"%.64s\" (%s), want POSIX "
			    "extended regular expressions without back "
			    "references",
			    *p, fault);
	}
	return 0;
}

/* With one of these the root of a sandbox is near to that of the host, or in
 * the way of every other sandbox. */
static const char *const conf_grave_caps[] = {"ALL", "AUDIT_CONTROL",
    "AUDIT_READ", "BLOCK_SUSPEND", "BPF", "CHECKPOINT_RESTORE",
    "DAC_READ_SEARCH", "LINUX_IMMUTABLE", "MAC_ADMIN", "MAC_OVERRIDE",
    "NET_ADMIN", "PERFMON", "SYSLOG", "SYS_ADMIN", "SYS_BOOT", "SYS_MODULE",
    "SYS_PACCT", "SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE", "SYS_TIME",
    "SYS_TTY_CONFIG", "WAKE_ALARM"};

static int
conf_check_caps(const struct conf *c, struct err *e)
{
	if (conf_bool(c, CONF_SANDBOX_CAPS_BYPASS_CHECK))
		return 0;
	for (char *const *p = conf_list(c, CONF_SANDBOX_CAP_ADD); *p != NULL;
	     p++) {
		const char *name = *p;

		if (strncasecmp(name, "CAP_", 4) == 0)
			name += 4;
		for (size_t i = 0; i < ARRAY_LEN(conf_grave_caps); i++)
			if (strcasecmp(name, conf_grave_caps[i]) == 0)
				return err_set(e, ERR_INVAL,
				    "SANDBOX_CAP_ADD has %.64s: with it a "
				    "sandbox is none; set "
				    "SANDBOX_CAPS_BYPASS_CHECK=true if that "
				    "is meant",
				    *p);
	}
	return 0;
}

/* Their owner and mode are changed: the system's own are nobody's data. */
static int
conf_check_places(const struct conf *c, struct err *e)
{
	static const char *const not_these[] = {"", "/bin", "/boot", "/dev",
	    "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/run",
	    "/sbin", "/srv", "/sys", "/tmp", "/usr", "/usr/bin", "/usr/lib",
	    "/usr/local", "/usr/sbin", "/usr/share", "/var", "/var/lib",
	    "/var/log", "/var/tmp"};
	const struct {
		const char *key, *path;
	} places[] = {{"DATA_DIR", conf_str(c, CONF_DATA_DIR)},
	    {"ARTIFACTS_DIR", conf_str(c, CONF_ARTIFACTS_DIR)}};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		const char *path = places[i].path;
		size_t len = strlen(path);

		if (path[0] != '/')
			continue;
		while (len > 0 && path[len - 1] == '/')
			len--;
		for (size_t k = 0; k < ARRAY_LEN(not_these); k++)
			if (strlen(not_these[k]) == len &&
			    strncmp(path, not_these[k], len) == 0)
				return err_set(e, ERR_INVAL,
				    "%s is \"%.64s\", a directory of the "
				    "system: want one of its own",
				    places[i].key, path);
	}
	return 0;
}

/* Whoever is between could exchange the keys: plain HTTP is for a server on
 * this machine, which tests have. */
bool
conf_is_safe_url(const char *url)
{
	static const char *const hosts[] = {
	    "http://127.0.0.1", "http://localhost", "http://[::1]"};

	if (strpbrk(url, " \t\"\\#@") != NULL || strlen(url) > 512)
		return false;
	if (strncmp(url, "https://", 8) == 0)
		return url[8] != '\0' && url[8] != '/';
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		size_t n = strlen(hosts[i]);

		if (strncmp(url, hosts[i], n) == 0 &&
		    strchr(":/", url[n]) != NULL) /* or the end */
			return true;
	}
	return false;
}

/* They stand in a header: RFC 6749, section 3.3. */
static int
conf_check_scopes(const struct conf *c, struct err *e)
{
	const struct {
		const char *key, *scope;
	} scopes[] = {{"OAUTH_USER_SCOPE", conf_str(c, CONF_OAUTH_USER_SCOPE)},
	    {"OAUTH_ADMIN_SCOPE", conf_str(c, CONF_OAUTH_ADMIN_SCOPE)},
	    {"OAUTH_METRICS_SCOPE", conf_str(c, CONF_OAUTH_METRICS_SCOPE)}};

	for (size_t i = 0; i < ARRAY_LEN(scopes); i++)
		if (strpbrk(scopes[i].scope, " \"\\") != NULL ||
		    (i == 0 && scopes[i].scope[0] == '\0'))
			return err_set(e, ERR_INVAL,
			    "%s is \"%.64s\", want one scope", scopes[i].key,
			    scopes[i].scope);
	return 0;
}

static int
conf_check_oauth(const struct conf *c, struct err *e)
{
	const char *issuer = conf_str(c, CONF_OAUTH_ISSUER);
	const char *audience = conf_str(c, CONF_OAUTH_AUDIENCE);
	const char *resource = conf_str(c, CONF_OAUTH_RESOURCE);
	const char *keys = conf_str(c, CONF_OAUTH_JWKS_URL);

	if (issuer[0] == '\0') {
		if (audience[0] == '\0' && resource[0] == '\0' &&
		    keys[0] == '\0')
			return 0;
		return err_set(e, ERR_INVAL,
		    "OAUTH_AUDIENCE, OAUTH_RESOURCE and OAUTH_JWKS_URL mean "
		    "nothing without OAUTH_ISSUER: set it");
	}
	if (!conf_is_safe_url(issuer) || strchr(issuer, '?') != NULL ||
	    (keys[0] != '\0' && !conf_is_safe_url(keys)))
		return err_set(e, ERR_INVAL,
		    "OAUTH_ISSUER and OAUTH_JWKS_URL are https URLs (http on "
		    "loopback alone), not \"%.100s\"",
		    conf_is_safe_url(issuer) && strchr(issuer, '?') == NULL ?
			keys :
			issuer);
	if (audience[0] == '\0')
		return err_set(e, ERR_INVAL,
		    "OAUTH_ISSUER wants OAUTH_AUDIENCE: else a token for any "
		    "other server of that issuer were good here");
	if (resource[0] == '\0')
		resource = audience;
	if (!conf_is_safe_url(resource) || strchr(resource, '?') != NULL)
		return err_set(e, ERR_INVAL,
		    "OAUTH_RESOURCE (else OAUTH_AUDIENCE) is the https URL of "
		    "MCP_PATH as clients use it (http on loopback alone), not "
		    "\"%.100s\"",
		    resource);
	return conf_check_scopes(c, e);
}

static int
conf_check_courier(const struct conf *c, struct err *e)
{
	const char *endpoint = conf_str(c, CONF_OTLP_ENDPOINT);
	struct outside_allow allow;
	struct weburl url;

	if (outside_parse(conf_list(c, CONF_WEBHOOK_ALLOW), &allow, e) != 0)
		return err_wrap(e, "WEBHOOK_ALLOW");
	if (endpoint[0] == '\0')
		return 0;
	if (weburl_parse(endpoint, &url, e) != 0)
		return err_wrap(e, "OTLP_ENDPOINT");
	if (strchr(endpoint, '?') != NULL)
		return err_set(e, ERR_INVAL,
		    "OTLP_ENDPOINT has a query, and /v1/traces is to be added "
		    "to it: leave the query away");
	return 0;
}

/* "*" would be nobody and "null" is everybody's: any page can have it. */
static int
conf_check_web(const struct conf *c, struct err *e)
{
	char *const *p;

	for (p = conf_list(c, CONF_CORS_ALLOW_ORIGINS); *p != NULL; p++) {
		const char *host = strstr(*p, "://");

		if (host == NULL || host == *p || host[3] == '\0' ||
		    strpbrk(host + 3, "/*") != NULL)
			return err_set(e, ERR_INVAL,
			    "CORS_ALLOW_ORIGINS has \"%.64s\", want origins "
			    "such as https://app.example",
			    *p);
	}
	for (p = conf_list(c, CONF_ALLOWED_HOSTS); *p != NULL; p++)
		if (strpbrk(*p, "/*") != NULL)
			return err_set(e, ERR_INVAL,
			    "ALLOWED_HOSTS has \"%.64s\", want names such as "
			    "sandbox.example:8080",
			    *p);
	return 0;
}

/* Links are made of it: what stands behind a path would be lost in it. */
static int
conf_check_public_url(const struct conf *c, struct err *e)
{
	const char *url = conf_str(c, CONF_PUBLIC_URL);
	struct weburl parts;

	if (url[0] == '\0')
		return 0;
	if (weburl_parse(url, &parts, e) != 0)
		return err_wrap(e, "PUBLIC_URL");
	if (strchr(url, '?') != NULL)
		return err_set(e, ERR_INVAL,
		    "PUBLIC_URL has a query, and paths are to be added to it: "
		    "leave the query away");
	return 0;
}

int
conf_check(const struct conf *c, struct err *e)
{
	static int (*const rules[])(const struct conf *, struct err *) = {
	    conf_check_bind, conf_check_mcp_path, conf_check_words,
	    conf_check_engine, conf_check_numbers, conf_check_denylist,
	    conf_check_caps, conf_check_places, conf_check_web,
	    conf_check_proxies, conf_check_tls, conf_check_oauth,
	    conf_check_courier, conf_check_public_url};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		int rc = rules[i](c, e);

		if (rc != 0)
			return rc;
	}
	return 0;
}
