#include "supervisor/master/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define NOTIFY_MESSAGE_MAX 512

struct notify {
	int fd; /* -1: nobody listens */
	struct sockaddr_un to;
	socklen_t to_len;
	uint32_t watchdog_ms;
};

/* A path, or '@' and a name in the abstract namespace (sd_notify(3)). */
static int
set_address(struct notify *n, const char *text)
{
	size_t len = strlen(text);

	if ((text[0] != '/' && text[0] != '@') || len < 2 ||
	    len >= sizeof(n->to.sun_path))
		return -1;
	n->to.sun_family = AF_UNIX;
	memcpy(n->to.sun_path, text, len);
	n->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	if (text[0] == '@')
		n->to.sun_path[0] = '\0';
	else
		n->to_len++; /* a path ends with its NUL */
	return 0;
}

static uint64_t
env_number(const char *name)
{
	const char *text = getenv(name);
	char *end = NULL;
	unsigned long long v;

	if (text == NULL || text[0] < '0' || text[0] > '9')
		return 0;
	errno = 0;
	v = strtoull(text, &end, 10);
	return errno != 0 || *end != '\0' ? 0 : v;
}

/* Twice as often as asked for, as sd_watchdog_enabled(3) recommends. */
static uint32_t
read_watchdog(void)
{
	uint64_t usec = env_number("WATCHDOG_USEC");
	uint64_t pid = env_number("WATCHDOG_PID");
	uint64_t ms = usec / 2000;

	if (usec == 0 || (pid != 0 && pid != (uint64_t)getpid()))
		return 0;
	if (ms == 0)
		return 1;
	return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

struct notify *
notify_open(void)
{
	struct notify *n = xcalloc(1, sizeof(*n));
	const char *text = getenv("NOTIFY_SOCKET");

	n->fd = -1;
	if (text == NULL || text[0] == '\0')
		return n;
	if (set_address(n, text) != 0) {
		log_warn("NOTIFY_SOCKET: \"%s\" is not an address", text);
		return n;
	}
	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (n->fd == -1)
		log_warn("NOTIFY_SOCKET: %s", strerror(errno));
	else
		n->watchdog_ms = read_watchdog();
	return n;
}

void
notify_close(struct notify *n)
{
	if (n == NULL)
		return;
	if (n->fd >= 0)
		(void)close(n->fd);
	free(n);
}

uint32_t
notify_watchdog_ms(const struct notify *n)
{
	return n->watchdog_ms;
}

void
notify_say(struct notify *n, const char *text)
{
	if (n->fd == -1)
		return;
	if (sendto(n->fd, text, strlen(text), MSG_NOSIGNAL,
		(const struct sockaddr *)&n->to, n->to_len) == -1)
		log_debug("service manager: %s", strerror(errno));
}

void
notify_reloading(struct notify *n)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
	    (unsigned long long)clock_mono_us());
	notify_say(n, text);
}

/* One line: a newline in the text would begin another assignment. */
void
notify_status(struct notify *n, const char *fmt, ...)
{
	char text[NOTIFY_MESSAGE_MAX] = "STATUS=";
	const size_t used = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text + used, sizeof(text) - used, fmt, ap);
	va_end(ap);
	for (char *p = text; *p != '\0'; p++)
		if (*p == '\n')
			*p = ' ';
	notify_say(n, text);
}
