/*
 * Made once from the configuration, with every word checked, and then asked
 * about each box.  The fingerprint is of what cannot be changed in a box that
 * runs (network, privileges, capabilities, system calls, paths): one with
 * another fingerprint is not taken over.
 */
#include "worker/policy.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include <openssl/sha.h>

#include "common/buf.h"
#include "common/exit.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/profile.h"

#define LIST_MAX 64
#define MIB (UINT64_C(1) << 20)
#define TEXT_MAX 8192

/* capabilities(7), Linux 6.1, each at the place of its number; and ALL */
static const char *const cap_names[] = {"CHOWN", "DAC_OVERRIDE",
    "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID",
    "SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST",
    "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO",
    "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT",
    "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE",
    "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN",
    "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
    "CHECKPOINT_RESTORE", "ALL"};

static const char *const cap_add_default[] = {
    "SETUID", "SETGID", "CHOWN", "FOWNER", "DAC_OVERRIDE"};
/* What the agent itself works with, whatever its commands may have.  No
 * command ever has the last two: it ends what commands left, whoever they run
 * as, and takes capabilities out of their bounding set. */
static const char *const cap_add_agent[] = {
    "SETUID", "SETGID", "CHOWN", "FOWNER", "DAC_OVERRIDE", "KILL", "SETPCAP"};
static const char *const cap_agent_alone[] = {"KILL", "SETPCAP"};
/* What an engine gives a container that is not told to drop ALL. */
static const char *const cap_engine[] = {"CHOWN", "DAC_OVERRIDE", "FSETID",
    "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
    "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"};

/*
 * What /proc and /sys tell of the machine instead of the sandbox: its memory,
 * its keys, its kernel, its clock's users, its hardware.  An engine's own list
 * is shorter and grows with its version; this one is part of the fingerprint.
 */
static const char *const masked_paths[] = {"/proc/acpi", "/proc/asound",
    "/proc/bus", "/proc/config.gz", "/proc/driver", "/proc/dynamic_debug",
    "/proc/interrupts", "/proc/iomem", "/proc/ioports", "/proc/kallsyms",
    "/proc/kcore", "/proc/key-users", "/proc/keys", "/proc/kmsg",
    "/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags",
    "/proc/latency_stats", "/proc/mdstat", "/proc/modules",
    "/proc/pagetypeinfo", "/proc/sched_debug", "/proc/schedstat", "/proc/scsi",
    "/proc/slabinfo", "/proc/softirqs", "/proc/swaps", "/proc/sysrq-trigger",
    "/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo",
    "/sys/devices/virtual/dmi", "/sys/devices/virtual/powercap",
    "/sys/firmware", "/sys/fs/bpf", "/sys/fs/pstore", "/sys/hypervisor",
    "/sys/kernel/debug", "/sys/kernel/security", "/sys/kernel/slab",
    "/sys/kernel/tracing", "/sys/module", "/sys/power", NULL};

/* /etc/hostname, and in a network two more, are files of the host's disk that
 * the engine puts there: root of a sandbox could make them as large as that.
 */
static const char *const read_only_paths[] = {"/proc/fs", "/proc/irq",
    "/proc/sys", "/sys/fs/cgroup", "/dev", "/etc/hostname", NULL};
static const char *const read_only_paths_networked[] = {"/proc/fs", "/proc/irq",
    "/proc/sys", "/sys/fs/cgroup", "/dev", "/etc/hostname", "/etc/hosts",
    "/etc/resolv.conf", NULL};

/* ---- words */

static bool
is_word(const char *s, size_t min, size_t max, const char *punctuation)
{
	size_t n = strlen(s);

	if (n < min || n > max || !isalnum((unsigned char)s[0]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) &&
		    strchr(punctuation, s[i]) == NULL)
			return false;
	return true;
}

bool
policy_is_name(const char *s)
{
	return is_word(s, 2, POLICY_NAME_MAX, "_.-");
}

int
policy_check_instance(const char *instance, struct err *e)
{
	if (policy_is_name(instance))
		return 0;
	return err_set(e, ERR_INVAL,
	    "INSTANCE: \"%.64s\" is no name of 2 to %d letters, digits, '.', "
	    "'_' and '-'",
	    instance, POLICY_NAME_MAX);
}

