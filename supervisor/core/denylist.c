#include "supervisor/core/denylist.h"

#include <tre/tre.h>

#include "common/xmalloc.h"

struct denylist {
	regex_t any; /* all patterns as one: most commands match none */
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
		tre_regfree(&d->item[i].re);
		free(d->item[i].text);
	}
	tre_regfree(&d->any);
	free(d);
}

/* TRE reads a text once, and remembers nothing of it, unless the pattern has
 * back references. */
static int
compile(const char *pattern, regex_t *re, struct err *e)
{
	char why[128] = "has back references";
	int rc = tre_regcomp(re, pattern, REG_EXTENDED | REG_NOSUB);

	if (rc == 0 && !tre_have_backrefs(re))
		return 0;
	if (rc == 0)
		tre_regfree(re);
	else
		(void)tre_regerror(rc, re, why, sizeof(why));
	memset(re, 0, sizeof(*re));
	return err_set(e, ERR_INVAL,
	    "DENYLIST_PATTERNS has \"%.64s\" (%s), want POSIX extended regular "
	    "expressions without back references",
	    pattern, why);
}

/* "(P1)|(P2)", of patterns that compile by themselves. */
static int
compile_any(char *const *patterns, regex_t *re, struct err *e)
{
	AUTO(auto_free) char *whole = NULL;
	struct buf b = {0};

	for (size_t i = 0; patterns[i] != NULL; i++)
		(void)buf_printf(&b, i == 0 ? "(%s)" : "|(%s)", patterns[i]);
	whole = xstrndup((const char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	return compile(whole, re, e);
}

int
denylist_new(const struct conf *conf, struct denylist **out, struct err *e)
{
	char *const *patterns = conf_list(conf, CONF_DENYLIST_PATTERNS);
	struct denylist *d;
	size_t n = 0;

	*out = NULL;
	if (!conf_bool(conf, CONF_DENYLIST_ENABLED))
		return 0;
	while (patterns[n] != NULL)
		n++;
	d = xcalloc(1, sizeof(*d) + n * sizeof(d->item[0]));
	for (size_t i = 0; i < n; i++) {
		if (compile(patterns[i], &d->item[i].re, e) != 0) {
			denylist_free(d);
			return e->code;
		}
		d->item[i].text = xstrdup(patterns[i]);
		d->n++;
	}
	if (n > 0 && compile_any(patterns, &d->any, e) != 0) {
		denylist_free(d);
		return e->code;
	}
	*out = d;
	return 0;
}

static const char *
find_match(const struct denylist *d, const struct runspec_command *c)
{
	const char *found = NULL;
	struct buf b = {0};
	const char *text;

	for (uint32_t i = 0; i < c->argc; i++)
		(void)buf_printf(&b, i == 0 ? "%s" : " %s", c->argv[i]);
	text = (const char *)buf_data(&b);
	if (tre_regnexec(&d->any, text, buf_len(&b), 0, NULL, 0) == 0)
		for (size_t i = 0; i < d->n && found == NULL; i++)
			if (tre_regnexec(&d->item[i].re, text, buf_len(&b), 0,
				NULL, 0) == 0)
				found = d->item[i].text;
	buf_clear(&b);
	return found;
}

static size_t
words_bytes(const struct runspec *s)
{
	size_t n = 0;

	for (uint32_t i = 0; i < s->ncommands; i++)
		for (uint32_t j = 0; j < s->commands[i].argc; j++)
			n += strlen(s->commands[i].argv[j]) + 1;
	return n;
}

int
denylist_mark(const struct denylist *d, struct runspec *s, struct err *e)
{
	bool looks = d != NULL && d->n > 0;
	size_t bytes = looks ? words_bytes(s) : 0;

	if (bytes > DENYLIST_BYTES_MAX)
		return err_set(e, ERR_INVAL,
		    "the commands have %zu bytes of words, and where "
		    "DENYLIST_ENABLED is set a call may have %d: make several "
		    "calls of it, or put what is long into a file",
		    bytes, DENYLIST_BYTES_MAX);
	for (uint32_t i = 0; i < s->ncommands; i++) {
		struct runspec_command *c = &s->commands[i];
		const char *hit = looks ? find_match(d, c) : NULL;

		if (hit != NULL)
			c->flags |= RUNSPEC_DENIED;
		c->deny = xstrdup(hit == NULL ? "" : hit);
	}
	return 0;
}
