#include "supervisor/master/users.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/fence.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define SOCKET_PATH_MAX 4096

struct users_answer {
	int rc;
	struct privdrop_user user;
	struct err e;
};

/*
 * The passwd database may be answered by plug-ins of the machine (NSS).  They
 * are loaded by a process of their own, so that the supervisor neither runs
 * their code nor keeps their memory.
 */
static void
lookup_in_child(const char *name, struct users_answer *out)
{
	AUTO(auto_close) int from = -1;
	AUTO(auto_close) int to = -1;
	int fds[2];
	pid_t pid;

	memset(out, 0, sizeof(*out));
	out->rc = err_set(&out->e, ERR_SYS, "user %s: no look-up", name);
	if (pipe2(fds, O_CLOEXEC) == -1)
		return;
	from = fds[0];
	to = fds[1];
	pid = fork();
	if (pid == -1)
		return;
	if (pid == 0) {
		struct users_answer found = {.rc = 0};

		found.rc = privdrop_lookup(name, &found.user, &found.e);
		_exit(write(to, &found, sizeof(found)) != sizeof(found));
	}
	(void)close(to);
	to = -1;
	if (read(from, out, sizeof(*out)) != (ssize_t)sizeof(*out))
		out->rc = err_set(
		    &out->e, ERR_SYS, "user %s: the look-up failed", name);
	(void)waitpid(pid, NULL, 0);
}

static int
resolve_one(const struct conf *conf, const char *key, enum conf_key k,
    enum users_mode *mode, struct privdrop_user *out, struct err *e)
{
	const char *name = conf_str(conf, k);
	struct users_answer found;

	*mode = USERS_STAY;
	if (name[0] == '\0')
		return 0;
	lookup_in_child(name, &found);
	if (found.rc == ERR_NOTFOUND)
		return err_set(e, ERR_NOTFOUND,
		    "%s: %s: make it (useradd --system --user-group "
		    "--no-create-home --home-dir /nonexistent --shell "
		    "/usr/sbin/nologin %s), name another, or set %s to nothing "
		    "to go on as root",
		    key, found.e.msg, name, key);
	if (found.rc != 0)
		return err_set(e, found.rc, "%s: %s", key, found.e.msg);
	*out = found.user;
	*mode = USERS_CHANGE;
	return 0;
}

/* Who is no root cannot become them; that a name was set which is nobody's is
 * a mistake all the same. */
static int
check_name(
    const struct conf *conf, const char *key, enum conf_key k, struct err *e)
{
	struct conf *defaults = conf_new();
	bool is_set = strcmp(conf_str(conf, k), conf_str(defaults, k)) != 0;
	struct privdrop_user user;
	enum users_mode mode;

	conf_free(defaults);
	return is_set ? resolve_one(conf, key, k, &mode, &user, e) : 0;
}

bool
users_are_wanted(const struct conf *conf, enum msg_role role)
{
	if (role == MSG_ROLE_KEYS)
		return conf_str(conf, CONF_OAUTH_ISSUER)[0] != '\0';
	if (role == MSG_ROLE_COURIER)
		return conf_bool(conf, CONF_WEBHOOKS) ||
		    conf_str(conf, CONF_OTLP_ENDPOINT)[0] != '\0';
	return true;
}

static bool
is_user(enum users_mode mode, const struct privdrop_user *user, uid_t uid)
{
	return mode == USERS_CHANGE && user->uid == uid;
}

/* Neither the data nor the engine are an envoy's business, and what one of
 * them was told by a stranger is not the other's. */
static int
check_envoy(const struct users *u, const char *key,
    const struct privdrop_user *envoy, struct err *e)
{
	if (!is_user(u->front_mode, &u->front, envoy->uid) &&
	    !is_user(u->worker_mode, &u->worker, envoy->uid) &&
	    (envoy == &u->keys || !is_user(u->keys_mode, &u->keys, envoy->uid)))
		return 0;
	return err_set(e, ERR_INVAL,
	    "%s is %s, as the front or the workers are, or RUN_AS_KEYS is: "
	    "what talks to another server wants a user of its own",
	    key, envoy->name);
}

