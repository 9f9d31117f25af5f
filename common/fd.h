/* fd.h - small helpers for descriptors.  All made close-on-exec. */
#ifndef COMMON_FD_H
#define COMMON_FD_H

#include <sys/types.h>

#include "common/base.h"
#include "common/err.h"

int fd_set_nonblock(int fd, struct err *e) MUSTCHECK;
/* fd_close_from - close_range(first, ~0); falls back to /proc/self/fd */
void fd_close_from(int first);
/* fd_write_all - whole buffer to a blocking descriptor, EINTR retried */
int fd_write_all(int fd, const void *p, size_t n, struct err *e) MUSTCHECK;
/* fd_pread_all - reads n bytes at off; returns the number read, fewer only
 * at the end of the file; -1 with *e on failure */
ssize_t fd_pread_all(
    int fd, void *p, size_t n, uint64_t off, struct err *e) MUSTCHECK;
/* fd_memfd - an empty anonymous file that can be sealed; or a negative ERR_* */
int fd_memfd(const char *name, struct err *e) MUSTCHECK;
/* fd_memfd_sealed - an anonymous file with these bytes, sealed against any
 * change, position 0.  Returns the descriptor or a negative ERR_*.  */
int fd_memfd_sealed(
    const char *name, const void *p, size_t n, struct err *e) MUSTCHECK;
/* fd_copy_sealed - such a file with the first n bytes of fd, which may be a
 * secret; the descriptor, or a negative ERR_* */
int fd_copy_sealed(const char *name, int fd, size_t n, struct err *e) MUSTCHECK;
/* fd_lock - flock LOCK_EX, tried for patience_ms: the lock of a server that was
 * killed goes only when its last process has ended, which may be in the middle
 * of a sync.  Blocks meanwhile.  0, or -1 with errno; EWOULDBLOCK: somebody
 * else has it still. */
#define FD_LOCK_PATIENCE_MS 2000
int fd_lock(int fd, uint32_t patience_ms) MUSTCHECK;
/* fd_read_sealed - the content of such a file from a peer: it must be a
 * memfd with F_SEAL_WRITE, SHRINK and GROW and hold at most max bytes.
 * *out is the caller's to free. */
int fd_read_sealed(int fd, size_t max, uint8_t **out, size_t *out_len,
    struct err *e) MUSTCHECK;
/* fd_read_file - a small regular file whole, at most max bytes, a NUL is
 * put behind it; *out is the caller's to free */
int fd_read_file(const char *path, size_t max, char **out, size_t *out_len,
    struct err *e) MUSTCHECK;
/* fd_is_zero - there are bytes between the two places, and none but zeros; of
 * what cannot be read, no */
bool fd_is_zero(int fd, uint64_t from, uint64_t upto);
/* fd_sync_above - the name of this path in its directory is on disk; 0, or -1
 * with errno */
int fd_sync_above(const char *path) MUSTCHECK;
/* fd_mkdir_all - mkdir -p with mode for each directory made, whose name is on
 * disk then */
int fd_mkdir_all(const char *path, mode_t mode, struct err *e) MUSTCHECK;

#endif