bool
policy_is_id(const char *s)
{
	size_t n = strlen(s);

	return n >= 12 && n <= 64 && strspn(s, "0123456789abcdef") == n;
}

/* registry:port/name:tag or @sha256:digest; nothing that a URL or a header
 * could take for something else. */
static bool
is_image(const char *s)
{
	return is_word(s, 1, POLICY_IMAGE_MAX, "._-/:@") &&
	    strstr(s, "..") == NULL && strstr(s, "//") == NULL;
}

/* ---- lists */

static void
list_free(char **list)
{
	for (size_t i = 0; list != NULL && list[i] != NULL; i++)
		free(list[i]);
	free(list);
}

static bool
has_word(char *const *list, const char *word)
{
	for (size_t i = 0; list[i] != NULL; i++)
		if (strcmp(list[i], word) == 0)
			return true;
	return false;
}

static void
list_add(char **list, const char *item)
{
	size_t n = 0;

	while (list[n] != NULL)
		n++;
	if (n < LIST_MAX && !has_word(list, item))
		list[n] = xstrdup(item);
}

static void
list_remove(char **list, const char *item)
{
	size_t kept = 0;

	for (size_t n = 0; list[n] != NULL; n++)
		if (strcmp(list[n], item) == 0)
			free(list[n]);
		else
			list[kept++] = list[n];
	list[kept] = NULL;
}

static char **
list_new(void)
{
	return xcalloc(LIST_MAX + 1, sizeof(char *));
}

static bool
is_one_of(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static int
add_cap(char **list, const char *given, const char *key, const struct conf *c,
    struct err *e)
{
	char name[POLICY_WORD_MAX];
	size_t n = 0;

	if (strncasecmp(given, "CAP_", 4) == 0)
		given += 4;
	for (; given[n] != '\0' && n + 1 < sizeof(name); n++)
		name[n] = (char)toupper((unsigned char)given[n]);
	name[n] = '\0';
	if (is_one_of(cap_names, ARRAY_LEN(cap_names), name) ||
	    conf_bool(c, CONF_SANDBOX_CAPS_BYPASS_CHECK)) {
		list_add(list, name);
		return 0;
	}
	if (conf_bool(c, CONF_SANDBOX_CAPS_STRICT))
		return err_set(e, ERR_INVAL,
		    "%s: no capability is named \"%.64s\"", key, given);
	log_warn("%s: no capability is named \"%.64s\": left out", key, given);
	return 0;
}

static int
add_caps(char **list, enum conf_key key, const char *name, const struct conf *c,
    struct err *e)
{
	char *const *given = conf_list(c, key);

	for (size_t i = 0; given != NULL && given[i] != NULL; i++) {
		if (i >= LIST_MAX / 2)
			return err_set(
			    e, ERR_INVAL, "%s: too many capabilities", name);
		if (given[i][0] != '\0' &&
		    add_cap(list, given[i], name, c, e) != 0)
			return ERR_INVAL;
	}
	return 0;
}

/* Whether a container of this configuration would have it, were there no
 * agent: as the engine reads the two lists. */
static bool
is_for_commands(const struct policy *p, const char *cap)
{
	if (is_one_of(cap_agent_alone, ARRAY_LEN(cap_agent_alone), cap))
		return false;
	if (has_word(p->cap_add, "ALL"))
		return !has_word(p->cap_drop, cap);
	if (has_word(p->cap_add, cap))
		return true;
	if (has_word(p->cap_drop, cap))
		return false;
	return !has_word(p->cap_drop, "ALL") &&
	    is_one_of(cap_engine, ARRAY_LEN(cap_engine), cap);
}

static uint64_t
cap_bit(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(cap_names); i++)
		if (strcmp(cap_names[i], name) == 0)
			return UINT64_C(1) << i;
	return 0;
}

/* The agent's are added to what was configured, and withheld from commands
 * where they were not. */