static int
resolve_envoys(const struct conf *conf, struct users *u, struct err *e)
{
	const struct {
		enum msg_role role;
		const char *key;
		enum conf_key name;
		enum users_mode *mode;
		struct privdrop_user *user;
	} envoys[] = {{MSG_ROLE_KEYS, "RUN_AS_KEYS", CONF_RUN_AS_KEYS,
			  &u->keys_mode, &u->keys},
	    {MSG_ROLE_COURIER, "RUN_AS_COURIER", CONF_RUN_AS_COURIER,
		&u->courier_mode, &u->courier}};
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(envoys) && rc == 0; i++) {
		if (!users_are_wanted(conf, envoys[i].role))
			continue;
		if (geteuid() != 0) {
			rc = check_name(conf, envoys[i].key, envoys[i].name, e);
			continue;
		}
		rc = resolve_one(conf, envoys[i].key, envoys[i].name,
		    envoys[i].mode, envoys[i].user, e);
		if (rc == 0 && *envoys[i].mode == USERS_CHANGE)
			rc = check_envoy(u, envoys[i].key, envoys[i].user, e);
	}
	return rc;
}

static int
resolve(const struct conf *conf, struct users *u, struct err *e)
{
	int rc;

	if (geteuid() != 0) {
		rc = check_name(conf, "RUN_AS_FRONT", CONF_RUN_AS_FRONT, e);
		return rc != 0 ?
		    rc :
		    check_name(conf, "RUN_AS_WORKER", CONF_RUN_AS_WORKER, e);
	}
	rc = resolve_one(conf, "RUN_AS_FRONT", CONF_RUN_AS_FRONT,
	    &u->front_mode, &u->front, e);
	if (rc == 0)
		rc = resolve_one(conf, "RUN_AS_WORKER", CONF_RUN_AS_WORKER,
		    &u->worker_mode, &u->worker, e);
	if (rc == 0 && u->front_mode == USERS_CHANGE &&
	    u->worker_mode == USERS_CHANGE && u->front.uid == u->worker.uid)
		return err_set(e, ERR_INVAL,
		    "RUN_AS_FRONT and RUN_AS_WORKER are both %s: then nothing "
		    "but the system call filter would keep the front from the "
		    "engine; name two users",
		    u->front.name);
	return rc;
}

static const char *
user_name(enum users_mode mode, const struct privdrop_user *user)
{
	return mode == USERS_CHANGE ? user->name : "root";
}

/* What holds the front where its user does not. */
static void
say_one_user(const char *who)
{
	if (fence_version() == FENCE_NONE)
		log_warn("%s run as one user and this kernel has no Landlock: "
			 "a front that was taken over is kept from the engine "
			 "by the system call filter alone, and could exchange "
			 "what sandboxes have mounted and this user's files",
		    who);
	else
		log_info("%s run as one user: Landlock (version %d) and the "
			 "system call filter, not users, keep the front from "
			 "the engine and from other files",
		    who, fence_version());
}

static void
say_mode(const struct users *u)
{
	if (geteuid() != 0)
		log_info("started as uid %u: front and workers run as the "
			 "same user",
		    (unsigned int)geteuid());
	else
		log_info("started as root: the front runs as %s, the workers "
			 "as %s",
		    user_name(u->front_mode, &u->front),
		    user_name(u->worker_mode, &u->worker));
	if (!users_are_apart(u))
		say_one_user("front and workers");
	else if (fence_version() == FENCE_NONE)
		log_info("this kernel has no Landlock: users and modes of "
			 "files alone keep front and workers from others' "
			 "files");
	else
		log_info("Landlock (version %d) keeps front and workers to "
			 "files of their own",
		    fence_version());
}

/* ---- the engine's socket */

static void
add_socket_group(const char *path, const struct stat *st, void *arg)
{
	struct err e;

	if ((st->st_mode & (S_IRGRP | S_IWGRP)) == (S_IRGRP | S_IWGRP) &&
	    privdrop_add_group(arg, st->st_gid, &e) != 0)
		log_warn("%s: %s", path, e.msg);
}

static void
look_at(const char *path,
    void (*cb)(const char *path, const struct stat *st, void *arg), void *arg)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		cb(path, &st, arg);
}

/* DOCKER_HOST, or the places where such a socket usually is, below two
 * roots. */
