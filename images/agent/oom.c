#include "images/agent/oom.h"

#include <fcntl.h>

static int oom_fd = -1;

void
oom_init(void)
{
	static const char *const paths[] = {"/sys/fs/cgroup/memory.events",
	    "/sys/fs/cgroup/memory/memory.oom_control"};

	for (size_t i = 0; i < ARRAY_LEN(paths) && oom_fd == -1; i++)
		oom_fd = open(paths[i], O_RDONLY | O_CLOEXEC);
}

uint64_t
oom_parse(const char *text)
{
	static const char key[] = "oom_kill ";
	const char *p = text;

	while (strncmp(p, key, sizeof(key) - 1) != 0) {
		p = strchr(p, '\n');
		if (p == NULL)
			return 0;
		p++;
	}
	return strtoull(p + sizeof(key) - 1, NULL, 10);
}

uint64_t
oom_count(void)
{
	char text[512];
	ssize_t n;

	if (oom_fd == -1)
		return 0;
	n = pread(oom_fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return oom_parse(text);
}
