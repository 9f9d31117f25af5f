#include "common/room.h"

#include <sys/statvfs.h>

int
room_read(int fd, struct room *out)
{
	struct statvfs st;

	if (fstatvfs(fd, &st) == -1)
		return -1;
	/* A tmpfs without a limit has 0 of 0 blocks, and btrfs and its like,
	 * which have no table of inodes, 0 of 0 of those. */
	out->bytes =
	    st.f_blocks == 0 ? UINT64_MAX : (uint64_t)st.f_bavail * st.f_frsize;
	out->inodes = st.f_files == 0 ? UINT64_MAX : (uint64_t)st.f_favail;
	return 0;
}