static void
each_socket(const struct users *u,
    void (*cb)(const char *path, const struct stat *st, void *arg), void *arg)
{
	static const char prefix[] = "unix://";
	static const char *const names[] = {
	    "podman/podman.sock", "docker.sock"};
	const char *roots[] = {getenv("XDG_RUNTIME_DIR"), "/run", "/var/run"};
	char path[SOCKET_PATH_MAX];

	if (strncmp(u->docker_host, prefix, strlen(prefix)) == 0) {
		look_at(u->docker_host + strlen(prefix), cb, arg);
		return;
	}
	for (size_t r = 0; r < ARRAY_LEN(roots); r++)
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			if (roots[r] == NULL || roots[r][0] != '/')
				continue;
			(void)snprintf(
			    path, sizeof(path), "%s/%s", roots[r], names[i]);
			look_at(path, cb, arg);
		}
}

struct reach {
	const struct privdrop_user *front;
	char path[SOCKET_PATH_MAX]; /* of one that the front may open */
};

static void
note_reach(const char *path, const struct stat *st, void *arg)
{
	struct reach *r = arg;
	const struct privdrop_user *f = r->front;

	if ((st->st_uid == f->uid && (st->st_mode & S_IWUSR) != 0) ||
	    (st->st_gid == f->gid && (st->st_mode & S_IWGRP) != 0))
		(void)snprintf(r->path, sizeof(r->path), "%s", path);
	else if ((st->st_mode & S_IWOTH) != 0)
		log_warn("everybody may open the engine's socket %s: only the "
			 "system call filter keeps the front from it",
		    path);
}

/* A front whose user may open the engine's socket is kept from it by the
 * filter alone. */
static int
check_reach(const struct users *u, struct err *e)
{
	struct reach r = {.front = &u->front};

	if (u->front_mode != USERS_CHANGE)
		return 0;
	each_socket(u, note_reach, &r);
	if (r.path[0] == '\0')
		return 0;
	return err_set(e, ERR_POLICY,
	    "RUN_AS_FRONT: user %s may open the engine's socket %s, which the "
	    "front must not: give it a group of its own",
	    u->front.name, r.path);
}

int
users_resolve(const struct conf *conf, struct users *u, struct err *e)
{
	int rc;

	memset(u, 0, sizeof(*u));
	u->front_mode = USERS_STAY;
	u->worker_mode = USERS_STAY;
	u->keys_mode = USERS_STAY;
	u->courier_mode = USERS_STAY;
	u->docker_host = xstrdup(conf_str(conf, CONF_DOCKER_HOST));
	rc = resolve(conf, u, e);
	if (rc == 0)
		rc = resolve_envoys(conf, u, e);
	if (rc == 0)
		rc = check_reach(u, e);
	if (rc == 0)
		say_mode(u);
	return rc;
}

void
users_clear(struct users *u)
{
	free(u->docker_host);
	u->docker_host = NULL;
}

bool
users_are_apart(const struct users *u)
{
	return u->front_mode == USERS_CHANGE &&
	    (u->worker_mode == USERS_STAY || u->front.uid != u->worker.uid);
}

enum conf_who
users_conf_of(enum msg_role role)
{
	static const enum conf_who of[] = {[MSG_ROLE_FRONT] = CONF_FRONT,
	    [MSG_ROLE_WORKER] = CONF_WORKER,
	    [MSG_ROLE_KEYS] = CONF_KEYS,
	    [MSG_ROLE_COURIER] = CONF_COURIER};

	return of[role];
}

enum users_mode
users_find(const struct users *u, enum msg_role role, struct privdrop_user *out)
{
	const struct {
		enum users_mode mode;
		const struct privdrop_user *user;
	} roles[] = {[MSG_ROLE_FRONT] = {u->front_mode, &u->front},
	    [MSG_ROLE_WORKER] = {u->worker_mode, &u->worker},
	    [MSG_ROLE_KEYS] = {u->keys_mode, &u->keys},
	    [MSG_ROLE_COURIER] = {u->courier_mode, &u->courier}};

	if (roles[role].mode == USERS_STAY)
		return USERS_STAY;
	*out = *roles[role].user;
	if (role == MSG_ROLE_WORKER)
		each_socket(u, add_socket_group, out);
	return USERS_CHANGE;
}
