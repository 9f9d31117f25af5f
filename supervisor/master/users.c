#include "supervisor/master/users.h"

#include <stdio.h>
#include <sys/stat.h>

#include "common/engine_host.h"
#include "common/fence.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/master/spawn.h"

struct users_answer {
	int rc;
	struct privdrop_user user;
	struct err e;
};

/* By enum msg_role: the settings that name users. */
static const struct {
	const char *key;
	enum conf_key name;
} settings[CHILD_ROLES] = {
    [MSG_ROLE_FRONT] = {"RUN_AS_FRONT", CONF_RUN_AS_FRONT},
    [MSG_ROLE_WORKER] = {"RUN_AS_WORKER", CONF_RUN_AS_WORKER},
    [MSG_ROLE_KEYS] = {"RUN_AS_KEYS", CONF_RUN_AS_KEYS},
    [MSG_ROLE_COURIER] = {"RUN_AS_COURIER", CONF_RUN_AS_COURIER}};

static void
look_up(const void *name, void *answer)
{
	struct users_answer *a = answer;

	a->rc = privdrop_lookup(name, &a->user, &a->e);
}

/*
 * The passwd database may be answered by plug-ins of the machine (NSS).  They
 * are loaded by a process of their own, so that the supervisor neither runs
 * their code nor keeps their memory.
 */
static int
resolve_one(const struct conf *conf, size_t role, struct privdrop_user *out,
    struct err *e)
{
	const char *name = conf_str(conf, settings[role].name);
	const char *key = settings[role].key;
	struct users_answer found = {.rc = 0};

	if (name[0] == '\0')
		return 0;
	if (spawn_ask(look_up, name, &found, sizeof(found)) != 0)
		return err_set(
		    e, ERR_SYS, "%s: user %s: the look-up failed", key, name);
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
	return 0;
}

/* Who is no root cannot become them; that a name was set which is nobody's is
 * a mistake all the same. */
static int
check_name(const struct conf *conf, size_t role, struct err *e)
{
	struct conf *defaults = conf_new();
	bool is_set = strcmp(conf_str(conf, settings[role].name),
			  conf_str(defaults, settings[role].name)) != 0;
	struct privdrop_user user;

	conf_free(defaults);
	return is_set ? resolve_one(conf, role, &user, e) : 0;
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

/* Neither the data nor the engine are an envoy's business, and what one of
 * them was told by a stranger is not the other's. */
static int
check_own(const struct users *u, size_t role, struct err *e)
{
	const struct privdrop_user *user = &u->of[role];

	for (size_t i = 0; i < role; i++) {
		if (user->uid == 0 || u->of[i].uid != user->uid)
			continue;
		if (role == MSG_ROLE_WORKER)
			return err_set(e, ERR_INVAL,
			    "RUN_AS_FRONT and RUN_AS_WORKER are both %s: then "
			    "nothing but the system call filter would keep the "
			    "front from the engine; name two users",
			    user->name);
		return err_set(e, ERR_INVAL,
		    "%s is %s, as the front or the workers are, or RUN_AS_KEYS "
		    "is: what talks to another server wants a user of its own",
		    settings[role].key, user->name);
	}
	return 0;
}

static int
resolve(const struct conf *conf, struct users *u, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < CHILD_ROLES && rc == 0; i++) {
		if (!users_are_wanted(conf, (enum msg_role)i))
			continue;
		rc = geteuid() != 0 ? check_name(conf, i, e) :
				      resolve_one(conf, i, &u->of[i], e);
		if (rc == 0)
			rc = check_own(u, i, e);
	}
	return rc;
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
		    u->of[MSG_ROLE_FRONT].name, u->of[MSG_ROLE_WORKER].name);
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

/* DOCKER_HOST's, or the usual ones, as workers try them. */
static void
each_socket(const struct users *u,
    void (*cb)(const char *path, const struct stat *st, void *arg), void *arg)
{
	char *usual[ENGINE_HOST_USUAL_MAX];
	struct engine_host at;
	struct err e;
	size_t n;

	if (u->docker_host[0] != '\0') {
		if (engine_host_parse(u->docker_host, &at, &e) == 0 &&
		    at.kind == ENGINE_HOST_UNIX)
			look_at(at.path, cb, arg);
		return;
	}
	n = engine_host_usual(usual);
	for (size_t i = 0; i < n; i++) {
		look_at(usual[i], cb, arg);
		free(usual[i]);
	}
}

struct reach {
	const struct privdrop_user *front;
	char
	    path[ENGINE_HOST_PATH_MAX + 1]; /* of one that the front may open */
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
	struct reach r = {.front = &u->of[MSG_ROLE_FRONT]};

	if (r.front->uid == 0)
		return 0;
	each_socket(u, note_reach, &r);
	if (r.path[0] == '\0')
		return 0;
	return err_set(e, ERR_POLICY,
	    "RUN_AS_FRONT: user %s may open the engine's socket %s, which the "
	    "front must not: give it a group of its own",
	    r.front->name, r.path);
}

int
users_resolve(const struct conf *conf, struct users *u, struct err *e)
{
	int rc;

	memset(u, 0, sizeof(*u));
	for (size_t i = 0; i < CHILD_ROLES; i++)
		(void)snprintf(u->of[i].name, sizeof(u->of[i].name), "root");
	u->docker_host = xstrdup(conf_str(conf, CONF_DOCKER_HOST));
	rc = resolve(conf, u, e);
	if (rc == 0 && u->of[MSG_ROLE_FRONT].uid != 0)
		rc = privdrop_may_change(e);
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
	uid_t front = u->of[MSG_ROLE_FRONT].uid;

	return front != 0 && front != u->of[MSG_ROLE_WORKER].uid;
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

bool
users_find(const struct users *u, enum msg_role role, struct privdrop_user *out)
{
	if (u->of[role].uid == 0)
		return false;
	*out = u->of[role];
	if (role == MSG_ROLE_WORKER)
		each_socket(u, add_socket_group, out);
	return true;
}
