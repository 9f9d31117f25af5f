#include "tests/unit/worker/fixture.h"
#include "tests/unit/world.h"
#include "tests/unit/common/frame_raw.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "worker/link/door.h"
#include "worker/link/linkdir.h"

#define BYTES_PER_S (8u << 20)

struct fixture {
	struct event_base *base;
	char data_dir[64];
	char path[160]; /* of the box's directory */
	struct linkdirs *dirs;
	struct carrier *carrier;
	int dir;
	struct link *link;
	struct door *door;
	unsigned int opens, frames, closes, turns;
	size_t frame_bytes;
	size_t turn_bytes; /* most in one turn */
	size_t in_turn;
	int close_code;
	bool opened, got_all, closed;
	size_t want;
	bool free_in_frame;
	bool answers; /* each frame, at once */
};
static struct fixture fix;

static void
on_open(void *arg)
{
	(void)arg;
	fix.opens++;
	fix.opened = true;
}

/* SAY_BYTES of a frame into what waits to be sent. */
#define SAY_BYTES 12
static void
say_something(struct link *l)
{
	size_t at = raw_begin(link_out(l), FRAME_WELCOME);

	wire_put_u32(link_out(l), 1);
	raw_end(link_out(l), at);
}

static int
on_frame(struct frame *f, void *arg, struct err *e)
{
	(void)arg;
	(void)e;
	fix.frames++;
	fix.frame_bytes += f->size;
	fix.in_turn += f->size;
	if (fix.answers) {
		say_something(fix.link);
		link_send(fix.link);
	}
	if (fix.free_in_frame) {
		fix.carrier->ops->close(fix.door);
		link_free(fix.link);
		fix.link = NULL;
		fix.door = NULL;
		fix.got_all = true;
	}
	if (fix.frame_bytes >= fix.want)
		fix.got_all = true;
	return 0;
}

static void
on_turn(void *arg)
{
	(void)arg;
	fix.turns++;
	if (fix.in_turn > fix.turn_bytes)
		fix.turn_bytes = fix.in_turn;
	fix.in_turn = 0;
}

static void
on_close(const struct err *why, void *arg)
{
	(void)arg;
	fix.closes++;
	fix.close_code = why->code;
	fix.closed = true;
}

static void
on_drain(void *arg)
{
	(void)arg;
}

static const struct link_user user = {
    on_open, on_frame, on_turn, on_close, on_drain};

static const struct uuid box = {{7}};

static void
expect(pid_t pid)
{
	const struct backend_container c = {.pid = pid};

	fix.carrier->ops->expect(fix.door, &c);
}

static int
setup(void **state)
{
	struct backend_wishes wishes = {.nmounts = 0};
	struct err e;

	(void)state;
	memset(&fix, 0, sizeof(fix));
	(void)snprintf(
	    fix.data_dir, sizeof(fix.data_dir), "/tmp/worker-unix-XXXXXX");
	assert_non_null(mkdtemp(fix.data_dir));
	fix.base = event_base_new();
	assert_int_equal(linkdirs_open(fix.data_dir, &fix.dirs, &e), 0);
	fix.carrier = door_carrier_new(fix.base, fix.dirs);
	assert_int_equal(
	    fix.carrier->ops->prepare(fix.carrier, &box, &wishes, &e), 0);
	(void)snprintf(
	    fix.path, sizeof(fix.path), "%.150s", wishes.mounts[0].source);
	fix.dir = open(fix.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fix.dir >= 0);
	fix.link = link_new(fix.base, BYTES_PER_S);
	link_set_user(fix.link, &user, NULL);
	assert_int_equal(fix.carrier->ops->listen(
			     fix.carrier, &box, fix.link, &fix.door, &e),
	    0);
	fix.want = SIZE_MAX;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	if (fix.door != NULL)
		fix.carrier->ops->close(fix.door);
	link_free(fix.link);
	fixture_settle(fix.base);
	event_base_free(fix.base);
	(void)close(fix.dir);
	fix.carrier->ops->forget(fix.carrier, &box);
	free(fix.carrier);
	linkdirs_close(fix.dirs);
	world_remove_dir(fix.data_dir);
	return 0;
}

static int
connect_to_it(void)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%.100s/%s", fix.path,
	    DOOR_SOCKET_NAME);
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) != 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

/* The agent's end of a link that is open. */
static int
open_it(void)
{
	int fd;

	expect(getpid());
	fd = connect_to_it();
	fixture_loop(fix.base, &fix.opened);
	return fd;
}

