#include "supervisor/mcp/provider.h"

static bool
is_in(const struct era_revision *rev, uint32_t since, uint32_t until)
{
	return rev == NULL ||
	    (rev->number >= since && (until == 0 || rev->number <= until));
}

static bool
is_below(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static const struct mcp_method *
method_of(const struct mcp_provider *p, const char *name,
    const struct era_revision *rev)
{
	for (size_t i = 0; i < p->nmethods; i++) {
		const struct mcp_method *method = &p->methods[i];

		if (strcmp(method->name, name) == 0)
			return is_in(rev, method->since, method->until) ?
			    method :
			    NULL;
	}
	return NULL;
}

const struct mcp_method *
provider_method(
    const struct mcp *m, const char *name, const struct era_revision *rev)
{
	const struct mcp_method *method = NULL;

	for (size_t i = 0; i < m->nproviders && method == NULL; i++)
		if (is_below(name, m->providers[i]->prefix))
			method = method_of(m->providers[i], name, rev);
	return method;
}

const struct mcp_notice *
provider_notice(
    const struct mcp *m, const char *name, const struct era_revision *rev)
{
	for (size_t i = 0; i < m->nproviders; i++) {
		const struct mcp_provider *p = m->providers[i];

		for (size_t k = 0; k < p->nnotices; k++)
			if (strcmp(p->notices[k].name, name) == 0 &&
			    is_in(
				rev, p->notices[k].since, p->notices[k].until))
				return &p->notices[k];
	}
	return NULL;
}
