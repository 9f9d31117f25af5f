#include "common/runtimes.h"

#include <stdio.h>

bool
runtimes_have(const char *list, const char *name)
{
	char word[RUNTIMES_NAME_MAX + 3];

	if (strlen(name) > RUNTIMES_NAME_MAX || strchr(name, ' ') != NULL)
		return false;
	(void)snprintf(word, sizeof(word), " %s ", name);
	return name[0] == '\0' || strstr(list, word) != NULL;
}

static bool
is_word(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n > RUNTIMES_NAME_MAX)
		return false;
	for (; *s != '\0'; s++)
		if (*s <= ' ' || *s > '~')
			return false;
	return true;
}

void
runtimes_add(char list[RUNTIMES_LIST_MAX], const char *name)
{
	size_t n = strlen(list);

	if (!is_word(name) || n + strlen(name) + 3 > RUNTIMES_LIST_MAX)
		return;
	(void)snprintf(
	    list + n, RUNTIMES_LIST_MAX - n, "%s%s ", n == 0 ? " " : "", name);
}

int
runtimes_check(const char *list, const char *name, struct err *e)
{
	const char *first = list + strspn(list, " ");

	if (runtimes_have(list, name) || *first == '\0')
		return 0;
	return err_set(e, ERR_POLICY,
	    "the engine has no runtime %.64s; it has: %.512s(the operator "
	    "installs it there, or changes SANDBOX_RUNTIME or the tenant's "
	    "rule.runtime)",
	    name, first);
}

enum runtimes_kind
runtimes_kind(const char *name, const char *program)
{
	static const struct {
		const char *part;
		enum runtimes_kind kind;
	} parts[] = {{"runsc", RUNTIMES_GVISOR}, {"gvisor", RUNTIMES_GVISOR},
	    {"kata", RUNTIMES_MACHINE}, {"runc", RUNTIMES_NAMESPACES},
	    {"crun", RUNTIMES_NAMESPACES}, {"youki", RUNTIMES_NAMESPACES},
	    {"io.containerd.runtime.v1.linux", RUNTIMES_NAMESPACES}};
	const char *slash = strrchr(program, '/');

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (strstr(name, parts[i].part) != NULL)
			return parts[i].kind;
	return slash == NULL ? RUNTIMES_UNKNOWN : runtimes_kind(slash + 1, "");
}

#define GVISOR_ISOLATES                                                        \
	"by gVisor, a kernel of its own in user space; system calls do not "   \
	"reach the host's"

bool
runtimes_brings_kernel(const char *name)
{
	enum runtimes_kind kind = runtimes_kind(name, "");

	return kind == RUNTIMES_GVISOR || kind == RUNTIMES_MACHINE;
}

const char *
runtimes_isolates(enum runtimes_kind kind)
{
	static const char *const words[] = {
	    [RUNTIMES_UNKNOWN] = "by what is not known here",
	    [RUNTIMES_NAMESPACES] =
		"by namespaces and control groups; the host's kernel is shared",
	    [RUNTIMES_GVISOR] = GVISOR_ISOLATES,
	    [RUNTIMES_MACHINE] =
		"by a virtual machine with a kernel of its own"};

	return words[kind];
}
