#include "images/agent/places.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base.h"
#include "common/fd.h"
#include "images/agent/owners.h"
#include "images/agent/say.h"

#define PLACE_MODE 0755

/* 0 or an errno.  A link, or a directory that is somebody's, is the image's
 * own idea and stays as it is. */
static int
place_make(const char *path)
{
	AUTO(auto_close) int fd = -1;
	struct stat st;

	if (mkdir(path, PLACE_MODE) == -1 && errno != EEXIST)
		return errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return errno == ELOOP || errno == ENOTDIR ? 0 : errno;
	if (fstat(fd, &st) == -1)
		return errno;
	if (!owners_are_many())
		return access(path, W_OK) == -1 ? errno : 0;
	if (st.st_uid != 0 || (st.st_mode & S_IWOTH) != 0)
		return 0;
	return owners_give(fd, RUNSPEC_USER_SANDBOX) == -1 ? errno : 0;
}

void
places_make(void)
{
	static const char *const places[] = {"/workspace", "/artifacts"};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		int error = place_make(places[i]);

		if (error != 0)
			say_line(FRAME_SAID_LEVEL_WARN,
			    FRAME_SAID_WHAT_NOT_PREPARED, NULL, "%s: %s",
			    places[i], strerror(error));
	}
}

static const char hosts_text[] = "127.0.0.1\tlocalhost\n"
				 "::1\tlocalhost ip6-localhost\n";

void
places_fill_hosts(const char *path)
{
	AUTO(auto_close)
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	struct err e;

	if (fd == -1 || fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) ||
	    st.st_size != 0)
		return;
	if (fd_write_all(fd, hosts_text, sizeof(hosts_text) - 1, &e) != 0)
		say_line(FRAME_SAID_LEVEL_WARN, FRAME_SAID_WHAT_NOT_PREPARED,
		    NULL, "%s: %s", path, e.msg);
}
