#include "common/weburl.h"

#include "common/netaddr.h"

#define PORT_HTTP 80
#define PORT_HTTPS 443
#define PORT_FREE 1024 /* from here on anybody may listen */
#define PORT_MAX 65535

static int
check_text(const char *text, struct err *e)
{
	size_t n = strlen(text);

	if (n == 0 || n > WEBURL_MAX)
		return err_set(e, ERR_INVAL,
		    "a URL has 1 to %d bytes, this one %zu", WEBURL_MAX, n);
	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f ||
		    strchr("\"<>\\^`{|}", text[i]) != NULL)
			return err_set(e, ERR_INVAL,
			    "byte %zu of the URL has no place in one: write it "
			    "as %%XX",
			    i + 1);
	if (strchr(text, '#') != NULL)
		return err_set(e, ERR_INVAL,
		    "the URL has a fragment (#), which is never sent: leave it "
		    "away");
	return 0;
}

static const char *
skip_scheme(const char *text, struct weburl *out)
{
	static const char *const schemes[] = {"http://", "https://"};

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (strncmp(text, schemes[i], strlen(schemes[i])) == 0) {
			out->is_https = i == 1;
			return text + strlen(schemes[i]);
		}
	return NULL;
}

/* n bytes, in brackets or not. */
static int
take_host(const char *p, size_t n, struct weburl *out)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	struct netaddr address;

	if (n > 2 && p[0] == '[' && p[n - 1] == ']') {
		if (netaddr_parse(p + 1, n - 2, &address) != 0 ||
		    memchr(p, ':', n) == NULL)
			return ERR_INVAL;
		p++;
		n -= 2;
	} else if (n == 0 || n > WEBURL_HOST_MAX || strspn(p, good) < n) {
		return ERR_INVAL;
	}
	for (size_t i = 0; i < n; i++)
		out->host[i] =
		    (char)(p[i] >= 'A' && p[i] <= 'Z' ? p[i] + 0x20 : p[i]);
	out->host[n] = '\0';
	return 0;
}

/* "", or ":" and digits. */
static int
take_port(const char *p, size_t n, struct weburl *out)
{
	out->port = out->is_https ? PORT_HTTPS : PORT_HTTP;
	if (n == 0)
		return 0;
	if (n < 2 || n > 6 || p[0] != ':')
		return ERR_INVAL;
	out->port = 0;
	for (size_t i = 1; i < n; i++) {
		if (p[i] < '0' || p[i] > '9')
			return ERR_INVAL;
		out->port = out->port * 10 + (uint32_t)(p[i] - '0');
	}
	if (out->port > PORT_MAX ||
	    (out->port < PORT_FREE && out->port != PORT_HTTP &&
		out->port != PORT_HTTPS))
		return ERR_INVAL;
	return 0;
}

int
weburl_parse(const char *text, struct weburl *out, struct err *e)
{
	const char *at;
	size_t n, host;

	*out = (struct weburl){0};
	if (check_text(text, e) != 0)
		return ERR_INVAL;
	at = skip_scheme(text, out);
	if (at == NULL)
		return err_set(
		    e, ERR_INVAL, "the URL begins with https:// (or http://)");
	n = strcspn(at, "/?");
	if (memchr(at, '@', n) != NULL)
		return err_set(e, ERR_INVAL,
		    "the URL names a user: leave it away, what is sent is "
		    "signed");
	host = at[0] == '[' ? strcspn(at, "]") + 1 : strcspn(at, ":/?");
	if (host > n || take_host(at, host, out) != 0)
		return err_set(e, ERR_INVAL,
		    "the URL's host is no name and no address: letters, "
		    "digits, \"-\" and \".\", or an IPv6 address in brackets");
	if (take_port(at + host, n - host, out) != 0)
		return err_set(e, ERR_INVAL,
		    "the URL's port is none of 80, 443 and 1024 to 65535");
	return 0;
}