static void
add_caps_of_agent(struct policy *p)
{
	for (size_t i = 0; i < ARRAY_LEN(cap_add_agent); i++)
		if (!is_for_commands(p, cap_add_agent[i]))
			p->withheld |= cap_bit(cap_add_agent[i]);
	for (size_t i = 0; i < ARRAY_LEN(cap_add_agent); i++) {
		list_add(p->cap_add, cap_add_agent[i]);
		list_remove(p->cap_drop, cap_add_agent[i]);
	}
}

static int
take_caps(struct policy *p, const struct conf *c, struct err *e)
{
	p->cap_drop = list_new();
	p->cap_add = list_new();
	if (add_caps(p->cap_drop, CONF_SANDBOX_CAP_DROP, "SANDBOX_CAP_DROP", c,
		e) != 0 ||
	    add_caps(
		p->cap_add, CONF_SANDBOX_CAP_ADD, "SANDBOX_CAP_ADD", c, e) != 0)
		return ERR_INVAL;
	if (p->cap_add[0] == NULL)
		for (size_t i = 0; i < ARRAY_LEN(cap_add_default); i++)
			list_add(p->cap_add, cap_add_default[i]);
	add_caps_of_agent(p);
	return 0;
}

static int
take_images(struct policy *p, const struct conf *c, struct err *e)
{
	char *const *given = conf_list(c, CONF_SANDBOX_IMAGES_ALLOWED);

	p->images = list_new();
	p->image = xstrdup(conf_str(c, CONF_SANDBOX_IMAGE));
	if (!is_image(p->image))
		return err_set(e, ERR_INVAL,
		    "SANDBOX_IMAGE: \"%.100s\" is no image name", p->image);
	for (size_t i = 0; given != NULL && given[i] != NULL; i++) {
		if (i >= LIST_MAX)
			return err_set(e, ERR_INVAL,
			    "SANDBOX_IMAGES_ALLOWED: more than %d", LIST_MAX);
		if (!is_image(given[i]))
			return err_set(e, ERR_INVAL,
			    "SANDBOX_IMAGES_ALLOWED: \"%.100s\" is no image "
			    "name",
			    given[i]);
		list_add(p->images, given[i]);
	}
	return 0;
}

/* It need not be here: the engine looks for it on its own host. */
static int
take_writes(struct policy *p, const struct conf *c, struct err *e)
{
	const char *device = conf_str(c, CONF_SANDBOX_WRITE_DEVICE);

	p->write_bytes_s = (uint64_t)conf_int(c, CONF_SANDBOX_WRITE_MB_S) * MIB;
	p->write_device = xstrdup(device);
	if (device[0] == '\0' && p->write_bytes_s != 0)
		return err_set(e, ERR_INVAL,
		    "SANDBOX_WRITE_MB_S wants SANDBOX_WRITE_DEVICE, the disk "
		    "of the engine's data: mcp-sandboxd doctor names it");
	if (device[0] != '\0' &&
	    (strncmp(device, "/dev/", 5) != 0 || strstr(device, "..") != NULL ||
		!is_word(device + 5, 1, POLICY_WORD_MAX, "/_.-:")))
		return err_set(e, ERR_INVAL,
		    "SANDBOX_WRITE_DEVICE: \"%.64s\" is no device below /dev",
		    device);
	return 0;
}

static int
take_runtimes(struct policy *p, const struct conf *c, struct err *e)
{
	char *const *given = conf_list(c, CONF_SANDBOX_RUNTIMES_ALLOWED);

	p->runtimes = list_new();
	p->runtime = xstrdup(conf_str(c, CONF_SANDBOX_RUNTIME));
	if (p->runtime[0] != '\0' &&
	    !is_word(p->runtime, 1, POLICY_WORD_MAX, "_.-"))
		return err_set(e, ERR_INVAL,
		    "SANDBOX_RUNTIME: \"%.64s\" is no runtime name",
		    p->runtime);
	for (size_t i = 0; given != NULL && given[i] != NULL; i++) {
		if (i >= LIST_MAX ||
		    !is_word(given[i], 1, POLICY_WORD_MAX, "_.-"))
			return err_set(e, ERR_INVAL,
			    "SANDBOX_RUNTIMES_ALLOWED: \"%.64s\" is no "
			    "runtime name, or there are more than %d",
			    given[i], LIST_MAX);
		list_add(p->runtimes, given[i]);
	}
	return 0;
}

