#include "worker/doctor/host.h"

#include <ctype.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>

#include "common/err.h"
#include "common/fd.h"
#include "common/xmalloc.h"
#include "worker/doctor/version.h"

#define STATUS_PATH "/var/lib/dpkg/status"
#define STATUS_MAX (64u << 20)

/* ---- the kernel */

/* Marks in a release's name, of those that keep a version for years. */
static bool
is_patched(const char *release, const char *version)
{
	static const char *const marks[] = {
	    ".el", "-generic", ".amzn", "-default", "-azure", "-gcp", "-aws"};

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (strstr(release, marks[i]) != NULL)
			return true;
	return strstr(version, "Ubuntu") != NULL;
}

void
host_kernel_of(
    const char *release, const char *version, struct host_kernel *out)
{
	/* "6.1.0-37-amd64", and then "... Debian 6.1.140-1 (2025-05-22)" */
	const char *debian = strstr(version, "Debian ");

	(void)snprintf(out->release, sizeof(out->release), "%s", release);
	out->patched = is_patched(release, version);
	version_upstream(debian != NULL ? debian + strlen("Debian ") : release,
	    out->version, sizeof(out->version));
}

void
host_kernel(struct host_kernel *out)
{
	struct utsname u;

	memset(out, 0, sizeof(*out));
	if (uname(&u) == 0)
		host_kernel_of(u.release, u.version, out);
}

bool
host_clock_is_synchronized(void)
{
	struct timex t = {.modes = 0};

	return adjtimex(&t) != -1 && (t.status & STA_UNSYNC) == 0;
}

/* ---- packages */

/* The value of a line "Key: value" between two places; "" if none is. */
static void
take_field(
    const char *at, const char *end, const char *key, char *out, size_t size)
{
	size_t n = strlen(key);

	out[0] = '\0';
	for (; at < end; at += strcspn(at, "\n") + 1)
		if (strncmp(at, key, n) == 0)
			(void)snprintf(out, size, "%.*s",
			    (int)strcspn(at + n, "\n"), at + n);
}

void
host_package_of(const char *status, const char *name, char out[HOST_WORD_MAX])
{
	char found[HOST_WORD_MAX], state[HOST_WORD_MAX];

	out[0] = '\0';
	while (*status != '\0') {
		const char *end = strstr(status, "\n\n");

		if (end == NULL)
			end = status + strlen(status);
		take_field(status, end, "Package: ", found, sizeof(found));
		take_field(status, end, "Status: ", state, sizeof(state));
		if (strcmp(found, name) == 0 &&
		    strcmp(state, "install ok installed") == 0) {
			take_field(
			    status, end, "Version: ", out, HOST_WORD_MAX);
			return;
		}
		status = end + strspn(end, "\n");
	}
}

void
host_package(const char *name, char out[HOST_WORD_MAX])
{
	AUTO(auto_free) char *status = NULL;
	struct err e;
	size_t n;

	out[0] = '\0';
	if (fd_read_file(STATUS_PATH, STATUS_MAX, &status, &n, &e) == 0)
		host_package_of(status, name, out);
}

/* ---- the disk */

bool
host_climb(char *path)
{
	char *slash = strrchr(path, '/');

	if (path[0] == '\0' || strcmp(path, ".") == 0 || strcmp(path, "/") == 0)
		return false;
	if (slash == NULL)
		(void)strcpy(path, ".");
	else
		slash[slash == path ? 1 : 0] = '\0';
	return true;
}

bool
host_disk(const char *path, struct host_disk *out)
{
	AUTO(auto_free) char *at = xstrdup(path);
	struct statvfs st;

	/* It may not be there yet: then what it will be made in. */
	while (statvfs(at, &st) == -1)
		if (!host_climb(at))
			return false;
	(void)snprintf(out->path, sizeof(out->path), "%s", at);
	out->free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
	out->free_inodes = st.f_files == 0 ? UINT64_MAX : st.f_favail;
	return true;
}
