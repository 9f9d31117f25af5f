#include "tests/unit/store/fixture.h"

#include "supervisor/store/spool.h"

#undef TEST_STATE
#define TEST_STATE struct spool_room *r

struct spool_room {
	struct fixture *f;
	struct spool *s;
	struct uuid run;
	struct err err;
};

static const uint8_t digest[32] = {0xab, 0xcd, 1, 2, 3};

static int
setup(void **state)
{
	struct spool_room *r = xcalloc(1, sizeof(*r));

	r->f = fixture_new("/tmp");
	assert_int_equal(spool_open(r->f->dir, "", &r->s, &r->err), 0);
	uuid_random(&r->run);
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	struct spool_room *r = *state;

	spool_close(r->s);
	fixture_free(r->f);
	free(r);
	return 0;
}

static void
put(int fd, const char *text)
{
	struct err e;

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text), &e), 0);
	assert_int_equal(close(fd), 0);
}

static void
assert_holds(int fd, const char *text)
{
	char got[100] = "";
	struct err e;

	assert_true(fd >= 0);
	assert_int_equal(
	    fd_pread_all(fd, got, sizeof(got) - 1, 0, &e), strlen(text));
	assert_string_equal(got, text);
	assert_int_equal(close(fd), 0);
}

static int64_t
tmp_count(const struct spool_room *r)
{
	AUTO(auto_free) char *path = xasprintf("%s/artifacts/tmp", r->f->dir);
	DIR *dir = opendir(path);
	const struct dirent *entry;
	int64_t n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL)
		n += entry->d_name[0] != '.';
	(void)closedir(dir);
	return n;
}

TEST(a_log_is_appended_and_read)
{
	put(spool_log_create(r->s, &r->run, &r->err), "one ");
	put(spool_log_create(r->s, &r->run, &r->err), "two");
	assert_holds(spool_log_read(r->s, &r->run, &r->err), "one two");
	assert_holds(spool_log_create(r->s, &r->run, &r->err), "one two");
}

