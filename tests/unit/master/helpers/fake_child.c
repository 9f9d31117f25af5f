/*
 * fake_child - a stand-in for the front and the others, for tests of the
 * supervisor: a real child by common/child.h that does no work and can be
 * told to misbehave.  Copied beside mcp-sandboxd under the programs' names;
 * it is what its name says.
 *
 * MCP_SANDBOXD_TEST_DIR names a directory.  Each start reads how to behave
 * from the file front.mode, worker-N.mode, worker.mode ... in it (missing:
 * well); what happens is appended to the file "log" there as lines
 * "<role> <pid> <event> ...".
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <event2/event.h>

#include "common/child.h"
#include "common/log.h"

struct fake {
	struct event_base *base;
	struct child *child;
	char role[32]; /* "front", "worker-1" */
	char mode[64];
};

static struct fake fake;

static void fake_note(const struct fake *f, const char *fmt, ...) PRINTF(2, 3);

static const char *
test_dir(void)
{
	const char *dir = getenv("MCP_SANDBOXD_TEST_DIR");

	if (dir == NULL)
		fatal(70, "MCP_SANDBOXD_TEST_DIR is not set");
	return dir;
}

static void
fake_note(const struct fake *f, const char *fmt, ...)
{
	char path[4096], line[2048];
	va_list ap;
	int fd, n;

	n = snprintf(line, sizeof(line), "%s %d ", f->role, (int)getpid());
	va_start(ap, fmt);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	line[n++] = '\n';
	(void)snprintf(path, sizeof(path), "%s/log", test_dir());
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd == -1 || write(fd, line, (size_t)n) != n)
		fatal(70, "%s: cannot write", path);
	(void)close(fd);
}

