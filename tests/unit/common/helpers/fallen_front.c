/*
 * fallen_front - a front that was taken over, for tests/integration/
 * test_fallen_front.py
 *
 * Started by the real supervisor in the front's place, it confines itself as
 * the front does, waits until DATA_DIR/front/facts is there (lines "key
 * value"), tries whatever should not work, and says in DATA_DIR/front/report
 * what did: lines "held NAME WHY" or "BROKE NAME".  Then it asks a worker for
 * what it should not give, and in the end, told so, executes a program.
 *
 * As "fallen_front --bare FACTS REPORT", it does only what its user may do
 * without any filter: then users and modes alone have to hold.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <event2/event.h>

#include "common/child.h"
#include "common/confine.h"
#include "common/exit.h"
#include "common/fd.h"
#include "common/fence.h"
#include "common/layout.h"
#include "common/log.h"
#include "common/msg/chan.h"
#include "common/timer.h"
#include "common/xmalloc.h"

#define LOOK_MS 20
#define FACTS_MAX 65536

struct fallen {
	struct event_base *base;
	struct timer *look;
	struct ipc_chan *worker;
	bool has_engine; /* the worker said so */
	char *dir;       /* DATA_DIR/front */
	char *facts;     /* the file's text */
	FILE *report;
	int listener;
};

static struct fallen fallen = {.listener = -1};

/* ---- what it knows */

static const char *
fact(const char *key)
{
	static char values[8][512];
	static size_t next;
	char *value = values[next++ % ARRAY_LEN(values)];
	size_t n = strlen(key);

	for (const char *p = fallen.facts; p != NULL && *p != '\0';) {
		const char *end = strchr(p, '\n');

		if (strncmp(p, key, n) == 0 && p[n] == ' ' && end != NULL) {
			(void)snprintf(value, sizeof(values[0]), "%.*s",
			    (int)(end - p - (ptrdiff_t)n - 1), p + n + 1);
			return value;
		}
		p = end == NULL ? NULL : end + 1;
	}
	fatal(EXIT_BUG, "no fact %s", key);
}

static pid_t
fact_pid(const char *key)
{
	return (pid_t)strtol(fact(key), NULL, 10);
}

static const char *
under(const char *key, const char *name)
{
	static char paths[4][1024];
	static size_t next;
	char *path = paths[next++ % ARRAY_LEN(paths)];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", fact(key), name);
	return path;
}

/* ---- tries: 0 and more is a success, which must not be */

static int
try_rename_links(void)
{
	return rename(fact("links"), under("data", "links.was"));
}
static int
try_rename_itself(void)
{
	return rename(fact("front"), under("data", "front.was"));
}
static int
try_rename_data(void)
{
	return rename(fact("data"), under("parent", "data.was"));
}
static int
try_exchange_links(void)
{
	return (int)syscall(SYS_renameat2, AT_FDCWD, fact("front"), AT_FDCWD,
	    fact("links"), 2 /* RENAME_EXCHANGE */);
}
static int
try_make_in_data(void)
{
	return mkdir(under("data", "new"), 0700);
}
static int
try_link_in_data(void)
{
	return symlink("/etc", under("data", "way-out"));
}
static int
try_plant_link(void)
{
	return symlink(fact("front"), under("links", fact("uuid")));
}
static int
try_plant_directory(void)
{
	return mkdir(under("links", fact("uuid")), 0777);
}
static int
try_take_agent_of_sandbox(void)
{
	return unlink(under("box", "agent"));
}
static int
connect_to(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	return fd == -1 ? -1 : connect(fd, (struct sockaddr *)&sa, sizeof(sa));
}
static int
try_engine_socket(void)
{
	return connect_to(fact("engine"));
}
static int
try_take_worker(void)
{
	return unlink(fact("worker_program"));
}

