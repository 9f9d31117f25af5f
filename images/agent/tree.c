#include "images/agent/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/clock.h"

#define TREE_READ_BYTES 65536
/* A tree whose processes fork and exit faster than they are found changes at
 * every look; after so many the kill begins all the same. */
#define TREE_LOOKS_MAX 50

/* Static, so that a kill needs next to no memory. */
static pid_t queue[TREE_MAX];
static char text[TREE_READ_BYTES];

size_t
tree_parse_children(const char *list, size_t n, pid_t *out, size_t max)
{
	size_t count = 0;
	pid_t pid = 0;

	for (size_t i = 0; i <= n && count < max; i++) {
		if (i < n && list[i] >= '0' && list[i] <= '9') {
			if (pid > INT32_MAX / 10 - 1)
				return count;
			pid = pid * 10 + (list[i] - '0');
		} else if (pid != 0) {
			out[count++] = pid;
			pid = 0;
		}
	}
	return count;
}

pid_t
tree_parse_ppid(const char *stat_text)
{
	/* "pid (name) state ppid": the name may hold anything but its end
	 * is the last parenthesis. */
	const char *p = strrchr(stat_text, ')');
	char *end;
	long ppid;

	if (p == NULL || strnlen(p, 5) < 5)
		return -1;
	ppid = strtol(p + 4, &end, 10);
	return end == p + 4 || ppid < 0 || ppid > INT32_MAX ? -1 : (pid_t)ppid;
}

/* A file's text into text[], NUL-terminated; -1 when it cannot be read. */
static ssize_t
read_text(int dir, const char *path)
{
	AUTO(auto_close) int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got;

	if (fd == -1)
		return -1;
	while (n < sizeof(text) - 1) {
		got = read(fd, text + n, sizeof(text) - 1 - n);
		if (got == -1 && errno == EINTR)
			continue;
		if (got == -1)
			return -1;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	text[n] = '\0';
	return (ssize_t)n;
}

static pid_t
name_to_pid(const char *name)
{
	pid_t pid = 0;

	for (; *name != '\0'; name++) {
		if (*name < '0' || *name > '9' || pid > INT32_MAX / 10 - 1)
			return 0;
		pid = pid * 10 + (*name - '0');
	}
	return pid;
}

static size_t
children_in(int dir, const char *path, pid_t *out, size_t max)
{
	ssize_t n = read_text(dir, path);

	return n > 0 ? tree_parse_children(text, (size_t)n, out, max) : 0;
}

/* Children of all threads of pid; none when it is gone. */
static size_t
children_by_task(pid_t pid, pid_t *out, size_t max)
{
	const struct dirent *d;
	char path[64];
	size_t count = 0;
	struct stat st;
	DIR *dir;

	/* The directory of the threads has a link more for each: that saves
	 * the listing of most. */
	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	if (stat(path, &st) == -1)
		return 0;
	if (st.st_nlink == 3) {
		(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children",
		    (int)pid, (int)pid);
		return children_in(AT_FDCWD, path, out, max);
	}
	dir = opendir(path);
	if (dir == NULL)
		return 0;
	while ((d = readdir(dir)) != NULL) {
		if (name_to_pid(d->d_name) == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%.20s/children", d->d_name);
		count +=
		    children_in(dirfd(dir), path, out + count, max - count);
	}
	(void)closedir(dir);
	return count;
}

pid_t
tree_parent(pid_t pid)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return read_text(AT_FDCWD, path) > 0 ? tree_parse_ppid(text) : -1;
}

static size_t
children_by_stat(pid_t pid, pid_t *out, size_t max)
{
	const struct dirent *d;
	char path[64];
	size_t count = 0;
	DIR *dir = opendir("/proc");

	if (dir == NULL)
		return 0;
	while (count < max && (d = readdir(dir)) != NULL) {
		pid_t other = name_to_pid(d->d_name);

		if (other == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%d/stat", (int)other);
		if (read_text(dirfd(dir), path) > 0 &&
		    tree_parse_ppid(text) == pid)
			out[count++] = other;
	}
	(void)closedir(dir);
	return count;
}

/*
 * Children of pid.  Whether the kernel has children files is asked once, of
 * the caller itself.
 */
static size_t
children_of(pid_t pid, pid_t *out, size_t max)
{
	static enum {
		UNKNOWN,
		BY_TASK,
		BY_STAT
	} how = UNKNOWN;

	if (how == UNKNOWN)
		how = access("/proc/thread-self/children", F_OK) == 0 ?
		    BY_TASK :
		    BY_STAT;
	return how == BY_TASK ? children_by_task(pid, out, max) :
				children_by_stat(pid, out, max);
}

/* Spreads a pid over 64 bits, so that sums of different sets differ. */
static uint64_t
pid_mark(pid_t pid)
{
	uint64_t v = (uint64_t)pid * 0x9e3779b97f4a7c15u;

	v ^= v >> 29;
	v *= 0xbf58476d1ce4e5b9u;
	return v ^ (v >> 32);
}

/* Signals out[from..to) and drops those to skip; returns the new end. */
static size_t
signal_found(size_t from, size_t to, int sig, tree_skip skip, void *arg,
    struct tree_set *set)
{
	size_t end = from;

	for (size_t i = from; i < to; i++) {
		pid_t pid = queue[i];

		if (pid <= 1 || (skip != NULL && skip(pid, arg)))
			continue;
		if (sig != 0)
			(void)kill(pid, sig);
		set->count++;
		set->mark += pid_mark(pid);
		queue[end++] = pid;
	}
	return end;
}

struct tree_set
tree_signal(pid_t root, int sig, tree_skip skip, void *arg)
{
	struct tree_set set = {0, 0};
	size_t end = children_of(root, queue, TREE_MAX);

	end = signal_found(0, end, sig, skip, arg, &set);
	for (size_t i = 0; i < end && end < TREE_MAX; i++) {
		size_t n = children_of(queue[i], queue + end, TREE_MAX - end);

		end = signal_found(end, end + n, sig, NULL, NULL, &set);
	}
	return set;
}

size_t
tree_list(pid_t root, pid_t *out, size_t max)
{
	struct tree_set set = tree_signal(root, 0, NULL, NULL);

	memcpy(out, queue, (set.count < max ? set.count : max) * sizeof(*out));
	return set.count;
}

size_t
tree_kill(pid_t root, tree_skip skip, void *arg, uint64_t deadline_us)
{
	struct tree_set last = tree_signal(root, SIGSTOP, skip, arg);

	for (int i = 0; i < TREE_LOOKS_MAX && last.count > 0; i++) {
		struct tree_set now = tree_signal(root, SIGSTOP, skip, arg);
		bool same = now.count == last.count && now.mark == last.mark;

		last = now;
		if (same)
			break;
		if (clock_mono_us() >= deadline_us)
			break;
	}
	/* Those of the last look, and not a new look: a dead parent's children
	 * are somewhere else at once. */
	for (size_t i = 0; i < last.count; i++)
		(void)kill(queue[i], SIGKILL);
	return last.count;
}