static void
write_all(int fd, const struct buf *b)
{
	assert_int_equal(
	    write(fd, buf_data(b), buf_len(b)), (ssize_t)buf_len(b));
}

static void
put_log(struct buf *b, size_t n)
{
	struct uuid run = {{5}};
	size_t at = raw_begin(b, FRAME_DATA);
	uint8_t *p;

	assert_int_equal(buf_append(b, run.b, sizeof(run.b)), 0);
	wire_put_u64(b, 0);
	p = buf_reserve(b, n);
	memset(p, 'a', n);
	buf_commit(b, n);
	raw_end(b, at);
}

/* A process of its own that writes n frames and closes. */
static pid_t
start_writer(int fd, unsigned int n, size_t size)
{
	struct buf b;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	buf_init(&b, 0);
	put_log(&b, size);
	for (unsigned int i = 0; i < n; i++)
		for (size_t at = 0; at < buf_len(&b);) {
			ssize_t k =
			    write(fd, buf_data(&b) + at, buf_len(&b) - at);

			if (k <= 0)
				_exit(1);
			at += (size_t)k;
		}
	_exit(0);
}

TEST(the_expected_process_is_let_in)
{
	int fd;

	expect(getpid());
	fd = connect_to_it();
	assert_true(fd >= 0);
	fixture_loop(fix.base, &fix.opened);
	assert_int_equal(fix.opens, 1);
	(void)close(fd);
}

TEST(nobody_is_let_in_before_it_is_known_who)
{
	int fd = connect_to_it();

	assert_true(fd >= 0); /* the backlog holds it */
	fixture_settle(fix.base);
	assert_int_equal(fix.opens, 0);
	expect(getpid());
	fixture_loop(fix.base, &fix.opened);
	(void)close(fd);
}

/* A process of that user, whose number is known before it connects. */
static pid_t
start_user(uid_t uid, int *go)
{
	int ends[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		if (setgid(uid) == -1 || setuid(uid) == -1 ||
		    chdir("/") == -1 || read(ends[0], &c, 1) != 1)
			_exit(3);
		_exit(connect_to_it() >= 0 ? 0 : errno == EACCES ? 1 : 2);
	}
	(void)close(ends[0]);
	*go = ends[1];
	return pid;
}

static int
let_go(pid_t pid, int go)
{
	int status;

	assert_int_equal(write(go, "g", 1), 1);
	(void)close(go);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void
await_user(pid_t pid, uid_t uid)
{
	char path[32];
	struct stat st = {0};

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	while (st.st_uid != uid)
		assert_int_equal(stat(path, &st), 0);
}

/* A sandbox's commands cannot crowd its agent out. */
TEST(only_root_may_connect_to_an_agent_of_root)
{
	int go;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(fix.data_dir, 0755), 0);
	expect(getpid());
	pid = start_user(1000, &go);
	assert_int_equal(let_go(pid, go), 1);
}

TEST(an_agent_that_is_no_root_here_may_connect_and_no_other)
{
	int go, stranger_go;
	pid_t agent, stranger;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(fix.data_dir, 0755), 0);
	agent = start_user(200000, &go);
	stranger = start_user(201000, &stranger_go);
	await_user(agent, 200000);
	expect(agent);
	assert_int_equal(let_go(stranger, stranger_go), 1);
	assert_int_equal(let_go(agent, go), 0);
}

TEST(another_process_is_closed_unread)
{
	bool reaped = false;
	int status = 0;
	pid_t pid;

	expect(getpid());
	pid = fork();
	if (pid == 0) {
		int fd = connect_to_it();
		char c;

		if (fd < 0)
			_exit(2);
		/* It may be closed before we have said a word. */
		if (send(fd, "xxxx", 4, MSG_NOSIGNAL) != 4)
			_exit(errno == EPIPE || errno == ECONNRESET ? 0 : 2);
		/* closed with bytes unread: an end or a reset */
		_exit(read(fd, &c, 1) <= 0 ? 0 : 1);
	}
	while (!reaped) {
		(void)event_base_loop(fix.base, EVLOOP_NONBLOCK);
		reaped = waitpid(pid, &status, WNOHANG) == pid;
	}
	assert_int_equal(status, 0);
	assert_int_equal(fix.opens, 0);
	assert_int_equal(fix.frames, 0);
}

