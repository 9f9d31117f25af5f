#include "common/envoy.h"

#include <sys/stat.h>
#include <errno.h>

#include <event2/event.h>

#include "common/confine.h"
#include "common/exit.h"
#include "common/fence.h"
#include "common/log.h"
#include "common/msg/chan.h"
#include "common/timer.h"
#include "common/turns.h"
#include "common/xmalloc.h"

#define LOOK_MS 5000
#define BUSY_LOOKS 6 /* then it leaves all the same */

/* What names and certificates are looked up in. */
static const char *const usual[] = {"/etc/resolv.conf", "/etc/hosts",
    "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services",
    "/run/systemd/resolve", "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates", "/etc/pki"};

struct watched_file { /* as it was before the fence */
	char *path;
	dev_t dev; /* with ino 0: it was missing */
	ino_t ino;
};

struct envoy {
	struct event_base *base;
	struct child *child;
	const struct envoy_ops *ops;
	void *arg;
	struct ipc_chan *front; /* NULL: not yet */
	uint32_t done;
	struct watched_file watched[ARRAY_LEN(usual) + ENVOY_FILES_MAX];
	size_t nwatched;
	struct timer *look;
	unsigned int busy_looks;
};

static struct envoy envoy; /* there is one in a process */

/* ---- the front */

static int
message_cb(struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	const struct envoy *v = arg;

	(void)c;
	return v->ops->on_message(m, v->arg, e);
}

static NORETURN void
leave(void)
{
	log_info("exit");
	_exit(0);
}

static void
close_cb(struct ipc_chan *c, const struct err *why, void *arg)
{
	struct envoy *v = arg;

	(void)c;
	if (why->code == ERR_PROTO)
		child_die(v->child, EXIT_PROTO, "front: %s", why->msg);
	leave();
}

static const struct ipc_ops front_ops = {message_cb, close_cb, NULL};

static void
on_peer(uint32_t index, uint32_t generation, int fd, void *arg)
{
	struct envoy *v = arg;

	(void)index;
	(void)generation;
	if (v->front != NULL)
		child_die(
		    v->child, EXIT_PROTO, "a second channel to the front");
	v->front = ipc_chan_new(v->base, fd, "front", &front_ops, v);
	v->ops->on_front(v->front, v->arg);
}

/* ---- life */

/* ERR_INVAL names the first that cannot be read. */
static int
check_files(const struct envoy_ops *ops, const struct conf *conf, struct err *e)
{
	for (const struct envoy_file *f = ops->files; f->key != NULL; f++) {
		const char *path = conf_str(conf, f->name);

		if (path[0] != '\0' && access(path, R_OK) != 0)
			return err_set(e, ERR_INVAL,
			    "%s: %.200s: %s, as the user of %s", f->key, path,
			    strerror(errno), ops->run_as);
	}
	return 0;
}

static void
watch(struct envoy *v, const char *path)
{
	struct watched_file *w = &v->watched[v->nwatched];
	struct stat st;

	if (path[0] == '\0' || v->nwatched == ARRAY_LEN(v->watched))
		return;
	*w = (struct watched_file){.path = xstrdup(path)};
	if (stat(path, &st) == 0) {
		w->dev = st.st_dev;
		w->ino = st.st_ino;
	}
	v->nwatched++;
}

/* Landlock's rules are of inodes: a file that was put in the place of another
 * cannot be read by this process, but by the next one. */
static const char *
find_replaced(const struct envoy *v)
{
	for (size_t i = 0; i < v->nwatched; i++) {
		const struct watched_file *w = &v->watched[i];
		struct stat st;

		if (stat(w->path, &st) == 0 &&
		    (st.st_dev != w->dev || st.st_ino != w->ino))
			return w->path;
	}
	return NULL;
}

static void
look_cb(void *arg)
{
	struct envoy *v = arg;
	const char *path = find_replaced(v);
	bool is_busy = v->ops->is_busy != NULL && v->ops->is_busy(v->arg);

	if (path != NULL && (!is_busy || ++v->busy_looks > BUSY_LOOKS)) {
		log_info("%s was replaced: start anew to read it", path);
		leave();
	}
	timer_set_ms(v->look, LOOK_MS);
}

static int
raise_fence(struct envoy *v, const struct conf *conf, struct err *e)
{
	struct fence_gate gates[1 + ARRAY_LEN(v->watched)];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		watch(v, usual[i]);
	for (const struct envoy_file *f = v->ops->files; f->key != NULL; f++)
		watch(v, conf_str(conf, f->name));
	gates[n++] = (struct fence_gate){NULL, FENCE_TCP};
	for (size_t i = 0; i < v->nwatched; i++)
		gates[n++] =
		    (struct fence_gate){v->watched[i].path, FENCE_READ};
	return fence_raise(gates, n, e);
}

static int
on_config(struct child *c, const struct conf *conf, void *arg, struct err *e)
{
	struct envoy *v = arg;

	v->child = c;
	if (check_files(v->ops, conf, e) != 0)
		return EXIT_CONFIG;
	if (raise_fence(v, conf, e) != 0)
		return EXIT_PRIVILEGE;
	if (v->ops->on_open(v->base, conf, v->arg, e) != 0)
		return EXIT_CONFIG;
	v->look = timer_new(v->base, look_cb, v);
	timer_set_ms(v->look, LOOK_MS);
	return confine(CONFINE_ENVOY, e) == 0 ? 0 : EXIT_PRIVILEGE;
}

static void
on_drain(uint32_t left_ms, void *arg)
{
	(void)left_ms;
	(void)arg;
	leave();
}

static const struct child_ops child_ops = {
    .on_config = on_config, .on_peer = on_peer, .on_drain = on_drain};

void
envoy_worked(void)
{
	child_counts(envoy.child, ++envoy.done);
}

static int
check(const struct envoy *v)
{
	struct conf *conf = conf_new();
	int status = 0;
	struct err e;

	log_set_level(LOG_WARN);
	if (conf_load_env(conf, &e) != 0 ||
	    check_files(v->ops, conf, &e) != 0 ||
	    v->ops->on_check(v->base, conf, &e) != 0) {
		log_error("%s", e.msg);
		status = EXIT_CONFIG;
	}
	conf_free(conf);
	event_base_free(v->base);
	return status;
}

int
envoy_main(int argc, char **argv, enum msg_role role, uint32_t index,
    const struct envoy_ops *ops, void *arg)
{
	static char name[CHILD_NAME_MAX];

	child_name(role, index, name);
	log_init(name);
	envoy =
	    (struct envoy){.base = event_base_new(), .ops = ops, .arg = arg};
	if (envoy.base == NULL)
		fatal(EXIT_MEMORY, "no event base");
	if (argc == 2 && strcmp(argv[1], "check") == 0)
		return check(&envoy);
	(void)child_start(envoy.base, role, index, &child_ops, &envoy);
	(void)!turns_run(envoy.base);
	fatal(EXIT_BUG, "the loop has ended");
}
