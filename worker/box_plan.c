#include "worker/box_plan.h"

#include "common/xmalloc.h"

struct box_plan *
box_plan_new(
    const struct policy_template *template, const struct policy_claim *claim)
{
	struct box_plan *p = xcalloc(1, sizeof(*p));

	p->template = *template;
	p->claim = *claim;
	p->template.image = p->texts[0] = xstrdup(template->image);
	p->template.runtime = p->texts[1] = xstrdup(template->runtime);
	p->claim.identifier = p->texts[2] = xstrdup(claim->identifier);
	return p;
}

void
box_plan_free(struct box_plan *p)
{
	if (p == NULL)
		return;
	for (size_t i = 0; i < ARRAY_LEN(p->texts); i++)
		free(p->texts[i]);
	free(p);
}