TEST(frames_come_whole_whatever_the_pieces)
{
	struct buf b;
	int fd;

	fd = open_it();
	buf_init(&b, 0);
	put_log(&b, 100);
	put_log(&b, 3);
	fix.want = buf_len(&b);
	for (size_t i = 0; i < buf_len(&b); i++) {
		assert_int_equal(write(fd, buf_data(&b) + i, 1), 1);
		fixture_settle(fix.base);
	}
	assert_int_equal(fix.frames, 2);
	assert_true(fix.got_all);
	buf_clear(&b);
	(void)close(fd);
}

TEST(much_comes_whole_and_in_bounded_turns)
{
	int fd;
	pid_t pid;

	fd = open_it();
	pid = start_writer(fd, 200, FRAME_DATA_MAX);
	(void)close(fd);
	fixture_loop(fix.base, &fix.closed);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(fix.frames, 200);
	assert_true(fix.turn_bytes <= LINK_TURN_BYTES + 2 * FRAME_UP_MAX);
	assert_int_equal(fix.close_code, ERR_LOST);
}

/* Of DATA frames as they should be; all bytes are those of their offset. */
static int
on_data_frame(struct frame *f, void *arg, struct err *e)
{
	struct frame_data m;

	(void)arg;
	assert_int_equal(frame_get_data(f, &m, e), 0);
	assert_int_equal(m.chan, 3);
	assert_int_equal(m.offset, fix.frame_bytes);
	assert_in_range(m.bytes.n, 1, FRAME_DATA_MAX);
	for (size_t i = 0; i < m.bytes.n; i++)
		if (m.bytes.p[i] != (uint8_t)((m.offset + i) % 251))
			fail_msg("another byte at %llu",
			    (unsigned long long)(m.offset + i));
	fix.frame_bytes += m.bytes.n;
	fix.got_all = fix.frame_bytes == fix.want;
	return 0;
}

/* DATA of all bytes from 0 to end, in frames of different sizes, of which the
 * first n bytes are written. */
static void
put_stream(struct buf *b, uint64_t end)
{
	static uint8_t bytes[FRAME_DATA_MAX];

	for (uint64_t at = 0, n = 1; at < end; at += n) {
		struct frame_data m = {.chan = 3, .offset = at};

		n = n * 7 % FRAME_DATA_MAX + 1;
		if (n > end - at)
			n = end - at;
		for (size_t i = 0; i < n; i++)
			bytes[i] = (uint8_t)((at + i) % 251);
		m.bytes = (struct span){bytes, n};
		assert_int_equal(frame_put_data(b, &m), 0);
	}
}

TEST(data_is_passed_on_as_it_comes_and_no_byte_twice)
{
	static const struct link_user data_user = {
	    on_open, on_data_frame, on_turn, on_close, on_drain};
	struct buf b;
	size_t at = 0;
	int fd;

	link_set_user(fix.link, &data_user, NULL);
	fd = open_it();
	buf_init(&b, 0);
	fix.want = 5000000;
	put_stream(&b, fix.want);
	for (size_t step = 1; at < buf_len(&b); step = step * 5 % 150001) {
		size_t n = buf_len(&b) - at < step ? buf_len(&b) - at : step;
		ssize_t k = send(fd, buf_data(&b) + at, n, MSG_DONTWAIT);

		at += k > 0 ? (size_t)k : 0;
		(void)event_base_loop(fix.base, EVLOOP_NONBLOCK);
	}
	fixture_loop(fix.base, &fix.got_all);
	buf_clear(&b);
	(void)close(fd);
}

