#include "common/privdrop.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define PASSWD_BYTES_MAX 65536

int
privdrop_lookup(const char *name, struct privdrop_user *u, struct err *e)
{
	AUTO(auto_free) char *text = NULL;
	struct passwd pw, *found = NULL;
	int rc;

	if (name[0] == '\0' || strlen(name) > PRIVDROP_NAME_MAX)
		return err_set(e, ERR_INVAL,
		    "user name of %zu bytes, want 1..%d", strlen(name),
		    PRIVDROP_NAME_MAX);
	text = malloc(PASSWD_BYTES_MAX);
	if (text == NULL)
		return err_set(e, ERR_SYS, "user %s: out of memory", name);
	rc = getpwnam_r(name, &pw, text, PASSWD_BYTES_MAX, &found);
	if (found == NULL && rc != 0 && rc != ENOENT && rc != ESRCH)
		return err_set(e, ERR_SYS, "user %s: %s", name, strerror(rc));
	if (found == NULL)
		return err_set(e, ERR_NOTFOUND, "there is no user %s", name);
	if (pw.pw_uid == 0 || pw.pw_gid == 0)
		return err_set(e, ERR_INVAL,
		    "user %s has uid %u and gid %u, want neither to be 0", name,
		    (unsigned int)pw.pw_uid, (unsigned int)pw.pw_gid);

	memset(u, 0, sizeof(*u));
	memcpy(u->name, name, strlen(name) + 1);
	u->uid = pw.pw_uid;
	u->gid = pw.pw_gid;
	return 0;
}

int
privdrop_add_group(struct privdrop_user *u, gid_t gid, struct err *e)
{
	if (gid == u->gid)
		return 0;
	for (size_t i = 0; i < u->ngroups; i++)
		if (u->groups[i] == gid)
			return 0;
	if (u->ngroups == PRIVDROP_GROUPS_MAX)
		return err_set(e, ERR_LIMIT,
		    "user %s: more than %d supplementary groups", u->name,
		    PRIVDROP_GROUPS_MAX);
	u->groups[u->ngroups++] = gid;
	return 0;
}

static int
get_capabilities(struct __user_cap_data_struct *data, struct err *e)
{
	struct __user_cap_header_struct head = {
	    .version = _LINUX_CAPABILITY_VERSION_3};

	memset(data, 0, sizeof(*data) * _LINUX_CAPABILITY_U32S_3);
	if (syscall(SYS_capget, &head, data) == -1)
		return err_errno(e, "capget");
	return 0;
}

/* Nothing else permitted or effective may be left: with "keep capabilities"
 * set, a change of the uid alone would leave all of them. */
static int
check_capabilities(uint64_t allowed, struct err *e)
{
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (get_capabilities(data, e) != 0)
		return ERR_SYS;
	for (size_t i = 0; i < ARRAY_LEN(data); i++) {
		uint32_t more = ~(uint32_t)(allowed >> (32 * i));

		if (((data[i].permitted | data[i].effective) & more) != 0)
			return err_set(e, ERR_SYS,
			    "capabilities are left that should be gone");
	}
	return 0;
}

int
privdrop_may_change(struct err *e)
{
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	const uint64_t needed =
	    PRIVDROP_CAP(CAP_SETUID) | PRIVDROP_CAP(CAP_SETGID);

	if (get_capabilities(data, e) != 0)
		return ERR_SYS;
	if ((data[0].effective & needed) == needed)
		return 0;
	return err_set(e, ERR_POLICY,
	    "root without the capabilities SETUID and SETGID cannot run its "
	    "parts as users of their own: start as an ordinary user (of a "
	    "container: --user), or give it these, and SETPCAP, KILL, CHOWN, "
	    "FOWNER and DAC_OVERRIDE (--cap-add)");
}

static int
check_ids(const struct privdrop_user *u, struct err *e)
{
	uid_t ruid, euid, suid;
	gid_t rgid, egid, sgid;

	if (getresuid(&ruid, &euid, &suid) == -1 ||
	    getresgid(&rgid, &egid, &sgid) == -1)
		return err_errno(e, "getresuid");
	if (ruid != u->uid || euid != u->uid || suid != u->uid ||
	    rgid != u->gid || egid != u->gid || sgid != u->gid)
		return err_set(
		    e, ERR_SYS, "user %s: the ids did not change", u->name);
	if (getgroups(0, NULL) != (int)u->ngroups)
		return err_set(
		    e, ERR_SYS, "user %s: the groups did not change", u->name);
	return 0;
}

int
privdrop_apply(const struct privdrop_user *u, struct err *e)
{
	int rc;

	if (setgroups(u->ngroups, u->groups) == -1)
		return err_errno(e, "user %s: setgroups", u->name);
	if (setresgid(u->gid, u->gid, u->gid) == -1)
		return err_errno(e, "user %s: setresgid", u->name);
	if (setresuid(u->uid, u->uid, u->uid) == -1)
		return err_errno(e, "user %s: setresuid", u->name);
	rc = check_ids(u, e);
	if (rc == 0)
		rc = check_capabilities(0, e);
	if (rc != 0)
		return rc;
	if (setuid(0) == 0 || seteuid(0) == 0 || setgid(0) == 0 ||
	    setegid(0) == 0)
		return err_set(e, ERR_SYS,
		    "user %s: root's id could be taken back", u->name);
	return 0;
}

int
privdrop_bound(uint64_t capabilities, struct err *e)
{
	for (unsigned int c = 0; c < 64; c++) {
		if ((capabilities & PRIVDROP_CAP(c)) != 0 ||
		    prctl(PR_CAPBSET_DROP, c, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL || errno == EPERM)
			return 0; /* was the last one, or not for us */
		return err_errno(e, "capability %u", c);
	}
	return 0;
}

int
privdrop_keep(uint64_t capabilities, struct err *e)
{
	struct __user_cap_header_struct head = {
	    .version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (get_capabilities(data, e) != 0)
		return ERR_SYS;
	for (size_t i = 0; i < ARRAY_LEN(data); i++) {
		data[i].permitted &= (uint32_t)(capabilities >> (32 * i));
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &head, data) == -1)
		return err_errno(e, "capset");
	return check_capabilities(capabilities, e);
}
