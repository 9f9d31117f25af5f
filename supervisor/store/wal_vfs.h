/*
 * wal_vfs.h - SQLite's VFS, with the frames of a commit written by one call
 *
 * SQLite writes each page of a commit to the WAL by two calls, one for 24
 * bytes of header: most of what a commit takes before its sync.  Here they are
 * held until the commit's last frame, or 64 KiB of them, and go to the file at
 * once.
 *
 * Nothing is held that somebody could miss: not beyond the commit's last
 * frame, whose write says what failed; not beyond a sync, a read, or a
 * question for the size; nor when the writer's lock is given up or others are
 * told of frames (xShmLock, xShmBarrier).  What is written, and what is on
 * disk when, is as it would be without.
 *
 * For connections that write; others read the same files by SQLite's own VFS.
 */
#ifndef STORE_WAL_VFS_H
#define STORE_WAL_VFS_H

/* wal_vfs_name - for sqlite3_open_v2; any thread */
const char *wal_vfs_name(void);

#endif
