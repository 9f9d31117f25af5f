#include "supervisor/http/forwarded.h"

int
forwarded_parse_proxies(
    char *const *list, struct forwarded_proxies *out, struct err *e)
{
	out->n = 0;
	for (; list != NULL && *list != NULL; list++) {
		if (out->n == ARRAY_LEN(out->blocks))
			return err_set(e, ERR_LIMIT,
			    "TRUSTED_PROXIES: more than %d entries",
			    FORWARDED_PROXIES_MAX);
		if (netblock_parse(*list, &out->blocks[out->n], e) != 0)
			return err_wrap(e, "TRUSTED_PROXIES");
		out->n++;
	}
	return 0;
}

bool
forwarded_is_proxy(const struct forwarded_proxies *p, const struct netaddr *a)
{
	for (size_t i = 0; i < p->n; i++)
		if (netblock_has(&p->blocks[i], a))
			return true;
	return false;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The element before end, without the blanks around it. */
static const char *
element_before(const char *line, const char *end, size_t *n)
{
	const char *p = end;

	while (p > line && p[-1] != ',')
		p--;
	while (p < end && is_blank(*p))
		p++;
	while (end > p && is_blank(end[-1]))
		end--;
	*n = (size_t)(end - p);
	return p;
}

const char *
forwarded_last(const char *line, size_t *n)
{
	const char *p = element_before(line, line + strlen(line), n);

	return *n == 0 ? NULL : p;
}

static bool
is_port(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] < '0' || p[i] > '9')
			return false;
	return n >= 1 && n <= 5;
}

/* "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]",
 * "[2001:db8::1]:80" */
static int
parse_element(const char *p, size_t n, struct netaddr *out)
{
	const char *end = p + n, *close, *colon;

	if (n > 0 && p[0] == '[') {
		close = memchr(p, ']', n);
		if (close == NULL || memchr(p, ':', n) == NULL ||
		    (close + 1 != end &&
			(close[1] != ':' ||
			    !is_port(close + 2, (size_t)(end - close - 2)))))
			return ERR_INVAL;
		return netaddr_parse(p + 1, (size_t)(close - p - 1), out) ==
			    0 &&
			memchr(p + 1, ':', (size_t)(close - p - 1)) != NULL ?
		    0 :
		    ERR_INVAL;
	}
	colon = memchr(p, ':', n);
	if (colon != NULL &&
	    memchr(colon + 1, ':', (size_t)(end - colon - 1)) == NULL) {
		if (!is_port(colon + 1, (size_t)(end - colon - 1)))
			return ERR_INVAL;
		n = (size_t)(colon - p);
	}
	return netaddr_parse(p, n, out);
}

void
forwarded_step(struct forwarded_walk *w, const char *line)
{
	const char *end = line + strlen(line), *p;
	struct netaddr a;
	size_t n;

	while (!w->ended) {
		if (!forwarded_is_proxy(w->proxies, w->client) ||
		    w->hops++ == FORWARDED_HOPS_MAX) {
			w->ended = true;
			return;
		}
		p = element_before(line, end, &n);
		if (parse_element(p, n, &a) != 0) {
			w->ended = true;
			return;
		}
		*w->client = a;
		while (p > line && p[-1] != ',')
			p--;
		if (p == line)
			return; /* the line before this one goes on */
		end = p - 1;
	}
}
