#include "supervisor/ctl/ctl_archive.h"

#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>
#include <openssl/evp.h>

#include "common/fd.h"
#include "common/hex.h"
#include "common/uuid.h"
#include "common/xmalloc.h"
#include "supervisor/store/spool.h"

#define PIECE 65536
#define ANY_DIGIT '?' /* in our lines alone */
#define DIGEST_BYTES 32
#define DB_NAME "mcp-sandboxd.db"
#define NAME_MAX_BYTES 160
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* ---- sums: a line per file, in the order of the archive */

struct sums {
	FILE *lines; /* without a name */
	EVP_MD_CTX *one;
};

static int
sums_open(struct sums *s, struct err *e)
{
	s->lines = tmpfile();
	s->one = EVP_MD_CTX_new();
	if (s->lines == NULL || s->one == NULL)
		return err_errno(e, "a file for digests in %s", P_tmpdir);
	return 0;
}

static void
sums_close(struct sums *s)
{
	if (s->lines != NULL)
		(void)fclose(s->lines);
	EVP_MD_CTX_free(s->one);
}

static void
sums_begin(struct sums *s)
{
	if (EVP_DigestInit_ex(s->one, EVP_sha256(), NULL) != 1)
		abort();
}

static void
sums_take(struct sums *s, const void *p, size_t n)
{
	if (EVP_DigestUpdate(s->one, p, n) != 1)
		abort();
}

static void
sums_digest(struct sums *s, char digest[HEX_BYTES(32)])
{
	uint8_t bytes[EVP_MAX_MD_SIZE];

	if (EVP_DigestFinal_ex(s->one, bytes, NULL) != 1)
		abort();
	hex_encode(bytes, DIGEST_BYTES, digest);
}

static int
sums_line(struct sums *s, const char *name, const char *digest, struct err *e)
{
	if (fprintf(s->lines, "%s  %s\n", digest, name) < 0)
		return err_errno(e, "a file for digests");
	return 0;
}

static int
sums_end(
    struct sums *s, const char *name, char digest[HEX_BYTES(32)], struct err *e)
{
	sums_digest(s, digest);
	return sums_line(s, name, digest, e);
}

/* ---- names */

static bool
is_log(const char *name)
{
	char bucket[SPOOL_BUCKET_BYTES], file[SPOOL_LOG_BYTES];
	char text[UUID_TEXT_LEN + 1], again[NAME_MAX_BYTES];
	struct uuid run;

	if (strlen(name) != strlen("spool/xx/") + SPOOL_LOG_BYTES - 1)
		return false;
	(void)snprintf(text, sizeof(text), "%s", name + strlen("spool/xx/"));
	if (uuid_parse(text, &run) != 0)
		return false;
	spool_log_place(&run, bucket, file);
	(void)snprintf(again, sizeof(again), "spool/%s/%s", bucket, file);
	return strcmp(again, name) == 0;
}

/* "artifacts/7/ab/ab..."; *digest points into it. */
static bool
is_blob(const char *name, const char **digest)
{
	static const char top[] = "artifacts/";
	const char *number = name + sizeof(top) - 1, *bucket;
	size_t digits;

	if (strncmp(name, top, sizeof(top) - 1) != 0)
		return false;
	digits = strspn(number, "0123456789");
	bucket = number + digits;
	*digest = bucket + 4;
	return digits >= 1 && digits <= 19 && number[0] != '0' &&
	    strlen(bucket) == 4 + HEX_BYTES(32) - 1 && bucket[0] == '/' &&
	    bucket[3] == '/' && strncmp(bucket + 1, *digest, 2) == 0 &&
	    strspn(*digest, "0123456789abcdef") == HEX_BYTES(32) - 1;
}

/* ---- writing */

struct ctl_archive {
	struct archive *to;
	struct sums sums;
};

static int
write_failed(struct ctl_archive *a, struct err *e)
{
	const char *why = archive_error_string(a->to);

	return err_set(e, ERR_SYS, "the archive: %s",
	    why != NULL ? why : "it cannot be written");
}