static int
take_users(struct policy *p, const struct conf *c, struct err *e)
{
	const char *word = conf_str(c, CONF_SANDBOX_USERNS);

	p->own_users = strcmp(word, "auto") == 0;
	if (p->own_users || word[0] == '\0')
		return 0;
	return err_set(e, ERR_INVAL,
	    "SANDBOX_USERNS: \"%.64s\": want auto, or nothing for users as "
	    "the engine has them",
	    word);
}

/* ---- the fingerprint */

static int
compare_words(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
print_sorted(struct buf *b, char *const *list)
{
	char *sorted[LIST_MAX + 1] = {NULL};
	size_t n = 0;

	for (; list[n] != NULL; n++)
		sorted[n] = list[n];
	qsort(sorted, n, sizeof(*sorted), compare_words);
	for (size_t i = 0; i < n; i++)
		(void)buf_printf(b, "%s,", sorted[i]);
	(void)buf_printf(b, "|");
}

static void
print_all(struct buf *b, const char *const *list)
{
	for (; *list != NULL; list++)
		(void)buf_printf(b, "%s,", *list);
	(void)buf_printf(b, "|");
}

static void
take_fingerprint(struct policy *p)
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	struct buf b;

	buf_init(&b, TEXT_MAX);
	(void)buf_printf(&b, "%s|%d|",
	    p->network == POLICY_NETWORK_NONE ? "none" : "bridge",
	    p->no_new_privileges ? 1 : 0);
	print_sorted(&b, p->cap_add);
	print_sorted(&b, p->cap_drop);
	(void)buf_printf(&b, "%llx|%s", (unsigned long long)p->withheld,
	    p->own_users ? "own users|" : "");
	print_all(&b, p->masked);
	print_all(&b, p->read_only);
	(void)SHA256((const uint8_t *)p->seccomp, strlen(p->seccomp), digest);
	if (buf_append(&b, digest, sizeof(digest)) != 0)
		fatal(EXIT_BUG, "policy: its text is too long");
	(void)SHA256(buf_data(&b), buf_len(&b), digest);
	buf_clear(&b);
	hex_encode(digest, POLICY_FINGERPRINT_LEN / 2, p->fingerprint);
}

static enum policy_root
take_root(const struct conf *c)
{
	const char *word = conf_str(c, CONF_SANDBOX_AS_ROOT);

	if (strcmp(word, "remapped") == 0)
		return POLICY_ROOT_REMAPPED;
	return strcmp(word, "deny") == 0 ? POLICY_ROOT_DENY : POLICY_ROOT_ALLOW;
}

/* ---- public */

int
policy_init(struct policy *p, const struct conf *c, struct err *e)
{
	memset(p, 0, sizeof(*p));
	p->network =
	    strcmp(conf_str(c, CONF_SANDBOX_NETWORK_MODE), "bridge") == 0 ?
	    POLICY_NETWORK_BRIDGE :
	    POLICY_NETWORK_NONE;
	p->as_root = take_root(c);
	p->no_new_privileges = conf_bool(c, CONF_SANDBOX_NO_NEW_PRIVILEGES);
	p->memory_bytes = (uint64_t)conf_int(c, CONF_DEFAULT_MEMORY_MB) * MIB;
	p->nano_cpus =
	    (uint64_t)conf_int(c, CONF_DEFAULT_CPU_CORES) * 1000000000u;
	p->pids = (uint32_t)conf_int(c, CONF_DEFAULT_PIDS);
	p->tmp_bytes = (uint64_t)conf_int(c, CONF_SANDBOX_TMP_MB) * MIB;
	p->disk_bytes = (uint64_t)conf_int(c, CONF_SANDBOX_DISK_MB) * MIB;
	p->disk_inodes = (uint64_t)conf_int(c, CONF_SANDBOX_DISK_INODES);
	p->masked = masked_paths;
	p->read_only = p->network == POLICY_NETWORK_NONE ?
	    read_only_paths :
	    read_only_paths_networked;
	if (take_images(p, c, e) != 0 || take_runtimes(p, c, e) != 0 ||
	    take_writes(p, c, e) != 0 || take_caps(p, c, e) != 0 ||
	    take_users(p, c, e) != 0 ||
	    profile_load(c, &p->seccomp, &p->seccomp_path, e) != 0) {
		policy_clear(p);
		return ERR_INVAL;
	}
	take_fingerprint(p);
	return 0;
}