TEST(a_log_is_where_and_as_the_contract_says)
{
	AUTO(auto_free) char *path = NULL;
	char text[UUID_TEXT_LEN + 1];
	struct stat st;
	int fd = spool_log_create(r->s, &r->run, &r->err);

	put(fd, "x");
	uuid_format(&r->run, text);
	path = xasprintf("%s/spool/%.2s/%s.log", r->f->dir, text, text);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

TEST(a_log_with_the_time_in_its_name_is_found_by_its_last_digits)
{
	AUTO(auto_free) char *path = NULL;
	char text[UUID_TEXT_LEN + 1];
	struct uuid run;
	struct stat st;

	uuid_timed(&run);
	put(spool_log_create(r->s, &run, &r->err), "x");
	uuid_format(&run, text);
	path = xasprintf(
	    "%s/spool/%s/%s.log", r->f->dir, text + UUID_TEXT_LEN - 2, text);
	assert_int_equal(stat(path, &st), 0);
	assert_holds(spool_log_read(r->s, &run, &r->err), "x");
	spool_log_remove(r->s, &run);
	assert_int_equal(stat(path, &st), -1);
}

TEST(a_log_that_is_not_there_is_not_found)
{
	assert_int_equal(spool_log_read(r->s, &r->run, &r->err), ERR_NOTFOUND);
	put(spool_log_create(r->s, &r->run, &r->err), "x");
	spool_log_remove(r->s, &r->run);
	assert_int_equal(spool_log_read(r->s, &r->run, &r->err), ERR_NOTFOUND);
	spool_log_remove(r->s, &r->run); /* again: nothing happens */
}

TEST(a_blob_is_found_by_tenant_and_digest)
{
	uint8_t other[32] = {1};

	put(spool_blob_begin(r->s, &r->run, 0, &r->err), "bytes");
	assert_int_equal(
	    spool_blob_commit(r->s, &r->run, 0, 7, digest, &r->err), 0);
	assert_holds(spool_blob_read(r->s, 7, digest, &r->err), "bytes");
	assert_int_equal(
	    spool_blob_read(r->s, 8, digest, &r->err), ERR_NOTFOUND);
	assert_int_equal(
	    spool_blob_read(r->s, 7, other, &r->err), ERR_NOTFOUND);
	assert_int_equal(tmp_count(r), 0);
	spool_blob_remove(r->s, 7, digest);
	assert_int_equal(
	    spool_blob_read(r->s, 7, digest, &r->err), ERR_NOTFOUND);
}

TEST(the_same_bytes_twice_are_one_blob_and_readers_go_on)
{
	int reader;

	put(spool_blob_begin(r->s, &r->run, 0, &r->err), "bytes");
	assert_int_equal(
	    spool_blob_commit(r->s, &r->run, 0, 7, digest, &r->err), 0);
	reader = spool_blob_read(r->s, 7, digest, &r->err);
	put(spool_blob_begin(r->s, &r->run, 1, &r->err), "bytes");
	assert_int_equal(
	    spool_blob_commit(r->s, &r->run, 1, 7, digest, &r->err), 0);
	assert_holds(reader, "bytes");
	assert_holds(spool_blob_read(r->s, 7, digest, &r->err), "bytes");
	assert_int_equal(tmp_count(r), 0);
}

TEST(what_was_aborted_or_left_over_is_gone)
{
	put(spool_blob_begin(r->s, &r->run, 0, &r->err), "a");
	put(spool_blob_begin(r->s, &r->run, 1, &r->err), "b");
	put(spool_blob_begin(r->s, &r->run, 2, &r->err), "c");
	assert_int_equal(tmp_count(r), 3);
	spool_blob_abort(r->s, &r->run, 1);
	assert_int_equal(tmp_count(r), 2);
	assert_int_equal(
	    spool_blob_commit(r->s, &r->run, 1, 7, digest, &r->err),
	    ERR_NOTFOUND);
	spool_close(r->s);
	assert_int_equal(spool_open(r->f->dir, NULL, &r->s, &r->err), 0);
	spool_sweep_tmp(r->s);
	assert_int_equal(tmp_count(r), 0);
}

TEST(a_second_begin_is_a_new_file)
{
	int old = spool_blob_begin(r->s, &r->run, 0, &r->err);

	assert_true(old >= 0);
	put(spool_blob_begin(r->s, &r->run, 0, &r->err), "new");
	put(old, "what a dead worker still writes");
	assert_int_equal(
	    spool_blob_commit(r->s, &r->run, 0, 7, digest, &r->err), 0);
	assert_holds(spool_blob_read(r->s, 7, digest, &r->err), "new");
}

TEST(no_link_is_followed)
{
	AUTO(auto_free) char *log = NULL;
	AUTO(auto_free) char *tenant = NULL;
	char text[UUID_TEXT_LEN + 1];
	struct uuid other = r->run;

	uuid_format(&r->run, text);
	put(spool_log_create(r->s, &r->run, &r->err), "x");
	spool_log_remove(r->s, &r->run);
	log = xasprintf("%s/spool/%.2s/%s.log", r->f->dir, text, text);
	assert_int_equal(symlink("/etc/passwd", log), 0);
	assert_int_equal(spool_log_read(r->s, &r->run, &r->err), ERR_SYS);
	assert_int_equal(spool_log_create(r->s, &r->run, &r->err), ERR_SYS);

	tenant = xasprintf("%s/artifacts/7", r->f->dir);
	assert_int_equal(symlink("/tmp", tenant), 0);
	put(spool_blob_begin(r->s, &r->run, 0, &r->err), "x");
	assert_int_equal(
	    spool_blob_commit(r->s, &r->run, 0, 7, digest, &r->err), ERR_SYS);

	other.b[0] = (uint8_t)~other.b[0];
	uuid_format(&other, text);
	free(log);
	log = xasprintf("%s/spool/%.2s", r->f->dir, text);
	assert_int_equal(symlink("/tmp", log), 0);
	assert_int_equal(spool_log_create(r->s, &other, &r->err), ERR_SYS);
}

TEST(artifacts_may_be_elsewhere)
{
	AUTO(auto_free) char *dir = xasprintf("%s/else/where", r->f->dir);
	AUTO(auto_free) char *tmp = xasprintf("%s/tmp", dir);

	spool_close(r->s);
	assert_int_equal(spool_open(r->f->dir, dir, &r->s, &r->err), 0);
	assert_int_equal(access(tmp, F_OK), 0);
}

TEST(a_place_that_is_no_directory_is_named)
{
	AUTO(auto_free) char *path = xasprintf("%s/file", r->f->dir);
	struct spool *s = NULL;

	put(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), "x");
	r->err.msg[0] = '\0';
	assert_true(spool_open(path, "", &s, &r->err) < 0);
	assert_null(s);
	assert_non_null(strstr(r->err.msg, path));
}

TEST(a_directory_in_use_is_refused)
{
	AUTO(auto_free) char *other = xasprintf("%s/other", r->f->dir);
	AUTO(auto_free) char *artifacts = xasprintf("%s/artifacts", r->f->dir);
	struct spool *s = NULL;

	assert_int_equal(spool_open(r->f->dir, "", &s, &r->err), ERR_CONFLICT);
	assert_non_null(strstr(r->err.msg, "is in use by another"));
	/* Artifacts of two servers in one directory would be removed as
	 * leftovers of each other. */
	assert_int_equal(
	    spool_open(other, artifacts, &s, &r->err), ERR_CONFLICT);
	assert_non_null(strstr(r->err.msg, artifacts));
}