int
ctl_archive_begin(int fd, struct ctl_archive **out, struct err *e)
{
	struct ctl_archive *a = xcalloc(1, sizeof(*a));

	a->to = archive_write_new();
	if (a->to == NULL) {
		ctl_archive_free(a);
		return err_set(e, ERR_SYS, "libarchive does not start");
	}
	if (sums_open(&a->sums, e) != 0) {
		ctl_archive_free(a);
		return e->code;
	}
	if (archive_write_set_format_pax_restricted(a->to) != ARCHIVE_OK ||
	    archive_write_open_fd(a->to, fd) != ARCHIVE_OK) {
		(void)write_failed(a, e);
		ctl_archive_free(a);
		return e->code;
	}
	*out = a;
	return 0;
}

void
ctl_archive_free(struct ctl_archive *a)
{
	if (a == NULL)
		return;
	if (a->to != NULL)
		(void)archive_write_free(a->to);
	sums_close(&a->sums);
	free(a);
}

static int
write_head(
    struct ctl_archive *a, const char *name, uint64_t size, struct err *e)
{
	struct archive_entry *entry = archive_entry_new();
	int rc;

	if (entry == NULL)
		return err_set(e, ERR_SYS, "out of memory");
	archive_entry_set_pathname(entry, name);
	archive_entry_set_size(entry, (int64_t)size);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0600);
	rc = archive_write_header(a->to, entry);
	archive_entry_free(entry);
	return rc == ARCHIVE_OK ? 0 : write_failed(a, e);
}

static int
write_bytes(struct ctl_archive *a, const void *p, size_t n, struct err *e)
{
	la_ssize_t done = archive_write_data(a->to, p, n);

	return done == (la_ssize_t)n ? 0 : write_failed(a, e);
}

static int
write_file(struct ctl_archive *a, const char *name, int in, uint64_t size,
    struct err *e)
{
	static uint8_t piece[PIECE];

	if (write_head(a, name, size, e) != 0)
		return e->code;
	for (uint64_t at = 0; at < size;) {
		size_t want = size - at < PIECE ? (size_t)(size - at) : PIECE;
		ssize_t n = fd_pread_all(in, piece, want, at, e);

		if (n < 0)
			return err_wrap(e, "%s", name);
		if ((size_t)n != want)
			return err_set(e, ERR_SYS,
			    "%s became shorter while it was read", name);
		sums_take(&a->sums, piece, want);
		if (write_bytes(a, piece, want, e) != 0)
			return e->code;
		at += want;
	}
	return 0;
}

int
ctl_archive_add(struct ctl_archive *a, const char *name, int in, uint64_t size,
    struct err *e)
{
	char digest[HEX_BYTES(32)];
	const char *want;

	sums_begin(&a->sums);
	if (write_file(a, name, in, size, e) != 0 ||
	    sums_end(&a->sums, name, digest, e) != 0)
		return e->code;
	return !is_blob(name, &want) || strcmp(digest, want) == 0 ?
	    0 :
	    err_set(e, ERR_CONFLICT,
		"%s became another while it was read: try again", name);
}

int
ctl_archive_add_text(
    struct ctl_archive *a, const char *name, const char *text, struct err *e)
{
	char digest[HEX_BYTES(32)];
	size_t n = strlen(text);

	sums_begin(&a->sums);
	sums_take(&a->sums, text, n);
	if (write_head(a, name, n, e) != 0 || write_bytes(a, text, n, e) != 0)
		return e->code;
	return sums_end(&a->sums, name, digest, e);
}

int
ctl_archive_end(struct ctl_archive *a, struct err *e)
{
	struct stat st;
	int fd = fileno(a->sums.lines);

	if (fflush(a->sums.lines) != 0 || fstat(fd, &st) == -1)
		return err_errno(e, "a file for digests");
	sums_begin(&a->sums);
	if (write_file(a, CTL_ARCHIVE_SUMS, fd, (uint64_t)st.st_size, e) != 0)
		return e->code;
	return archive_write_close(a->to) == ARCHIVE_OK ? 0 :
							  write_failed(a, e);
}

/* ---- reading: entries */

struct reading {
	struct archive *from;
	struct sums sums;
	const struct ctl_archive_ops *ops;
	void *arg;
	int dir;
	struct ctl_archive_found *found;
	uint64_t most; /* bytes that a file without holes can give */
	bool has_manifest, has_database, has_sums;
	uint8_t piece[PIECE];
};

static int
bad(struct err *e, const char *what)
{
	return err_set(
	    e, ERR_DAMAGED, "this is no backup, or it is damaged: %s", what);
}