static int
try_ptrace_worker(void)
{
	return (int)ptrace(PTRACE_SEIZE, fact_pid("worker"), NULL, NULL);
}
static int
try_ptrace_supervisor(void)
{
	return (int)ptrace(PTRACE_SEIZE, fact_pid("supervisor"), NULL, NULL);
}
static int
try_read_worker(void)
{
	char byte;
	struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};

	return (int)process_vm_readv(
	    fact_pid("worker"), &here, 1, &there, 1, 0);
}
static int
try_kill_worker(void)
{
	return kill(fact_pid("worker"), 0);
}
static int
try_kill_supervisor(void)
{
	return kill(fact_pid("supervisor"), 0);
}
static int
try_signal_worker_by_descriptor(void)
{
	int fd = (int)syscall(SYS_pidfd_open, fact_pid("worker"), 0);

	return fd == -1 ? -1 :
			  (int)syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0);
}
static int
try_descriptor_of_worker(void)
{
	int fd = (int)syscall(SYS_pidfd_open, fact_pid("worker"), 0);

	return fd == -1 ? -1 : (int)syscall(SYS_pidfd_getfd, fd, 3, 0);
}
static int
try_limits_of_worker(void)
{
	struct rlimit l;

	return prlimit(fact_pid("worker"), RLIMIT_NOFILE, NULL, &l);
}
static int
try_priority_of_worker(void)
{
	return setpriority(PRIO_PROCESS, (id_t)fact_pid("worker"), 19);
}

static int
try_root(void)
{
	return setuid(0);
}
static int
try_worker_id(void)
{
	uid_t uid = (uid_t)strtoul(fact("worker_uid"), NULL, 10);

	return setresuid(uid, uid, uid);
}
static int
try_root_group(void)
{
	return setgid(0);
}
static int
try_groups(void)
{
	gid_t gid = (gid_t)strtoul(fact("engine_gid"), NULL, 10);

	return (int)syscall(SYS_setgroups, 1, &gid);
}
static int
try_mount(void)
{
	return mount("none", fact("front"), "tmpfs", 0, NULL);
}
static int
try_bind_mount(void)
{
	return mount("/", fact("front"), NULL, MS_BIND, NULL);
}
static int
try_chroot(void)
{
	return chroot(fact("front"));
}
static int
try_mount_namespace(void)
{
	return unshare(CLONE_NEWNS);
}
static int
try_handle(void)
{
	struct file_handle h = {.handle_bytes = 0};

	return open_by_handle_at(AT_FDCWD, &h, O_RDONLY);
}
static int
try_device(void)
{
	return mknod(under("front", "mem"), S_IFCHR | 0600, (1 << 8) | 1);
}

/* From here on: what only the filter and Landlock stop. */

static int
try_user_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}
static int
try_fork(void)
{
	return fork();
}
static int
try_thread_in_namespace(void)
{
	return (int)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
}
static int
try_io_uring(void)
{
	char params[256] = {0};

	return (int)syscall(SYS_io_uring_setup, 4, params);
}
static int
try_bpf(void)
{
	return (int)syscall(SYS_bpf, 0, NULL, 0);
}
static int
try_keys(void)
{
	return (int)syscall(SYS_add_key, "user", "x", "y", 1, -4);
}
static int
try_userfaultfd(void)
{
	return (int)syscall(SYS_userfaultfd, O_CLOEXEC);
}
static int
try_perf(void)
{
	return (int)syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0);
}
static int
try_link_of_others(void)
{
	return link(fact("readable"), under("front", "readable"));
}
static int
try_link_at_home(void)
{
	return symlink("/", under("front", "root"));
}
static int
try_set_id_program(void)
{
	return chmod(fact("report"), 04755);
}
static int
try_to_be_debugged(void)
{
	return syscall(SYS_prctl, 4 /* PR_SET_DUMPABLE */, 1, 0, 0, 0) == 0 ?
	    0 :
	    -1;
}