void
policy_clear(struct policy *p)
{
	list_free(p->images);
	list_free(p->runtimes);
	list_free(p->cap_drop);
	list_free(p->cap_add);
	free(p->image);
	free(p->runtime);
	free(p->write_device);
	free(p->seccomp);
	free(p->seccomp_path);
	memset(p, 0, sizeof(*p));
}

static int
check_limits(const struct policy *p, struct policy_template *t, struct err *e)
{
	if (t->memory_bytes == 0)
		t->memory_bytes = p->memory_bytes;
	if (t->nano_cpus == 0)
		t->nano_cpus = p->nano_cpus;
	if (t->pids == 0)
		t->pids = p->pids;
	if (t->memory_bytes > p->memory_bytes)
		return err_set(e, ERR_POLICY,
		    "%llu bytes of memory: a sandbox has at most %llu "
		    "(DEFAULT_MEMORY_MB)",
		    (unsigned long long)t->memory_bytes,
		    (unsigned long long)p->memory_bytes);
	if (t->nano_cpus > p->nano_cpus)
		return err_set(e, ERR_POLICY,
		    "%llu nano-CPUs: a sandbox has at most %llu "
		    "(DEFAULT_CPU_CORES)",
		    (unsigned long long)t->nano_cpus,
		    (unsigned long long)p->nano_cpus);
	if (t->pids > p->pids)
		return err_set(e, ERR_POLICY,
		    "%u processes: a sandbox has at most %u (DEFAULT_PIDS)",
		    t->pids, p->pids);
	return 0;
}

bool
policy_is_tenant(const char *s)
{
	return is_word(s, 1, POLICY_WORD_MAX, "_.-");
}

int
policy_check_claim(const struct policy_claim *c, struct err *e)
{
	/* An identifier may begin with '_' or '-'. */
	size_t n = strspn(c->identifier, "_-");
	size_t len = strlen(c->identifier);

	if (len > 0 && len <= POLICY_WORD_MAX &&
	    (n == len || is_word(c->identifier + n, 1, POLICY_WORD_MAX, "_-")))
		return 0;
	return err_set(e, ERR_POLICY, "no identifier");
}

int
policy_check_runtime(const struct policy *p, const char *runtime, struct err *e)
{
	if (runtime[0] == '\0' || strcmp(runtime, p->runtime) == 0 ||
	    has_word(p->runtimes, runtime))
		return 0;
	return err_set(e, ERR_POLICY,
	    "runtime %.60s is not allowed (the operator's "
	    "SANDBOX_RUNTIMES_ALLOWED)",
	    runtime);
}

/* Names what would work, as far as a text has room. */
static int
refuse_image(const struct policy *p, const char *image, struct err *e)
{
	char names[256];
	size_t used;

	(void)snprintf(names, sizeof(names), "%.150s", p->image);
	for (size_t i = 0; p->images[i] != NULL; i++) {
		used = strlen(names);
		(void)snprintf(
		    names + used, sizeof(names) - used, ", %s", p->images[i]);
	}
	return err_set(e, ERR_POLICY,
	    "image %.100s is not allowed; allowed: %s (the operator's "
	    "SANDBOX_IMAGES_ALLOWED adds others)",
	    image, names);
}

int
policy_check(const struct policy *p, struct policy_template *t, struct err *e)
{
	if (t->image[0] == '\0')
		t->image = p->image;
	if (!is_image(t->image) ||
	    (strcmp(t->image, p->image) != 0 && !has_word(p->images, t->image)))
		return refuse_image(p, t->image, e);
	return check_limits(p, t, e);
}
