#include "worker/link/delivery.h"

#include "common/frame.h"
#include "common/xmalloc.h"
#include "worker/link/linkdir.h"

struct mount_delivery {
	struct agent_delivery d;
	struct linkdirs *dirs;
};

static int
mount_prepare(struct agent_delivery *d, const struct uuid *box,
    struct backend_wishes *out, struct err *e)
{
	static const char *const command[] = {
	    FRAME_DIR_IN_SANDBOX "/agent", NULL};

	out->command = command;
	return linkdirs_mount(((struct mount_delivery *)d)->dirs, box, out, e);
}

static const struct agent_delivery_ops mount_ops = {
    .name = "mount", .needs = BACKEND_HAS_MOUNTS, .prepare = mount_prepare};

int
delivery_mount_new(struct linkdirs *dirs, const char *agent,
    struct agent_delivery **out, struct err *e)
{
	struct mount_delivery *m;
	int rc = linkdirs_take_agent(dirs, agent, e);

	if (rc != 0)
		return rc;
	m = xcalloc(1, sizeof(*m));
	m->d.ops = &mount_ops;
	m->dirs = dirs;
	*out = &m->d;
	return 0;
}
