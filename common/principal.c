#include "common/principal.h"

#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"

static void
copy_name(char *to, size_t size, const char *from)
{
	size_t n = strlen(from);

	if (n >= size)
		fatal(EXIT_BUG, "principal: a name of %zu bytes", n);
	memcpy(to, from, n + 1);
}

struct principal *
principal_new(struct tenant_id tenant, const char *tenant_name,
    const char *subject, enum principal_role role)
{
	struct principal *p = xcalloc(1, sizeof(*p));

	p->refs = 1;
	p->tenant = tenant;
	p->role = role;
	copy_name(p->tenant_name, sizeof(p->tenant_name), tenant_name);
	copy_name(p->subject, sizeof(p->subject), subject);
	return p;
}

struct principal *
principal_ref(struct principal *p)
{
	p->refs++;
	return p;
}

void
principal_unref(struct principal *p)
{
	if (p != NULL && --p->refs == 0)
		free(p);
}
