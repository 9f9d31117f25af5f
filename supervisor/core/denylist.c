#include "supervisor/core/denylist.h"

#include <regex.h>

#include "common/xmalloc.h"

struct denylist {
	size_t n;
	struct {
		regex_t re;
		char *text;
	} item[];
};

void
denylist_free(struct denylist *d)
{
	if (d == NULL)
		return;
	for (size_t i = 0; i < d->n; i++) {
		regfree(&d->item[i].re);
		free(d->item[i].text);
	}
	free(d);
}

int
denylist_new(const struct conf *conf, struct denylist **out, struct err *e)
{
	char *const *patterns = conf_list(conf, CONF_DENYLIST_PATTERNS);
	struct denylist *d;
	size_t n = 0;
	int rc;

	*out = NULL;
	if (!conf_bool(conf, CONF_DENYLIST_ENABLED))
		return 0;
	while (patterns[n] != NULL)
		n++;
	d = xcalloc(1, sizeof(*d) + n * sizeof(d->item[0]));
	for (size_t i = 0; i < n; i++) {
		rc = regcomp(
		    &d->item[i].re, patterns[i], REG_EXTENDED | REG_NOSUB);
		if (rc != 0) {
			denylist_free(d);
			return err_set(e, ERR_INVAL,
			    "DENYLIST_PATTERNS: \"%.100s\" is no POSIX "
			    "extended regular expression",
			    patterns[i]);
		}
		d->item[i].text = xstrdup(patterns[i]);
		d->n++;
	}
	*out = d;
	return 0;
}

static const char *
find_match(const struct denylist *d, const struct runspec_command *c)
{
	AUTO(auto_free) char *text = NULL;
	struct buf b = {0};

	if (d == NULL)
		return NULL;
	for (uint32_t i = 0; i < c->argc; i++)
		(void)buf_printf(&b, i == 0 ? "%s" : " %s", c->argv[i]);
	text = xstrndup((const char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	for (size_t i = 0; i < d->n; i++)
		if (regexec(&d->item[i].re, text, 0, NULL, 0) == 0)
			return d->item[i].text;
	return NULL;
}

void
denylist_mark(const struct denylist *d, struct runspec_command *c)
{
	const char *hit = find_match(d, c);

	if (hit != NULL)
		c->flags |= RUNSPEC_DENIED;
	c->deny = xstrdup(hit == NULL ? "" : hit);
}
