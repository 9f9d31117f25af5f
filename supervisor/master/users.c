#include "supervisor/master/users.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

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

static enum users_mode
resolve_one(const char *role, const char *name, struct privdrop_user *out)
{
	struct users_answer found;

	if (name[0] == '\0')
		return USERS_STAY;
	lookup_in_child(name, &found);
	if (found.rc != 0) {
		log_warn("%s: the %s will run as root", found.e.msg, role);
		return USERS_STAY;
	}
	*out = found.user;
	return USERS_CHANGE;
}

static const char *
user_name(enum users_mode mode, const struct privdrop_user *user)
{
	return mode == USERS_CHANGE ? user->name : "root";
}

static void
say_mode(const struct users *u)
{
	if (geteuid() != 0)
		log_info("started as uid %u: front and workers run as the "
			 "same user; seccomp alone cuts the front off from "
			 "the engine",
		    (unsigned int)geteuid());
	else
		log_info("started as root: the front runs as %s, the workers "
			 "as %s",
		    user_name(u->front_mode, &u->front),
		    user_name(u->worker_mode, &u->worker));
}

void
users_resolve(const struct conf *conf, struct users *u)
{
	memset(u, 0, sizeof(*u));
	u->front_mode = USERS_STAY;
	u->worker_mode = USERS_STAY;
	u->docker_host = xstrdup(conf_str(conf, CONF_DOCKER_HOST));
	if (geteuid() == 0) {
		u->front_mode = resolve_one(
		    "front", conf_str(conf, CONF_RUN_AS_FRONT), &u->front);
		u->worker_mode = resolve_one(
		    "workers", conf_str(conf, CONF_RUN_AS_WORKER), &u->worker);
	}
	say_mode(u);
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

static void
add_socket_group(struct privdrop_user *u, const char *path)
{
	struct stat st;
	struct err e;

	if (stat(path, &st) == -1 || !S_ISSOCK(st.st_mode) ||
	    (st.st_mode & (S_IRGRP | S_IWGRP)) != (S_IRGRP | S_IWGRP))
		return;
	if (privdrop_add_group(u, st.st_gid, &e) != 0)
		log_warn("%s: %s", path, e.msg);
}

/* The places where an engine's socket usually is, below two roots. */
static void
add_usual_groups(struct privdrop_user *u)
{
	static const char *const names[] = {
	    "podman/podman.sock", "docker.sock"};
	const char *roots[] = {getenv("XDG_RUNTIME_DIR"), "/run", "/var/run"};
	char path[SOCKET_PATH_MAX];

	for (size_t r = 0; r < ARRAY_LEN(roots); r++)
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			if (roots[r] == NULL || roots[r][0] != '/')
				continue;
			(void)snprintf(
			    path, sizeof(path), "%s/%s", roots[r], names[i]);
			add_socket_group(u, path);
		}
}

enum users_mode
users_find(const struct users *u, enum msg_role role, struct privdrop_user *out)
{
	static const char prefix[] = "unix://";

	if (role == MSG_ROLE_FRONT) {
		if (u->front_mode == USERS_CHANGE)
			*out = u->front;
		return u->front_mode;
	}
	if (u->worker_mode != USERS_CHANGE)
		return u->worker_mode;
	*out = u->worker;
	if (strncmp(u->docker_host, prefix, strlen(prefix)) == 0)
		add_socket_group(out, u->docker_host + strlen(prefix));
	else
		add_usual_groups(out);
	return u->worker_mode;
}
