#include "supervisor/mcp/provider.h"

static bool
is_offered(const struct mcp *m, const struct mcp_provider *p)
{
	return p->is_offered == NULL || p->is_offered(m);
}

json_t *
provider_capabilities(const struct mcp *m, const struct era_revision *rev)
{
	json_t *all = json_object();

	for (size_t i = 0; i < m->nproviders; i++) {
		const struct mcp_provider *p = m->providers[i];

		if (p->announce != NULL && is_offered(m, p))
			p->announce(m, rev, all);
	}
	return all;
}

json_t *
provider_server_info(const struct mcp *m, const struct era_revision *rev)
{
	return json_pack("{s:s, s:s*, s:s}", "name", m->name, "title",
	    era_has(rev, ERA_TITLE) ? m->title : NULL, "version", m->version);
}

json_t *
provider_list_capability(const struct mcp *m)
{
	json_t *out = json_object();

	if (m->list_changes)
		json_object_set_new(out, "listChanged", json_true());
	return out;
}

static bool
is_in(const struct era_revision *rev, uint32_t since, uint32_t until)
{
	return rev == NULL ||
	    (rev->number >= since && (until == 0 || rev->number <= until));
}

const struct mcp_method *
provider_method(
    const struct mcp *m, const char *name, const struct era_revision *rev)
{
	for (size_t i = 0; i < m->nproviders; i++) {
		const struct mcp_provider *p = m->providers[i];

		if (!is_offered(m, p))
			continue;
		for (size_t k = 0; k < p->nmethods; k++)
			if (strcmp(p->methods[k].name, name) == 0 &&
			    is_in(
				rev, p->methods[k].since, p->methods[k].until))
				return &p->methods[k];
	}
	return NULL;
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