/* More than its budget comes, but not at once. */
TEST(a_link_that_says_much_is_read_slowly)
{
	uint64_t began = clock_mono_ms();
	int fd, status;
	pid_t pid;

	expect(getpid());
	fd = connect_to_it();
	fix.want = 2 * BYTES_PER_S;
	pid = start_writer(fd, 2 * BYTES_PER_S / 65536 + 1, 65536);
	(void)close(fd);
	fixture_loop(fix.base, &fix.got_all);
	assert_true(clock_mono_ms() - began >= 500);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

TEST(a_frame_too_long_ends_the_stream_as_a_lie)
{
	const uint32_t length = FRAME_UP_MAX;
	int fd;

	fd = open_it();
	assert_int_equal(write(fd, &length, sizeof(length)), sizeof(length));
	fixture_loop(fix.base, &fix.closed);
	assert_int_equal(fix.close_code, ERR_PROTO);
	(void)close(fd);
}

TEST(a_new_stream_replaces_the_old_one)
{
	int first, second;

	expect(getpid());
	first = connect_to_it();
	fixture_loop(fix.base, &fix.opened);
	second = connect_to_it();
	fixture_loop(fix.base, &fix.closed);
	assert_int_equal(fix.opens, 2);
	assert_int_equal(fix.closes, 1); /* of the first alone */
	(void)close(first);
	(void)close(second);
}

TEST(reading_stops_while_it_is_paused)
{
	struct buf b;
	int fd;

	fd = open_it();
	link_pause(fix.link);
	buf_init(&b, 0);
	put_log(&b, 10);
	fix.want = buf_len(&b);
	write_all(fd, &b);
	fixture_settle(fix.base);
	assert_int_equal(fix.frames, 0);
	link_resume(fix.link);
	fixture_loop(fix.base, &fix.got_all);
	buf_clear(&b);
	(void)close(fd);
}

TEST(it_can_be_freed_by_its_own_frame)
{
	struct buf b;
	int fd;

	fix.free_in_frame = true;
	fd = open_it();
	buf_init(&b, 0);
	put_log(&b, 10);
	put_log(&b, 10);
	write_all(fd, &b);
	fixture_loop(fix.base, &fix.got_all);
	fixture_settle(fix.base);
	assert_int_equal(fix.frames, 1);
	assert_int_equal(fix.turns, 0);
	buf_clear(&b);
	(void)close(fd);
}

TEST(what_is_sent_arrives_and_a_lost_reader_is_noticed)
{
	uint8_t got[64];
	int fd;

	fd = open_it();
	say_something(fix.link);
	link_send(fix.link);
	assert_int_equal(read(fd, got, sizeof(got)), SAY_BYTES);
	(void)close(fd);
	fixture_loop(fix.base, &fix.closed);
	assert_int_equal(fix.closes, 1);
}

/* The agent says something, and what that leads to is done. */
static void
hear_something(int fd)
{
	struct buf b;

	buf_init(&b, 0);
	put_log(&b, 10);
	fix.want = fix.frame_bytes + buf_len(&b);
	fix.got_all = false;
	write_all(fd, &b);
	fixture_loop(fix.base, &fix.got_all);
	fixture_settle(fix.base);
	buf_clear(&b);
}

static ssize_t
bytes_sent(int fd)
{
	uint8_t got[64];

	return recv(fd, got, sizeof(got), MSG_DONTWAIT);
}

/* What was sent before the moment was over for which it may wait. */
static ssize_t
sent_while_it_could_wait(int fd)
{
	for (;;) {
		uint64_t began = clock_mono_ms();
		ssize_t n;

		say_something(fix.link);
		link_send_soon(fix.link);
		hear_something(fd);
		n = bytes_sent(fd);
		if (clock_mono_ms() - began < LINK_SOON_MS)
			return n;
		/* This machine stood still: once more, from the beginning. */
		while (n == -1) {
			(void)event_base_loop(fix.base, EVLOOP_ONCE);
			n = bytes_sent(fd);
		}
	}
}

/* Else a CLOSE would wake the agent behind each end that is read. */
TEST(what_can_wait_goes_with_what_cannot_or_a_moment_later)
{
	ssize_t n;
	int fd;

	fd = open_it();
	assert_int_equal(sent_while_it_could_wait(fd), -1);
	fix.answers = true;
	hear_something(fd);
	assert_int_equal(bytes_sent(fd), 2 * SAY_BYTES);
	fix.answers = false;
	say_something(fix.link);
	link_send_soon(fix.link);
	while ((n = bytes_sent(fd)) == -1)
		(void)event_base_loop(fix.base, EVLOOP_ONCE);
	assert_int_equal(n, SAY_BYTES);
	(void)close(fd);
}

TEST(connecting_in_a_loop_shuts_the_door_for_a_moment)
{
	int fds[60];
	unsigned int before;

	expect(getpid());
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = connect_to_it();
	fixture_settle(fix.base);
	before = fix.opens;
	assert_true(before > 0 && before <= 51);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	while (fix.opens == before) /* and opens it again */
		(void)event_base_loop(fix.base, EVLOOP_ONCE);
}

TEST(a_path_longer_than_a_sockets_does)
{
	char path[200];
	struct linkdirs *dirs;
	struct carrier *other;
	struct door *door;
	struct err e;

	(void)snprintf(path, sizeof(path), "%s/%0100d", fix.data_dir, 1);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(linkdirs_open(path, &dirs, &e), 0);
	other = door_carrier_new(fix.base, dirs);
	assert_int_equal(
	    other->ops->listen(other, &box, fix.link, &door, &e), 0);
	other->ops->close(door);
	fixture_settle(fix.base);
	free(other);
	linkdirs_close(dirs);
}

TEST_MAIN(setup, teardown)