static int
read_failed(struct reading *r, struct err *e)
{
	const char *why = archive_error_string(r->from);

	return bad(e, why != NULL ? why : "it cannot be read");
}

/* -1: an error; 0: the end of the entry. */
static ssize_t
read_piece(struct reading *r, struct err *e)
{
	la_ssize_t n = archive_read_data(r->from, r->piece, sizeof(r->piece));

	if (n < 0) {
		(void)read_failed(r, e);
		return -1;
	}
	return (ssize_t)n;
}

static int
read_manifest(struct reading *r, struct err *e)
{
	char digest[HEX_BYTES(32)];
	size_t used = 0;
	ssize_t n;

	sums_begin(&r->sums);
	while ((n = read_piece(r, e)) > 0) {
		if (used + (size_t)n > CTL_ARCHIVE_MANIFEST_MAX)
			return bad(e, "its manifest is too large");
		memcpy(r->found->manifest + used, r->piece, (size_t)n);
		used += (size_t)n;
	}
	if (n < 0)
		return e->code;
	r->found->manifest[used] = '\0';
	sums_take(&r->sums, r->found->manifest, used);
	r->has_manifest = true;
	if (sums_end(&r->sums, CTL_ARCHIVE_MANIFEST, digest, e) != 0)
		return e->code;
	return r->ops->check(r->found->manifest, r->arg, e);
}

/* Of what was dropped the archive may say either digest. */
static bool
is_same(const uint8_t *ours, const uint8_t *theirs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ours[i] != theirs[i] &&
		    (ours[i] != ANY_DIGIT || hex_value((char)theirs[i]) < 0))
			return false;
	return true;
}

static int
read_sums(struct reading *r, struct err *e)
{
	static uint8_t ours[PIECE];
	uint64_t at = 0;
	ssize_t n;

	if (fflush(r->sums.lines) != 0)
		return err_errno(e, "a file for digests");
	while ((n = read_piece(r, e)) > 0) {
		ssize_t had =
		    fd_pread_all(fileno(r->sums.lines), ours, (size_t)n, at, e);

		if (had < 0)
			return e->code;
		if (had != n || !is_same(ours, r->piece, (size_t)n))
			return bad(e, "its files are not those of SHA256SUMS");
		at += (uint64_t)n;
	}
	if (n < 0)
		return e->code;
	if (fd_pread_all(fileno(r->sums.lines), ours, 1, at, e) != 0)
		return bad(e, "its files are not those of SHA256SUMS");
	r->has_sums = true;
	return 0;
}

/* The directories of name are made one below the other; none is a link, for
 * nothing else makes anything here. */
static int
create(struct reading *r, const char *name, struct err *e)
{
	char part[NAME_MAX_BYTES];
	const char *slash;
	int dir = r->dir, fd;

	while ((slash = strchr(name, '/')) != NULL) {
		int next;

		(void)snprintf(
		    part, sizeof(part), "%.*s", (int)(slash - name), name);
		next = mkdirat(dir, part, 0700) == -1 && errno != EEXIST ?
		    -1 :
		    openat(dir, part, DIR_FLAGS);
		if (dir != r->dir)
			(void)close(dir);
		if (next == -1)
			return err_errno(e, "%s", part);
		dir = next;
		name = slash + 1;
	}
	fd = openat(dir, name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1 && errno == EEXIST)
		(void)bad(e, "a file comes twice");
	else if (fd == -1)
		(void)err_errno(e, "%s", name);
	if (dir != r->dir)
		(void)close(dir);
	return fd == -1 ? e->code : fd;
}

static int
copy_file(struct reading *r, int fd, struct err *e)
{
	ssize_t n;

	while ((n = read_piece(r, e)) > 0) {
		sums_take(&r->sums, r->piece, (size_t)n);
		if (fd_write_all(fd, r->piece, (size_t)n, e) != 0)
			return e->code;
		r->found->bytes += (uint64_t)n;
		if (r->found->bytes > r->most)
			return bad(e, "it gives more than it has");
		r->ops->told(r->found->bytes, r->arg);
	}
	return n < 0 ? e->code : 0;
}

