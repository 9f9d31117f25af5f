/*
 * ctl_archive.h - what a backup is: a tar archive
 *
 *	manifest.json		first: what it is, of which instance, when
 *	spool/xx/UUID.log	output of runs
 *	artifacts/N/xx/DIGEST	artifacts
 *	mcp-sandboxd.db		the database
 *	SHA256SUMS		last: of all before, as sha256sum -c reads it
 *
 * The reader believes nothing: other names, links, a name that comes twice,
 * bytes that are not what a digest says, and an end that comes too early are
 * refused, each by its name.  The only file that knows libarchive.
 */
#ifndef CTL_ARCHIVE_H
#define CTL_ARCHIVE_H

#include "common/base.h"
#include "common/err.h"

#define CTL_ARCHIVE_MANIFEST "manifest.json"
#define CTL_ARCHIVE_SUMS "SHA256SUMS"
#define CTL_ARCHIVE_MANIFEST_MAX 65536

struct ctl_archive;

/* ctl_archive_begin - to fd, which stays the caller's */
int ctl_archive_begin(
    int fd, struct ctl_archive **out, struct err *e) MUSTCHECK;
/* ctl_archive_add - the first size bytes of in; ERR_CONFLICT: an artifact that
 * became another while it was read */
int ctl_archive_add(struct ctl_archive *a, const char *name, int in,
    uint64_t size, struct err *e) MUSTCHECK;
int ctl_archive_add_text(struct ctl_archive *a, const char *name,
    const char *text, struct err *e) MUSTCHECK;
/* ctl_archive_end - the sums, and the end; fd is not synced */
int ctl_archive_end(struct ctl_archive *a, struct err *e) MUSTCHECK;
void ctl_archive_free(struct ctl_archive *a); /* NULL is fine */

struct ctl_archive_found {
	char manifest[CTL_ARCHIVE_MANIFEST_MAX + 1];
	uint64_t files; /* without manifest and sums */
	uint64_t bytes;
};
/* An artifact that was not what its name says, and was left out. */
struct ctl_archive_blob {
	uint64_t tenant;
	uint8_t sha256[32];
};
/*
 * ctl_archive_read - unpack fd into the directory dir, which is empty
 *
 * check is called with the manifest, before anything is written; what it
 * returns other than 0 ends it.  told, now and then, with bytes.  dropped, of
 * each artifact that is not what its name says; NULL: such a one ends it.
 */
struct ctl_archive_ops {
	int (*check)(const char *manifest, void *arg, struct err *e);
	void (*told)(uint64_t bytes, void *arg);
	int (*dropped)(const char *name, const struct ctl_archive_blob *blob,
	    void *arg, struct err *e);
};
int ctl_archive_read(int fd, int dir, const struct ctl_archive_ops *ops,
    void *arg, struct ctl_archive_found *out, struct err *e) MUSTCHECK;

#endif