static int
any_socket(const int *families, size_t n)
{
	static const int types[] = {
	    SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET};

	for (size_t i = 0; i < n; i++)
		for (size_t t = 0; t < ARRAY_LEN(types); t++) {
			int fd = socket(families[i], types[t], 0);

			if (fd >= 0)
				return fd;
		}
	return -1;
}
static int
try_sockets(void)
{
	static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK,
	    AF_PACKET, AF_VSOCK, AF_ALG, AF_BLUETOOTH, AF_TIPC, AF_KEY};

	return any_socket(families, ARRAY_LEN(families));
}
static int
try_pair(void)
{
	int fds[2];

	return socketpair(AF_UNIX, SOCK_DGRAM, 0, fds);
}
/* The last of these: the listening socket is the supervisor's too. */
static int
try_listener_as_client(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)strtoul(fact("tcp"), NULL, 10)),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr *sa = (const struct sockaddr *)&to;
	struct msghdr mh = {.msg_name = &to, .msg_namelen = sizeof(to)};

	(void)shutdown(fallen.listener, SHUT_RDWR);
	if (connect(fallen.listener, sa, sizeof(to)) == 0)
		return 0;
	if (sendto(fallen.listener, "x", 1, MSG_FASTOPEN, sa, sizeof(to)) >= 0)
		return 0;
	return (int)sendmsg(fallen.listener, &mh, MSG_FASTOPEN);
}

struct fallen_try {
	const char *name;
	int (*run)(void); /* NULL: open it */
	const char *key, *below;
	int flags;
};
#define TRY(name)                                                              \
	{                                                                      \
#name, try_##name, NULL, NULL, 0                               \
	}
/* The path of a fact, and below it; of a fact "/KEY", which is a pid, below its
 * directory in /proc; without a fact, below is the path. */
#define OPEN(name, key, below, flags)                                          \
	{                                                                      \
#name, NULL, key, below, flags                                 \
	}
/* Users and modes hold these. */
static const struct fallen_try bare_tries[] = {TRY(rename_links),
    TRY(rename_itself), TRY(rename_data), TRY(exchange_links),
    TRY(make_in_data), TRY(link_in_data), TRY(plant_link), TRY(plant_directory),
    OPEN(list_links, "links", NULL, O_RDONLY | O_DIRECTORY),
    OPEN(write_agent_of_sandbox, "box", "agent", O_WRONLY),
    TRY(take_agent_of_sandbox),
    OPEN(put_in_sandbox_directory, "box", "new", O_WRONLY | O_CREAT),
    TRY(engine_socket), OPEN(read_secret, "secret", NULL, O_RDONLY),
    OPEN(write_of_others, "readable", NULL, O_WRONLY),
    OPEN(write_worker, "worker_program", NULL, O_WRONLY), TRY(take_worker),
    OPEN(write_agent, "agent_program", NULL, O_WRONLY),
    OPEN(shadow, NULL, "/etc/shadow", O_RDONLY),
    OPEN(worker_memory, "/worker", "mem", O_RDWR),
    OPEN(worker_descriptors, "/worker", "fd", O_RDONLY | O_DIRECTORY),
    OPEN(worker_environment, "/worker", "environ", O_RDONLY),
    OPEN(supervisor_memory, "/supervisor", "mem", O_RDWR),
    OPEN(supervisor_descriptors, "/supervisor", "fd", O_RDONLY | O_DIRECTORY),
    TRY(ptrace_worker), TRY(ptrace_supervisor), TRY(read_worker),
    TRY(kill_worker), TRY(kill_supervisor), TRY(signal_worker_by_descriptor),
    TRY(descriptor_of_worker), TRY(limits_of_worker), TRY(priority_of_worker),
    TRY(root), TRY(worker_id), TRY(root_group), TRY(groups), TRY(mount),
    TRY(bind_mount), TRY(chroot), TRY(mount_namespace), TRY(handle),
    TRY(device)};
/* The filter and Landlock hold these. */
static const struct fallen_try filter_tries[] = {TRY(sockets), TRY(pair),
    TRY(user_namespace), TRY(fork), TRY(thread_in_namespace), TRY(io_uring),
    TRY(bpf), TRY(keys), TRY(userfaultfd), TRY(perf), TRY(link_of_others),
    OPEN(read_of_others, "readable", NULL, O_RDONLY),
    OPEN(passwd, NULL, "/etc/passwd", O_RDONLY),
    OPEN(tmp, NULL, "/tmp", O_TMPFILE | O_RDWR),
    OPEN(shared_memory, NULL, "/dev/shm", O_TMPFILE | O_RDWR),
    TRY(link_at_home), TRY(set_id_program), TRY(to_be_debugged),
    TRY(listener_as_client)};

