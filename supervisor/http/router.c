/*
 * router.c - patterns and the paths that fit them
 *
 * Routes are few and tried in order.  The head of a pattern, up to its first
 * place, is compared as bytes; places behind it are cut at slashes, decoded
 * into one piece of memory and held against their kind.
 */
#include "supervisor/http/router.h"

#include <sys/queue.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/percent.h"
#include "common/xmalloc.h"

struct entry {
	TAILQ_ENTRY(entry) link;
	const void *route;
	size_t head_len; /* up to the first place */
	size_t nplaces;
	char pattern[];
};
TAILQ_HEAD(entry_list, entry);

struct http_router {
	const struct http_param_kind *kinds;
	size_t nkinds;
	struct entry_list entries; /* in the order they were added */
};

static bool
is_plain_path(const char *path)
{
	const char *p = path;
	size_t n;

	for (;;) {
		n = strcspn(p, "/");
		if (n == 0 || (n == 1 && p[0] == '.') ||
		    (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		if (p[n] == '\0')
			return true;
		p += n + 1;
	}
}

static bool
is_place(char c)
{
	return c == ':' || c == '*';
}

static const struct http_param_kind *
find_kind(const struct http_router *r, const char *name, size_t n)
{
	for (size_t i = 0; i < r->nkinds; i++)
		if (strlen(r->kinds[i].name) == n &&
		    memcmp(r->kinds[i].name, name, n) == 0)
			return &r->kinds[i];
	return NULL;
}

static size_t
count_places(const struct http_router *r, const char *pattern)
{
	size_t places = 0, n;

	for (const char *p = pattern; *p != '\0'; p++) {
		if (!is_place(*p))
			continue;
		n = strcspn(p + 1, "/");
		if (++places > HTTP_PARAMS_MAX ||
		    (*p == ':' && find_kind(r, p + 1, n) == NULL) ||
		    (*p == '*' && p[1 + n] != '\0'))
			fatal(EXIT_BUG, "route %s: bad place %s", pattern, p);
	}
	return places;
}

struct http_router *
http_router_new(const struct http_param_kind *kinds, size_t nkinds)
{
	struct http_router *r = xcalloc(1, sizeof(*r));

	r->kinds = kinds;
	r->nkinds = nkinds;
	TAILQ_INIT(&r->entries);
	return r;
}

void
http_router_free(struct http_router *r)
{
	struct entry *e;

	if (r == NULL)
		return;
	while ((e = TAILQ_FIRST(&r->entries)) != NULL) {
		TAILQ_REMOVE(&r->entries, e, link);
		free(e);
	}
	free(r);
}

void
http_router_add(struct http_router *r, const char *prefix, const char *pattern,
    const void *route)
{
	size_t before = strlen(prefix), n = strlen(pattern);
	struct entry *e = xcalloc(1, sizeof(*e) + before + n + 1);

	memcpy(e->pattern, prefix, before);
	memcpy(e->pattern + before, pattern, n + 1);
	e->route = route;
	e->nplaces = count_places(r, pattern);
	/* The prefix is taken as it is. */
	e->head_len = before + strcspn(pattern, ":*");
	TAILQ_INSERT_TAIL(&r->entries, e, link);
}

struct match {
	const struct http_router *router;
	struct http_params *out;
	size_t used; /* of out->mem */
};

static bool
value_fits(const struct http_router *r, const char *place, const char *value)
{
	const struct http_param_kind *kind;

	if (*place == '*')
		return is_plain_path(value);
	kind = find_kind(r, place + 1, strcspn(place + 1, "/"));
	return kind != NULL && kind->fits(value);
}

/* n bytes of text for the place of a pattern. */
static bool
take_param(struct match *m, const char *place, const char *text, size_t n)
{
	struct http_params *out = m->out;
	char *value = out->mem + m->used;

	if (n > 3 * HTTP_PARAM_MAX) /* each byte may be escaped */
		return false;
	memcpy(value, text, n);
	value[n] = '\0';
	if (percent_decode(value, PERCENT_PLUS_IS_PLUS) != 0 ||
	    strlen(value) > HTTP_PARAM_MAX)
		return false;
	if (!value_fits(m->router, place, value))
		return false;
	m->used += n + 1;
	out->param[out->n].name = place + 1;
	out->param[out->n].name_len = strcspn(place + 1, "/");
	out->param[out->n++].value = value;
	return true;
}

static bool
fits(struct match *m, const struct entry *e, const char *path)
{
	const char *p = e->pattern + e->head_len, *s = path + e->head_len;
	size_t n;

	while (*p != '\0') {
		if (is_place(*p)) {
			n = *p == '*' ? strlen(s) : strcspn(s, "/");
			if (!take_param(m, p, s, n))
				return false;
			s += n;
			p += 1 + strcspn(p + 1, "/");
		} else if (*p++ != *s++) {
			return false;
		}
	}
	return *s == '\0';
}

enum http_fit
http_router_match(const struct http_router *r, const char *path,
    struct http_params *out, const void **route)
{
	enum http_fit best = HTTP_FIT_NONE;
	const struct entry *e;

	TAILQ_FOREACH (e, &r->entries, link) {
		struct match m = {.router = r, .out = out};

		if (strncmp(path, e->pattern, e->head_len) != 0 ||
		    (e->nplaces == 0 && path[e->head_len] != '\0'))
			continue;
		if (e->nplaces > 0) /* no value is longer than it was */
			out->mem = xmalloc(strlen(path) + HTTP_PARAMS_MAX + 1);
		if (fits(&m, e, path)) {
			*route = e->route;
			return HTTP_FIT_WHOLE;
		}
		http_params_clear(out);
		if (best == HTTP_FIT_NONE)
			*route = e->route;
		best = HTTP_FIT_HEAD;
	}
	return best;
}

const char *
http_params_find(const struct http_params *p, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < p->n; i++)
		if (p->param[i].name_len == n &&
		    memcmp(p->param[i].name, name, n) == 0)
			return p->param[i].value;
	return NULL;
}

void
http_params_clear(struct http_params *p)
{
	free(p->mem);
	*p = (struct http_params){0};
}