static int
drop_blob(struct reading *r, const char *name, const char *want, struct err *e)
{
	struct ctl_archive_blob blob = {
	    .tenant = strtoull(name + strlen("artifacts/"), NULL, 10)};
	char any[HEX_BYTES(32)];

	if (r->ops->dropped == NULL)
		return err_set(e, ERR_DAMAGED,
		    "this is no backup, or it is damaged: artifact %s is not "
		    "what its name says: --drop-damaged leaves such ones out",
		    name);
	if (hex_decode(want, blob.sha256, sizeof(blob.sha256)) != 0 ||
	    unlinkat(r->dir, name, 0) == -1)
		return err_errno(e, "%s: remove", name);
	memset(any, ANY_DIGIT, sizeof(any) - 1);
	any[sizeof(any) - 1] = '\0';
	if (sums_line(&r->sums, name, any, e) != 0)
		return e->code;
	return r->ops->dropped(name, &blob, r->arg, e);
}

static int
read_file(struct reading *r, const char *name, const char *want, struct err *e)
{
	AUTO(auto_close) int fd = create(r, name, e);
	char digest[HEX_BYTES(32)];

	if (fd < 0) {
		fd = -1;
		return e->code;
	}
	sums_begin(&r->sums);
	if (copy_file(r, fd, e) != 0)
		return e->code;
	sums_digest(&r->sums, digest);
	if (want != NULL && strcmp(want, digest) != 0)
		return drop_blob(r, name, want, e);
	r->found->files++;
	return sums_line(&r->sums, name, digest, e);
}

static int
read_entry(struct reading *r, struct archive_entry *entry, struct err *e)
{
	const char *name = archive_entry_pathname(entry), *digest = NULL;

	if (name == NULL || strlen(name) >= NAME_MAX_BYTES)
		return bad(e, "a name that no backup has");
	if (archive_entry_filetype(entry) != AE_IFREG ||
	    archive_entry_hardlink(entry) != NULL ||
	    archive_entry_symlink(entry) != NULL)
		return bad(e, "it has something else than files");
	if (r->has_sums)
		return bad(e, "something comes behind its end");
	if ((strcmp(name, CTL_ARCHIVE_MANIFEST) == 0) == r->has_manifest)
		return bad(e, "it does not begin with its manifest");
	if (!r->has_manifest)
		return read_manifest(r, e);
	if (strcmp(name, CTL_ARCHIVE_SUMS) == 0)
		return read_sums(r, e);
	if (strcmp(name, DB_NAME) == 0)
		r->has_database = true;
	else if (!is_log(name) && !is_blob(name, &digest))
		return bad(e, "a name that no backup has");
	return read_file(r, name, digest, e);
}

static int
read_all(struct reading *r, struct err *e)
{
	struct archive_entry *entry;
	int rc;

	while ((rc = archive_read_next_header(r->from, &entry)) == ARCHIVE_OK)
		if (read_entry(r, entry, e) != 0)
			return e->code;
	if (rc != ARCHIVE_EOF)
		return read_failed(r, e);
	if (!r->has_sums)
		return bad(e, "it ends too early");
	return r->has_database ? 0 : bad(e, "it has no database");
}

int
ctl_archive_read(int fd, int dir, const struct ctl_archive_ops *ops, void *arg,
    struct ctl_archive_found *out, struct err *e)
{
	struct reading *r = xcalloc(1, sizeof(*r));
	struct stat st = {0};
	int rc = 0;

	memset(out, 0, sizeof(*out));
	r->ops = ops;
	r->arg = arg;
	r->dir = dir;
	r->found = out;
	r->from = archive_read_new();
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode))
		rc = bad(e, "it is not a file");
	r->most = (uint64_t)st.st_size;
	if (rc == 0 && r->from == NULL)
		rc = err_set(e, ERR_SYS, "libarchive does not start");
	if (rc == 0)
		rc = sums_open(&r->sums, e);
	/* One form, never compressed: no more of it reads what is hostile. */
	if (rc == 0 &&
	    (archive_read_support_format_tar(r->from) != ARCHIVE_OK ||
		archive_read_open_fd(r->from, fd, PIECE) != ARCHIVE_OK))
		rc = read_failed(r, e);
	if (rc == 0)
		rc = read_all(r, e);
	if (r->from != NULL)
		(void)archive_read_free(r->from);
	sums_close(&r->sums);
	free(r);
	return rc;
}
