#include "worker/doctor/reach.h"

#define WHAT "carrier"
#define OTHER_KERNEL                                                           \
	"the engine's kernel (%s) is not this host's (%s), so it is another "  \
	"machine's"

/* One of those that sandboxes may have; NULL: none does. */
static const char *
own_kernel(const struct reach_subject *s)
{
	if (runtimes_brings_kernel(s->runtime))
		return s->runtime;
	for (char *const *r = s->runtimes; *r != NULL; r++)
		if (runtimes_brings_kernel(*r))
			return *r;
	return NULL;
}

static bool
is_other_kernel(const struct reach_subject *s)
{
	return s->engine->kernel[0] != '\0' && s->kernel[0] != '\0' &&
	    strcmp(s->engine->kernel, s->kernel) != 0;
}

/* ---- CARRIER=unix */

static void
look_at_unix(const struct reach_subject *s, struct findings *out)
{
	static const char advice[] = "leave CARRIER at auto";
	const char *runtime = own_kernel(s);

	if (runtime != NULL)
		findings_add(out, WHAT, FINDING_FAILS, advice,
		    "unix, set by CARRIER: no socket of this host is in "
		    "sandboxes of %s",
		    runtime);
	else if (s->engine == NULL)
		findings_add(out, WHAT, FINDING_UNKNOWN, "start the engine",
		    "unix, set by CARRIER: no engine says whether it is on "
		    "this host");
	else if (is_other_kernel(s))
		findings_add(out, WHAT, FINDING_FAILS, advice,
		    "unix, set by CARRIER: " OTHER_KERNEL
		    " and sees no directory of this one",
		    s->engine->kernel, s->kernel);
	else if (s->engine->is_remote)
		findings_add(out, WHAT, FINDING_UNKNOWN, advice,
		    "unix, set by CARRIER: the engine at %.100s may see no "
		    "directory of this host",
		    s->engine->where);
	else
		findings_add(
		    out, WHAT, FINDING_HOLDS, "", "unix, set by CARRIER");
}

/* ---- CARRIER=auto */

static void
look_at_auto(const struct reach_subject *s, struct findings *out)
{
	if (runtimes_brings_kernel(s->runtime))
		findings_add(out, WHAT, FINDING_HOLDS, "",
		    "bridge: no socket of this host is in sandboxes of %s "
		    "(SANDBOX_RUNTIME)",
		    s->runtime);
	else if (s->engine == NULL)
		findings_add(out, WHAT, FINDING_UNKNOWN, "start the engine",
		    "auto: there is no engine to try it with");
	else if (is_other_kernel(s))
		findings_add(out, WHAT, FINDING_HOLDS, "",
		    "bridge, as each worker will find out at its "
		    "start: " OTHER_KERNEL,
		    s->engine->kernel, s->kernel);
	else
		findings_add(out, WHAT, FINDING_HOLDS, "",
		    "auto: unix where the engine at %.100s sees DATA_DIR of "
		    "this host, else bridge.  That takes a container: each "
		    "worker makes one at its start, or with the first sandbox "
		    "where there is no image yet, and sandboxctl status says "
		    "the answer",
		    s->engine->where);
}

void
reach_look(const struct reach_subject *s, struct findings *out)
{
	if (strcmp(s->setting, "unix") == 0)
		look_at_unix(s, out);
	else if (strcmp(s->setting, "bridge") == 0)
		findings_add(
		    out, WHAT, FINDING_HOLDS, "", "bridge, set by CARRIER");
	else
		look_at_auto(s, out);
}
