/*
 * Made once from the configuration, with every word checked, and then asked
 * about each box.  The fingerprint is of what cannot be changed in a box that
 * runs (network, privileges, capabilities): one with another fingerprint is
 * not taken over.
 */
#include "worker/policy.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include <openssl/sha.h>

#include "common/buf.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define LIST_MAX 64
#define MIB (UINT64_C(1) << 20)
#define TEXT_MAX 8192

/* capabilities(7), Linux 6.1 */
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
/* The agent's own: it ends what its commands left, whoever they run as, and
 * takes capabilities out of their bounding set.  No command has these two. */
static const char *const cap_add_agent[] = {"KILL", "SETPCAP"};

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

static void
list_add(char **list, const char *item)
{
	size_t n = 0;

	for (; list[n] != NULL; n++)
		if (strcmp(list[n], item) == 0)
			return;
	if (n < LIST_MAX)
		list[n] = xstrdup(item);
}

static char **
list_new(void)
{
	return xcalloc(LIST_MAX + 1, sizeof(char *));
}

static bool
is_cap(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(cap_names); i++)
		if (strcmp(cap_names[i], name) == 0)
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
	if (is_cap(name) || conf_bool(c, CONF_SANDBOX_CAPS_BYPASS_CHECK)) {
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
	for (size_t i = 0; i < ARRAY_LEN(cap_add_agent); i++)
		list_add(p->cap_add, cap_add_agent[i]);
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
	(void)SHA256(buf_data(&b), buf_len(&b), digest);
	buf_clear(&b);
	hex_encode(digest, POLICY_FINGERPRINT_LEN / 2, p->fingerprint);
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
	p->no_new_privileges = conf_bool(c, CONF_SANDBOX_NO_NEW_PRIVILEGES);
	p->runtime = xstrdup(conf_str(c, CONF_SANDBOX_RUNTIME));
	p->memory_bytes = (uint64_t)conf_int(c, CONF_DEFAULT_MEMORY_MB) * MIB;
	p->nano_cpus =
	    (uint64_t)conf_int(c, CONF_DEFAULT_CPU_CORES) * 1000000000u;
	p->pids = (uint32_t)conf_int(c, CONF_DEFAULT_PIDS);
	p->tmp_bytes = (uint64_t)conf_int(c, CONF_SANDBOX_TMP_MB) * MIB;
	if (take_images(p, c, e) != 0 || take_caps(p, c, e) != 0) {
		policy_clear(p);
		return ERR_INVAL;
	}
	if (p->runtime[0] != '\0' &&
	    !is_word(p->runtime, 1, POLICY_WORD_MAX, "_.-")) {
		(void)err_set(e, ERR_INVAL,
		    "SANDBOX_RUNTIME: \"%.64s\" is no runtime name",
		    p->runtime);
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
	list_free(p->cap_drop);
	list_free(p->cap_add);
	free(p->image);
	free(p->runtime);
	memset(p, 0, sizeof(*p));
}

static bool
is_allowed_image(const struct policy *p, const char *image)
{
	if (strcmp(image, p->image) == 0)
		return true;
	for (size_t i = 0; p->images[i] != NULL; i++)
		if (strcmp(image, p->images[i]) == 0)
			return true;
	return false;
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

int
policy_check_claim(const struct policy_claim *c, struct err *e)
{
	if (!is_word(c->tenant, 1, POLICY_WORD_MAX, "_.-"))
		return err_set(e, ERR_POLICY, "no tenant name");
	/* An identifier may begin with '_' or '-'. */
	for (const char *s = c->identifier; *s != '\0'; s++)
		if (!isalnum((unsigned char)*s) && *s != '_' && *s != '-')
			return err_set(e, ERR_POLICY, "no identifier");
	if (c->identifier[0] == '\0' || strlen(c->identifier) > POLICY_WORD_MAX)
		return err_set(e, ERR_POLICY, "no identifier");
	return 0;
}

int
policy_check(const struct policy *p, struct policy_template *t, struct err *e)
{
	if (t->image[0] == '\0')
		t->image = p->image;
	if (!is_image(t->image) || !is_allowed_image(p, t->image))
		return err_set(e, ERR_POLICY,
		    "image %.100s is not allowed: SANDBOX_IMAGE and "
		    "SANDBOX_IMAGES_ALLOWED name those that are",
		    t->image);
	return check_limits(p, t, e);
}