static void
count_cb(const struct spool_entry *entry, void *arg)
{
	unsigned int *n = arg;

	assert_true(entry->tenant == 0 || entry->sha256[0] == digest[0]);
	(*n)++;
}

TEST(a_walk_finds_logs_and_blobs_and_nothing_else)
{
	static const char *const alien[] = {"spool/notes", "artifacts/7/notes",
	    "artifacts/7/ab/notes", "artifacts/notes"};
	struct spool_place *places = NULL;
	unsigned int found = 0;
	size_t n;

	put(spool_log_create(r->s, &r->run, &r->err), "x");
	put(spool_blob_begin(r->s, &r->run, 0, &r->err), "bytes");
	assert_int_equal(
	    spool_blob_commit(r->s, &r->run, 0, 7, digest, &r->err), 0);
	for (size_t i = 0; i < ARRAY_LEN(alien); i++) {
		AUTO(auto_free)
		char *path = xasprintf("%s/%s", r->f->dir, alien[i]);

		put(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), "x");
	}
	n = spool_walk_places(r->s, &places);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++)
		spool_walk(r->s, &places[i], count_cb, &found);
	assert_int_equal(found, 2);
	free(places);
}

TEST(a_nameless_log_gets_one_name_once)
{
	struct uuid other;
	int fd = spool_log_fresh(r->s, &r->err);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, "text", 4, &r->err), 0);
	assert_int_equal(spool_log_read(r->s, &r->run, &r->err), ERR_NOTFOUND);
	assert_int_equal(spool_log_name(r->s, fd, &r->run, &r->err), 0);
	assert_holds(spool_log_read(r->s, &r->run, &r->err), "text");
	spool_log_remove(r->s, &r->run);
	uuid_random(&other);
	assert_true(spool_log_name(r->s, fd, &other, &r->err) < 0);
	assert_int_equal(close(fd), 0);
}

TEST(a_nameless_log_is_empty_when_it_is_used_again)
{
	int fd = spool_log_fresh(r->s, &r->err);

	assert_int_equal(fd_write_all(fd, "secret", 6, &r->err), 0);
	spool_log_reuse(r->s, fd);
	fd = spool_log_fresh(r->s, &r->err);
	assert_int_equal(fd_write_all(fd, "x", 1, &r->err), 0);
	assert_int_equal(spool_log_name(r->s, fd, &r->run, &r->err), 0);
	assert_holds(spool_log_read(r->s, &r->run, &r->err), "x");
	assert_int_equal(close(fd), 0);
}

static int
used_log(struct spool_room *r)
{
	struct stat st;
	int fd = spool_log_fresh(r->s, &r->err);

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(fd_write_all(fd, "old", 3, &r->err), 0);
	return fd;
}

TEST(a_used_log_comes_back_empty_however_many_there_are)
{
	int fds[100];

	for (int round = 0; round < 4; round++) {
		for (size_t i = 0; i < ARRAY_LEN(fds); i++)
			fds[i] = used_log(r);
		for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
			spool_log_reuse(r->s, fds[i]);
			if (round % 2 == 0 && i % 10 == 0)
				spool_tidy(r->s);
		}
	}
}

TEST(what_is_tidied_is_used_first)
{
	int one = used_log(r), two = used_log(r), three;

	spool_log_reuse(r->s, one);
	spool_tidy(r->s);
	spool_log_reuse(r->s, two);
	assert_int_equal(used_log(r), one);
	three = used_log(r); /* the second is not empty yet */
	assert_int_not_equal(three, two);
	assert_int_equal(close(one), 0);
	assert_int_equal(close(three), 0);
}

TEST(what_nothing_was_written_to_need_not_be_tidied)
{
	int used = used_log(r), empty = spool_log_fresh(r->s, &r->err), fd;

	assert_true(empty >= 0);
	assert_true(spool_is_tidy(r->s));
	spool_log_reuse(r->s, used);
	assert_false(spool_is_tidy(r->s));
	spool_log_reuse(r->s, empty);
	assert_int_equal(spool_log_fresh(r->s, &r->err), empty);
	spool_log_reuse(r->s, empty);
	assert_false(spool_is_tidy(r->s));
	spool_tidy(r->s);
	assert_true(spool_is_tidy(r->s));
	for (int i = 0; i < 2; i++) {
		fd = used_log(r);
		assert_true(fd == empty || fd == used);
		assert_int_equal(close(fd), 0);
	}
}

TEST_MAIN(setup, teardown)