static int
try_open(const struct fallen_try *t)
{
	char path[1024];

	if (t->key == NULL)
		return open(t->below, t->flags, 0600);
	if (t->key[0] == '/')
		(void)snprintf(path, sizeof(path), "/proc/%d/%s",
		    (int)fact_pid(t->key + 1), t->below);
	else
		(void)snprintf(path, sizeof(path), "%s%s%s", fact(t->key),
		    t->below == NULL ? "" : "/",
		    t->below == NULL ? "" : t->below);
	return open(path, t->flags, 0600);
}

static void
run_tries(const struct fallen_try *tries, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int rc;

		errno = 0;
		rc =
		    tries[i].run != NULL ? tries[i].run() : try_open(&tries[i]);
		if (rc >= 0)
			(void)fprintf(
			    fallen.report, "BROKE %s\n", tries[i].name);
		else
			(void)fprintf(fallen.report, "held %s %s\n",
			    tries[i].name, strerrorname_np(errno));
	}
	(void)fflush(fallen.report);
}

/* ---- what it asks of a worker */

/* A box of its own, for a uuid and a name of its choice; one of somebody else
 * to take over and to remove. */
static void
ask_worker(void)
{
	struct msg_sandbox_open open = {.id = 1,
	    .mode = MSG_OPEN_MODE_CREATE,
	    .tenant = 1,
	    .tenant_name = "1",
	    .identifier = "fallen",
	    .generation = 1,
	    .name = fact("name"),
	    .image = "",
	    .runtime = "",
	    .container_id = ""};
	struct msg_sandbox_remove remove = {
	    .id = 3, .tenant_name = "1", .name = fact("foreign")};

	if (uuid_parse(fact("uuid"), &open.uuid) != 0 ||
	    uuid_parse(fact("foreign_uuid"), &remove.uuid) != 0)
		fatal(EXIT_BUG, "no UUIDs");
	msg_send_sandbox_open(fallen.worker, &open);
	open.id = 2;
	open.mode = MSG_OPEN_MODE_ADOPT;
	open.uuid = remove.uuid;
	open.name = fact("foreign");
	open.container_id = fact("foreign_id");
	msg_send_sandbox_open(fallen.worker, &open);
	msg_send_sandbox_remove(fallen.worker, &remove);
}

static void
note(const char *what, uint64_t id, const char *text)
{
	(void)fprintf(
	    fallen.report, "%s %llu %s\n", what, (unsigned long long)id, text);
	(void)fflush(fallen.report);
}
static int
on_ready(void *arg, const struct msg_sandbox_ready *m, struct err *e)
{
	(void)arg;
	(void)e;
	note("ready", m->id, m->container_id);
	return 0;
}
static int
on_failed(void *arg, const struct msg_sandbox_failed *m, struct err *e)
{
	(void)arg;
	(void)e;
	note("failed", m->id, m->text);
	return 0;
}
static int
on_lost(void *arg, const struct msg_sandbox_lost *m, struct err *e)
{
	(void)arg;
	(void)e;
	note("lost", m->id, "");
	return 0;
}
static int
on_removed(void *arg, const struct msg_sandbox_removed *m, struct err *e)
{
	(void)arg;
	(void)e;
	note("removed", m->id, m->text);
	return 0;
}
static int
on_state(void *arg, const struct msg_worker_state *m, struct err *e)
{
	(void)arg;
	(void)e;
	fallen.has_engine = m->engine_up; /* no sandbox before */
	return 0;
}
static int
on_engine(void *arg, const struct msg_engine_is *m, struct err *e)
{
	(void)arg;
	(void)m;
	(void)e;
	return 0;
}
static int
on_carrier(void *arg, const struct msg_carrier_is *m, struct err *e)
{
	(void)arg;
	(void)m;
	(void)e;
	return 0;
}
static int
on_figures(void *arg, const struct msg_worker_figures *m, struct err *e)
{
	(void)arg;
	(void)m;
	(void)e;
	return 0;
}
static const struct msg_worker_to_front answers = {.on_worker_state = on_state,
    .on_engine_is = on_engine,
    .on_carrier_is = on_carrier,
    .on_worker_figures = on_figures,
    .on_sandbox_ready = on_ready,
    .on_sandbox_failed = on_failed,
    .on_sandbox_lost = on_lost,
    .on_sandbox_removed = on_removed};

