#include "supervisor/ctl/ctl_query.h"

#include <stdio.h>

#include "common/buf.h"
#include "common/xmalloc.h"

#define PATH_BYTES_MAX 16384
#define NAME_BYTES_MAX 64
#define KEY_CHARACTERS "abcdefghijklmnopqrstuvwxyz_0123456789"
#define PLAIN                                                                  \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"       \
	"-._~"

void
ctl_query_add(char **path, const char *key, const char *value)
{
	struct buf b;

	buf_init(&b, PATH_BYTES_MAX);
	(void)buf_printf(
	    &b, "%s%c%s=", *path, strchr(*path, '?') == NULL ? '?' : '&', key);
	for (; *value != '\0'; value++)
		if (strchr(PLAIN, *value) != NULL)
			(void)buf_printf(&b, "%c", *value);
		else
			(void)buf_printf(
			    &b, "%%%02X", (unsigned int)(unsigned char)*value);
	free(*path);
	*path = xstrndup((const char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
}

static int
add_word(char **path, const char *word, struct err *e)
{
	const char *equals = strchr(word, '=');
	size_t n = equals == NULL ? 0 : (size_t)(equals - word);
	AUTO(auto_free) char *key = NULL;

	if (n == 0 || strspn(word, KEY_CHARACTERS) != n)
		return err_set(e, ERR_INVAL, "%.100s: want KEY=VALUE", word);
	if (strlen(word) > 2000)
		return err_set(
		    e, ERR_INVAL, "%.40s...: that is too long", word);
	key = xstrndup(word, n);
	ctl_query_add(path, key, equals + 1);
	return 0;
}

/* NULL: the token's own. */
static const char *
tenant_of(const struct ctl_call *c)
{
	return c->o->tenant == NULL && c->o->url == NULL ? "default" :
							   c->o->tenant;
}

bool
ctl_query_is_name(const char *word)
{
	size_t n = strlen(word);

	return n > 0 && n <= NAME_BYTES_MAX && strspn(word, PLAIN) == n &&
	    strchr(word, '~') == NULL && strspn(word, ".") != n;
}

int
ctl_query_of_tenant(const struct ctl_call *c, const char *kind,
    const char *name, const char *more, const char *wrong, char **out,
    struct err *e)
{
	const char *tenant = tenant_of(c);
	const char *const words[] = {name, tenant == NULL ? "" : tenant};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if ((words[i][0] != '\0' || (i == 1 && tenant != NULL)) &&
		    !ctl_query_is_name(words[i]))
			return err_set(
			    e, ERR_INVAL, "%.100s: %s", words[i], wrong);
	*out = xasprintf("/api/v1/%s%s%s%s%s%s%s",
	    tenant == NULL ? "" : "tenants/", tenant == NULL ? "" : tenant,
	    tenant == NULL ? "" : "/", kind, name[0] == '\0' ? "" : "/", name,
	    more);
	return 0;
}

int
ctl_query_path(const struct ctl_call *c, const char *path, int first,
    char **out, struct err *e)
{
	const char *tenant = tenant_of(c);
	AUTO(auto_free) char *made = xstrdup(path);

	if (tenant != NULL)
		ctl_query_add(&made, "tenant", tenant);
	for (int i = first; i < c->n; i++)
		if (add_word(&made, c->words[i], e) != 0)
			return e->code;
	*out = made;
	made = NULL;
	return 0;
}
