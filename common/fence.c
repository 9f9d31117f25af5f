#include "common/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Of newer headers; the kernel is asked what it has. */
#define FENCE_FS_V1 ((UINT64_C(1) << 13) - 1)
#define FENCE_FS_REFER (UINT64_C(1) << 13)
#define FENCE_FS_TRUNCATE (UINT64_C(1) << 14)
#define FENCE_FS_IOCTL_DEV (UINT64_C(1) << 15)
#define FENCE_NET_BIND 1u
#define FENCE_NET_CONNECT 2u
#define FENCE_SCOPED 3u /* abstract sockets and signals */
/* The first one refuses renames between directories. */
#define FENCE_ABI_MIN 2
#define FENCE_ABI_TRUNCATE 3
#define FENCE_ABI_NET 4
#define FENCE_ABI_IOCTL 5
#define FENCE_ABI_SCOPED 6

/* struct landlock_ruleset_attr as it is today. */
struct fence_attr {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped;
};

/* LANDLOCK_RULE_NET_PORT and its attributes. */
#define FENCE_RULE_PORT 2
struct fence_port {
	uint64_t access;
	uint64_t port;
};

#define FENCE_READING                                                          \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* Of an own directory: no devices, nothing to execute. */
#define FENCE_NEVER                                                            \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |           \
	    LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |     \
	    LANDLOCK_ACCESS_FS_MAKE_SYM | FENCE_FS_IOCTL_DEV)
/* What a rule for a file may speak of. */
#define FENCE_OF_FILES                                                         \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |          \
	    LANDLOCK_ACCESS_FS_READ_FILE | FENCE_FS_TRUNCATE |                 \
	    FENCE_FS_IOCTL_DEV)

/* Read by libc, the sanitizers and libraries of their own accord. */
static const struct fence_gate common_gates[] = {{"/dev/null", FENCE_OWN},
    {"/dev/urandom", FENCE_READ}, {"/etc/ld.so.cache", FENCE_READ},
    {"/etc/localtime", FENCE_READ}, {"/etc/ssl", FENCE_READ},
    {"/lib", FENCE_READ}, {"/lib32", FENCE_READ}, {"/lib64", FENCE_READ},
    {"/usr/lib", FENCE_READ}, {"/usr/lib64", FENCE_READ},
    {"/usr/local/lib", FENCE_READ}, {"/usr/share/zoneinfo", FENCE_READ},
    {"/proc/self", FENCE_READ}, {"/proc/meminfo", FENCE_READ},
    {"/proc/sys/vm/overcommit_memory", FENCE_READ},
    {"/sys/devices/system/cpu", FENCE_READ}};

static uint64_t
known_rights(int abi)
{
	uint64_t fs = FENCE_FS_V1 | FENCE_FS_REFER;

	if (abi >= FENCE_ABI_TRUNCATE)
		fs |= FENCE_FS_TRUNCATE;
	if (abi >= FENCE_ABI_IOCTL)
		fs |= FENCE_FS_IOCTL_DEV;
	return fs;
}

static int
make_rules(int abi, bool may_connect, struct err *e)
{
	struct fence_attr attr = {.fs = known_rights(abi)};
	size_t size = sizeof(attr.fs);
	int fd;

	if (abi >= FENCE_ABI_NET) {
		attr.net = may_connect ? FENCE_NET_BIND :
					 FENCE_NET_BIND | FENCE_NET_CONNECT;
		size = offsetof(struct fence_attr, scoped);
	}
	if (abi >= FENCE_ABI_SCOPED) {
		attr.scoped = FENCE_SCOPED;
		size = sizeof(attr);
	}
	fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (fd == -1)
		return err_errno(e, "Landlock: no rules");
	return fd;
}

static int
add_port(int rules, int abi, const char *digits, struct err *e)
{
	const struct fence_port to = {
	    FENCE_NET_CONNECT, strtoul(digits, NULL, 10)};

	if (abi < FENCE_ABI_NET ||
	    syscall(SYS_landlock_add_rule, rules, FENCE_RULE_PORT, &to, 0) == 0)
		return 0;
	return err_errno(e, "Landlock: port %s", digits);
}

static int
add_path(int rules, const struct fence_gate *g, uint64_t known, struct err *e)
{
	AUTO(auto_close) int fd = open(g->path, O_PATH | O_CLOEXEC);
	struct landlock_path_beneath_attr below = {.parent_fd = fd};
	struct stat st;

	if (fd == -1 && g->use == FENCE_READ)
		return 0;
	if (fd == -1 || fstat(fd, &st) == -1)
		return err_errno(e, "Landlock: %s", g->path);
	below.allowed_access =
	    g->use == FENCE_OWN ? known & ~FENCE_NEVER : FENCE_READING;
	if (!S_ISDIR(st.st_mode))
		below.allowed_access &= FENCE_OF_FILES;
	if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH,
		&below, 0) == -1)
		return err_errno(e, "Landlock: %s", g->path);
	return 0;
}

static int
add_gates(
    int rules, const struct fence_gate *gates, size_t n, int abi, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		if (gates[i].use == FENCE_TCP_PORT)
			rc = add_port(rules, abi, gates[i].path, e);
		else if (gates[i].use != FENCE_TCP)
			rc = add_path(rules, &gates[i], known_rights(abi), e);
	return rc;
}

int
fence_version(void)
{
	int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0,
	    LANDLOCK_CREATE_RULESET_VERSION);

	return abi < FENCE_ABI_MIN ? FENCE_NONE : abi;
}

int
fence_raise(const struct fence_gate *gates, size_t n, struct err *e)
{
	const int abi = fence_version();
	AUTO(auto_close) int rules = -1;
	bool may_connect = false;
	int rc;

	for (size_t i = 0; i < n; i++)
		may_connect |= gates[i].use == FENCE_TCP;
	if (abi == FENCE_NONE)
		return 0;
	rules = make_rules(abi, may_connect, e);
	if (rules < 0)
		return rules;
	rc = add_gates(rules, common_gates, ARRAY_LEN(common_gates), abi, e);
	if (rc == 0)
		rc = add_gates(rules, gates, n, abi, e);
	if (rc != 0)
		return rc;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    syscall(SYS_landlock_restrict_self, rules, 0) == -1)
		return err_errno(e, "Landlock: not raised");
	return 0;
}
