#include "supervisor/tools/home.h"

#include "common/conf.h"
#include "supervisor/core/core.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/tools/args.h"

int
home_find_or_open(struct core *core, struct principal *who,
    const char *identifier, uint32_t ttl_s, struct sandbox **out, bool *is_new,
    struct err *e)
{
	struct sandboxes *all = core_sandboxes(core);

	*out = sandbox_find_named(all, who->tenant, identifier);
	*is_new = *out == NULL;
	if (core_admit_run(core, who, *out, e) != 0)
		return e->code;
	if (*out != NULL) {
		sandbox_touch(*out, ttl_s);
		return 0;
	}
	return sandbox_open(all,
	    &(struct sandbox_wish){.who = who,
		.identifier = identifier,
		.image = conf_str(core_conf(core), CONF_SANDBOX_IMAGE),
		.origin = "run",
		.ttl_s = ttl_s != 0 ? ttl_s : args_ttl(core_conf(core), NULL)},
	    out, e);
}