static int
message_cb(struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	(void)c;
	return msg_dispatch_worker_to_front(&answers, m, arg, e);
}
static void
close_cb(struct ipc_chan *c, const struct err *why, void *arg)
{
	(void)c;
	(void)arg;
	fatal(EXIT_PROTO, "worker: %s", why != NULL ? why->msg : "gone");
}
static const struct ipc_ops worker_ops = {message_cb, close_cb, NULL};

/* ---- in the front's place */

static bool
take_facts(const char *path)
{
	size_t n;

	return fd_read_file(path, FACTS_MAX, &fallen.facts, &n, NULL) == 0;
}

static FILE *
open_report(const char *path)
{
	FILE *f = fopen(path, "we");

	if (f == NULL)
		fatal(EXIT_BUG, "%s: %s", path, strerror(errno));
	return f;
}

static void
look_cb(void *arg)
{
	AUTO(auto_free) char *facts = xasprintf("%s/facts", fallen.dir);
	AUTO(auto_free) char *report = xasprintf("%s/report", fallen.dir);
	AUTO(auto_free) char *end = xasprintf("%s/exec", fallen.dir);
	char *argv[] = {NULL, NULL};

	(void)arg;
	if (fallen.facts == NULL && fallen.has_engine && fallen.listener >= 0 &&
	    take_facts(facts)) {
		(void)unlink(facts); /* a front after us tries nothing */
		fallen.report = open_report(report);
		run_tries(bare_tries, ARRAY_LEN(bare_tries));
		run_tries(filter_tries, ARRAY_LEN(filter_tries));
		note("tried", 0, "");
		ask_worker();
	}
	if (unlink(end) == 0) {
		(void)execve("/bin/true", argv, argv);
		note("BROKE", 0, "exec did not end it");
	}
	timer_set_ms(fallen.look, LOOK_MS);
}

/* As the front does it, in its order. */
static int
on_config(struct child *c, const struct conf *conf, void *arg, struct err *e)
{
	struct fence_gate gate = {NULL, FENCE_OWN};

	(void)c;
	(void)arg;
	fallen.dir =
	    xasprintf("%s/" LAYOUT_FRONT, conf_str(conf, CONF_DATA_DIR));
	gate.path = fallen.dir;
	if (fence_raise(&gate, 1, e) != 0 || confine(CONFINE_FRONT, e) != 0)
		return EXIT_PRIVILEGE;
	return 0;
}
static void
on_listen(int fd, const char *address, void *arg)
{
	(void)address;
	(void)arg;
	fallen.listener = fd;
}
static void
on_peer(uint32_t index, uint32_t generation, int fd, void *arg)
{
	(void)generation;
	(void)arg;
	if (index != 0 || fallen.worker != NULL)
		(void)close(fd);
	else
		fallen.worker =
		    ipc_chan_new(fallen.base, fd, "worker", &worker_ops, NULL);
}
static NORETURN void
on_drain(uint32_t left_ms, void *arg)
{
	(void)left_ms;
	(void)arg;
	_exit(0);
}
static const struct child_ops ops = {.on_config = on_config,
    .on_listen = on_listen,
    .on_peer = on_peer,
    .on_drain = on_drain};

int
main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--bare") == 0) {
		if (!take_facts(argv[2]))
			fatal(EXIT_USAGE, "no facts in %s", argv[2]);
		fallen.report = open_report(argv[3]);
		run_tries(bare_tries, ARRAY_LEN(bare_tries));
		return 0;
	}
	log_init("front");
	fallen.base = event_base_new();
	if (fallen.base == NULL)
		fatal(EXIT_BUG, "no event base");
	fallen.look = timer_new(fallen.base, look_cb, NULL);
	timer_set_ms(fallen.look, LOOK_MS);
	(void)child_start(fallen.base, MSG_ROLE_FRONT, 0, &ops, NULL);
	(void)event_base_dispatch(fallen.base);
	fatal(EXIT_BUG, "the loop has ended");
}
