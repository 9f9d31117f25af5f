#include "images/agent/oom.h"

#include <fcntl.h>

static int oom_fd = -1;
static uint64_t oom_seen, oom_told;

void
oom_init(void)
{
	static const char *const paths[] = {"/sys/fs/cgroup/memory.events",
	    "/sys/fs/cgroup/memory/memory.oom_control"};

	for (size_t i = 0; i < ARRAY_LEN(paths) && oom_fd == -1; i++)
		oom_fd = open(paths[i], O_RDONLY | O_CLOEXEC);
	oom_told = oom_count(); /* a cgroup may be older than we are */
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
	oom_seen = oom_parse(text);
	return oom_seen;
}

uint32_t
oom_since(uint64_t before)
{
	uint64_t now = oom_count();

	if (now <= before)
		return 0;
	return now - before < UINT32_MAX ? (uint32_t)(now - before) :
					   UINT32_MAX;
}

uint64_t
oom_take_news(void)
{
	uint64_t fresh = oom_seen > oom_told ? oom_seen - oom_told : 0;

	oom_told = oom_seen;
	return fresh;
}