static int
read_mode(const char *name, char *out, size_t size)
{
	char path[4096];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s.mode", test_dir(), name);
	file = fopen(path, "re");
	if (file == NULL)
		return -1;
	if (fgets(out, (int)size, file) == NULL)
		out[0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	(void)fclose(file);
	return 0;
}

static bool
fake_mode_is(const struct fake *f, const char *mode)
{
	return strcmp(f->mode, mode) == 0;
}

static void
note_descriptors(const struct fake *f)
{
	char text[1024] = "";
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *d;

	if (dir == NULL)
		fatal(70, "/proc/self/fd");
	for (int fd = 0; fd < 64; fd++) {
		rewinddir(dir);
		while ((d = readdir(dir)) != NULL)
			if (d->d_name[0] != '.' && atoi(d->d_name) == fd &&
			    fd != dirfd(dir))
				(void)snprintf(text + strlen(text),
				    sizeof(text) - strlen(text), " %d", fd);
	}
	(void)closedir(dir);
	fake_note(f, "fds%s", text);
}

static void
note_inheritance(const struct fake *f)
{
	mode_t mask = umask(0);
	sigset_t blocked;
	int death = 0;

	(void)umask(mask);
	(void)sigprocmask(SIG_SETMASK, NULL, &blocked);
	(void)prctl(PR_GET_PDEATHSIG, &death);
	for (char **p = environ; *p != NULL; p++)
		fake_note(f, "env %s", *p);
	fake_note(f, "umask %03o", (unsigned int)mask);
	fake_note(f, "term %s",
	    sigismember(&blocked, SIGTERM) != 0 ? "blocked" : "open");
	fake_note(f, "pdeathsig %d", death);
	fake_note(f, "nonewprivs %d", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	fake_note(f, "session %s", getsid(0) == getpid() ? "own" : "shared");
	fake_note(
	    f, "uid %u gid %u", (unsigned int)getuid(), (unsigned int)getgid());
}

/* HELLO of another version, which common/child.c cannot say. */
static NORETURN void
say_foreign_hello(enum msg_role role)
{
	struct ipc_out o;

	ipc_out_init(&o);
	ipc_out_put(&o, msg_codec(IPC_HELLO),
	    &(struct msg_hello){.version = IPC_VERSION + 1,
		.role = role,
		.pid = (uint32_t)getpid()});
	(void)send(CHILD_CTL_FD, buf_data(&o.b), buf_len(&o.b), 0);
	for (;;)
		(void)pause();
}

static NORETURN void
say_rubbish(void)
{
	(void)send(CHILD_CTL_FD, "rubbish", 7, 0);
	for (;;)
		(void)pause();
}

static void
fake_open(struct fake *f, const char *role, const char *role_mode)
{
	(void)snprintf(f->role, sizeof(f->role), "%s", role);
	note_descriptors(f);
	note_inheritance(f);
	if (read_mode(role, f->mode, sizeof(f->mode)) != 0)
		(void)read_mode(role_mode, f->mode, sizeof(f->mode));
	fake_note(f, "start %s", f->mode);
	if (fake_mode_is(f, "exit-at-once"))
		_exit(3);
	if (fake_mode_is(f, "foreign"))
		say_foreign_hello(strcmp(role, "front") == 0 ? MSG_ROLE_FRONT :
							       MSG_ROLE_WORKER);
	if (fake_mode_is(f, "rubbish"))
		say_rubbish();
}

static void
note_key(const struct fake *f, const struct conf *conf, const char *name,
    enum conf_key key)
{
	fake_note(f, "config %s=%s", name, conf_str(conf, key));
}

/* After READY has been sent: the next turn of the loop. */
static void
ready_cb(evutil_socket_t fd, short what, void *arg)
{
	struct fake *f = arg;

	(void)fd;
	(void)what;
	fake_note(f, "ready");
	if (fake_mode_is(f, "work"))
		child_counts(f->child, 1);
	if (fake_mode_is(f, "leave"))
		_exit(0);
	if (fake_mode_is(f, "crash"))
		_exit(70);
	if (fake_mode_is(f, "rubbish-later"))
		say_rubbish();
	if (fake_mode_is(f, "hang") || fake_mode_is(f, "hang-hard")) {
		if (fake_mode_is(f, "hang-hard"))
			(void)signal(SIGABRT, SIG_IGN);
		for (;;)
			(void)pause();
	}
}

static void
fake_ready_later(struct fake *f)
{
	static const struct timeval now = {0, 0};

	if (event_base_once(f->base, -1, EV_TIMEOUT, ready_cb, f, &now) == -1)
		fatal(70, "no timer");
}

/* Says that it goes on: until the file "go" is there, or for ever. */
static void
go_on(const struct fake *f)
{
	static const struct timespec pause_between = {.tv_nsec = 20000000};
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/go", test_dir());
	for (unsigned int n = 0;
	     fake_mode_is(f, "endless") || access(path, F_OK) == -1; n++) {
		child_still_starting(f->child);
		if (n == 300)
			fake_note(f, "slow");
		(void)nanosleep(&pause_between, NULL);
	}
}

static int
fake_config(struct fake *f, const struct conf *conf, struct err *e)
{
	note_key(f, conf, "DATA_DIR", CONF_DATA_DIR);
	note_key(f, conf, "INSTANCE", CONF_INSTANCE);
	note_key(f, conf, "SANDBOX_IMAGE", CONF_SANDBOX_IMAGE);
	fake_note(f, "config PORT=%lld", (long long)conf_int(conf, CONF_PORT));
	if (strncmp(f->mode, "exit ", 5) == 0) {
		(void)err_set(e, ERR_SYS, "told to end with %s", f->mode + 5);
		return atoi(f->mode + 5);
	}
	if (fake_mode_is(f, "mute"))
		for (;;)
			(void)pause();
	if (fake_mode_is(f, "slow") || fake_mode_is(f, "endless"))
		go_on(f);
	fake_ready_later(f);
	return 0;
}

static void
fake_reload(const struct conf *conf, void *arg)
{
	struct fake *f = arg;

	fake_note(f, "reload DRAIN_TIMEOUT_MS=%lld level=%d",
	    (long long)conf_int(conf, CONF_DRAIN_TIMEOUT_MS),
	    (int)log_get_level());
}

static void
fake_drain(uint32_t left_ms, void *arg)
{
	struct fake *f = arg;

	fake_note(f, "drain %u", left_ms);
	if (!fake_mode_is(f, "stubborn"))
		_exit(0);
}

static int
on_config(struct child *c, const struct conf *conf, void *arg, struct err *e)
{
	(void)c;
	return fake_config(arg, conf, e);
}

static void
accept_cb(evutil_socket_t fd, short what, void *arg)
{
	char text[32];
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	(void)what;
	(void)arg;
	if (client == -1)
		return;
	(void)snprintf(text, sizeof(text), "front %d\n", (int)getpid());
	(void)send(client, text, strlen(text), MSG_NOSIGNAL);
	(void)close(client);
}

static void
on_listen(int fd, const char *address, void *arg)
{
	struct event *event =
	    event_new(fake.base, fd, EV_READ | EV_PERSIST, accept_cb, NULL);

	fake_note(arg, "listen %s", address);
	if (event == NULL || event_add(event, NULL) == -1)
		fatal(70, "no event");
}

static void
front_on_peer(uint32_t index, uint32_t generation, int fd, void *arg)
{
	fake_note(arg, "peer %u %u", index, generation);
	(void)send(fd, &generation, sizeof(generation), MSG_NOSIGNAL);
}

static void
on_peer_gone(uint32_t index, uint32_t delay_ms, bool throttled, void *arg)
{
	fake_note(arg, "gone %u %u %d", index, delay_ms, throttled);
}

static void
on_peer_quiet(uint32_t index, bool quiet, void *arg)
{
	fake_note(arg, "quiet %u %d", index, quiet);
}

static const struct child_ops front_ops = {.on_config = on_config,
    .on_reload = fake_reload,
    .on_listen = on_listen,
    .on_peer = front_on_peer,
    .on_peer_gone = on_peer_gone,
    .on_peer_quiet = on_peer_quiet,
    .on_drain = fake_drain};

static void
peer_cb(evutil_socket_t fd, short what, void *arg)
{
	uint32_t generation = 0;
	ssize_t n = recv(fd, &generation, sizeof(generation), 0);

	(void)what;
	if (n > 0) {
		fake_note(arg, "heard %u", generation);
		return;
	}
	fake_note(arg, "front-gone");
	if (!fake_mode_is(&fake, "faithless"))
		_exit(0);
	for (;;)
		(void)pause();
}

static void
worker_on_peer(uint32_t index, uint32_t generation, int fd, void *arg)
{
	struct event *event =
	    event_new(fake.base, fd, EV_READ | EV_PERSIST, peer_cb, arg);

	fake_note(arg, "peer %u %u", index, generation);
	if (event == NULL || event_add(event, NULL) == -1)
		fatal(70, "no event");
}

static const struct child_ops worker_ops = {.on_config = on_config,
    .on_reload = fake_reload,
    .on_peer = worker_on_peer,
    .on_drain = fake_drain};

int
main(int argc, char **argv)
{
	/* The worker is the last: any name. */
	static const struct {
		const char *name;
		enum msg_role role;
		uint32_t index;
	} roles[] = {{"front", MSG_ROLE_FRONT, 0},
	    {"keys", MSG_ROLE_KEYS, CHILD_KEYS_INDEX},
	    {"courier", MSG_ROLE_COURIER, CHILD_COURIER_INDEX},
	    {"worker", MSG_ROLE_WORKER, 0}};
	const char *program = strrchr(argv[0], '/');
	uint32_t index;
	char role[32];
	size_t at = 0;
	bool is_worker;

	if (argc >= 2 && strcmp(argv[1], "check") == 0)
		return 0; /* --check-config: all is well */
	while (at < ARRAY_LEN(roles) - 1 &&
	    strstr(program == NULL ? argv[0] : program, roles[at].name) == NULL)
		at++;
	is_worker = roles[at].role == MSG_ROLE_WORKER;
	if (argc != (is_worker ? 2 : 1))
		fatal(64, "want %s", is_worker ? "an index" : "no argument");
	index = is_worker ? (uint32_t)atoi(argv[1]) : roles[at].index;
	(void)snprintf(role, sizeof(role), is_worker ? "worker-%s" : "%s",
	    is_worker ? argv[1] : roles[at].name);
	fake_open(&fake, role, roles[at].name);
	fake.base = event_base_new();
	if (fake.base == NULL)
		fatal(70, "no loop");
	fake.child = child_start(fake.base, roles[at].role, index,
	    at == 0 ? &front_ops : &worker_ops, &fake);
	(void)event_base_dispatch(fake.base);
	return 98;
}
