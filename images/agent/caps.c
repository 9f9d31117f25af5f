#include "images/agent/caps.h"

#include <linux/capability.h>
#include <sys/prctl.h>

#include "images/agent/raw.h"

#define CAPS_WORDS _LINUX_CAPABILITY_U32S_3

static struct __user_cap_data_struct root_caps[CAPS_WORDS];

static void
drop_cap(struct __user_cap_data_struct *d, unsigned int cap)
{
	uint32_t mask = ~(uint32_t)CAP_TO_MASK(cap);

	d[CAP_TO_INDEX(cap)].permitted &= mask;
	d[CAP_TO_INDEX(cap)].effective &= mask;
	d[CAP_TO_INDEX(cap)].inheritable &= mask;
}

void
caps_init(uint64_t withheld)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct own[CAPS_WORDS] = {{0, 0, 0}};

	if (syscall(SYS_capget, &h, own) == -1)
		return;
	for (size_t i = 0; i < CAPS_WORDS; i++) {
		root_caps[i].permitted = own[i].permitted;
		root_caps[i].effective = own[i].permitted;
		root_caps[i].inheritable = own[i].permitted;
	}
	withheld |= UINT64_C(1) << CAP_KILL | UINT64_C(1) << CAP_SETPCAP;
	for (unsigned int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if ((withheld >> cap & 1) != 0)
			drop_cap(root_caps, cap);

	/* Inheritable can be raised only to what is still in the bounding
	 * set: this comes first. */
	for (size_t i = 0; i < CAPS_WORDS; i++)
		own[i].inheritable = root_caps[i].inheritable;
	(void)syscall(SYS_capset, &h, own);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (unsigned long cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

int
caps_apply(enum runspec_user user)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[CAPS_WORDS] = {{0, 0, 0}};
	const struct __user_cap_data_struct *d =
	    user == RUNSPEC_USER_ROOT ? root_caps : none;

	return (int)RAW(SYS_capset, &h, d, 0, 0);
}
