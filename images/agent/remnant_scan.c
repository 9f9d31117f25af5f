#include "images/agent/remnant_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>

#include "common/clock.h"
#include "common/utf8.h"
#include "images/agent/tree.h"

#define STAT_BYTES 1024
#define CMDLINE_BYTES 512
#define STAT_START 20 /* fields between the name and the start's */
#define KILL_ROUND_US 20000
#define KILL_WAIT_MS 100
#define VICTIMS_MAX 64 /* whose death is waited for */

/* A file of the process into text, NUL-terminated; its length, or -1. */
static ssize_t
read_file(pid_t pid, const char *name, char *text, size_t size)
{
	AUTO(auto_close) int fd = -1;
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	n = read(fd, text, size - 1);
	text[n > 0 ? n : 0] = '\0';
	return n;
}

bool
remnant_parse_stat(const char *text, uint64_t *start)
{
	/* "pid (name) state ...": the name may hold anything but its end is
	 * the last parenthesis. */
	const char *p = strrchr(text, ')');

	if (p == NULL || p[1] != ' ' || p[2] == '\0' || p[2] == 'Z' ||
	    p[2] == 'X')
		return false;
	p += 2;
	for (int i = 0; i < STAT_START - 1; i++) {
		p = strchr(p, ' ');
		if (p == NULL)
			return false;
		p++;
	}
	*start = strtoull(p, NULL, 10);
	return true;
}

bool
remnant_is_alive(pid_t pid, uint64_t *start)
{
	char text[STAT_BYTES];

	return read_file(pid, "stat", text, sizeof(text)) > 0 &&
	    remnant_parse_stat(text, start);
}

/* Bytes of the character that begins there; 1 where there is none. */
static size_t
char_len(const char *text, size_t n)
{
	unsigned char c = (unsigned char)text[0];
	size_t len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

	return len <= n && utf8_is_valid(text, len) ? len : 1;
}

void
remnant_make_printable(const char *text, size_t n, char *out, size_t size)
{
	size_t used = 0;

	while (n > 0 && text[n - 1] == '\0')
		n--;
	for (size_t i = 0; i < n;) {
		unsigned char c = (unsigned char)text[i];
		size_t len = char_len(text + i, n - i);

		if (used + len >= size)
			break;
		memcpy(out + used, text + i, len);
		if (c == '\0')
			out[used] = ' ';
		else if (len == 1 && c >= 0x80)
			out[used] = '?';
		used += len;
		i += len;
	}
	out[utf8_mask_controls(out, used)] = '\0';
}

void
remnant_read_text(pid_t pid, char *out, size_t size)
{
	char text[CMDLINE_BYTES];
	ssize_t n = read_file(pid, "cmdline", text, sizeof(text));
	size_t len;

	if (n > 0) {
		remnant_make_printable(text, (size_t)n, out, size);
		return;
	}
	n = read_file(pid, "comm", text + 1, sizeof(text) - 2);
	len = n > 0 ? strcspn(text + 1, "\n") : 0;
	text[0] = '[';
	text[len + 1] = ']';
	remnant_make_printable(text, len + 2, out, size);
}

/* By a descriptor, which stays with the process whatever becomes of its
 * number. */
static void
send_signal(int fd, pid_t pid, int sig)
{
	if (fd == -1)
		(void)kill(pid, sig);
	else
		(void)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
}

struct victim {
	pid_t pid;
	uint64_t start;
};

/* Before they are killed: it and the first of those below it. */
static size_t
list_victims(pid_t pid, uint64_t start, struct victim victims[VICTIMS_MAX])
{
	pid_t pids[VICTIMS_MAX - 1];
	size_t total = tree_list(pid, pids, ARRAY_LEN(pids)), n = 0;

	victims[n++] = (struct victim){pid, start};
	for (size_t i = 0; i < total && i < ARRAY_LEN(pids); i++) {
		victims[n].pid = pids[i];
		if (remnant_is_alive(pids[i], &victims[n].start))
			n++;
	}
	return n;
}

static void
wait_dead(const struct victim *victims, size_t n)
{
	const struct timespec pause = {0, 200000};
	uint64_t end = clock_mono_ms() + KILL_WAIT_MS, now;

	for (size_t i = 0; i < n; i++)
		while (remnant_is_alive(victims[i].pid, &now) &&
		    now == victims[i].start && clock_mono_ms() < end)
			(void)nanosleep(&pause, NULL);
}

size_t
remnant_kill(pid_t pid, uint64_t start)
{
	AUTO(auto_close)
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct victim victims[VICTIMS_MAX];
	size_t n, nvictims;
	uint64_t now;

	if (!remnant_is_alive(pid, &now) || now != start)
		return 0;
	send_signal(fd, pid, SIGSTOP); /* it forks no more */
	nvictims = list_victims(pid, start, victims);
	n = tree_kill(pid, NULL, NULL, clock_mono_us() + KILL_ROUND_US);
	send_signal(fd, pid, SIGKILL);
	wait_dead(victims, nvictims);
	return n + 1;
}
