#include "supervisor/master/prepare.h"

#include <errno.h>
#include <sys/prctl.h>

#include "common/exit.h"
#include "common/layout.h"
#include "common/log.h"
#include "common/place.h"
#include "common/privdrop.h"
#include "common/slice.h"
#include "supervisor/master/consult.h"
#include "supervisor/master/spawn.h"

/* ---- the way to DATA_DIR */

struct passage_answer {
	int rc;
	struct err e;
};

struct passage_question {
	struct privdrop_user user;
	const char *path;
};

static void
answer_as(const void *question, void *answer)
{
	const struct passage_question *q = question;
	struct passage_answer *a = answer;

	a->rc = privdrop_apply(&q->user, &a->e);
	if (a->rc == 0)
		a->rc = place_check_way(q->path, &a->e);
}

/* 0, ERR_SYS, or ERR_POLICY with "user mcp-front: uid 999 may not pass
 * through /root". */
static int
check_way(
    const struct users *u, enum msg_role role, const char *path, struct err *e)
{
	struct passage_question q = {.path = path};
	struct passage_answer a = {.rc = 0};

	if (!users_find(u, role, &q.user))
		return 0;
	if (spawn_ask(answer_as, &q, &a, sizeof(a)) != 0)
		return err_set(e, ERR_SYS,
		    "user %s: the way to %s could not be tried", q.user.name,
		    path);
	if (a.rc == 0)
		return 0;
	return err_set(e, a.rc == ERR_INVAL ? ERR_POLICY : ERR_SYS,
	    "user %s: %s", q.user.name, a.e.msg);
}

/*
 * Whether front and workers, as users of their own, can get to DATA_DIR
 *
 * A directory on the way that is shut for such a user (root's home has mode
 * 700 on Debian) would end each life of that child.  It is asked before there
 * is one, by a process that becomes the user: so modes, groups, access lists
 * and security modules count, as they will.  0 also for a path that leads
 * nowhere, of which datadir_open says more.
 */
static int
try_passage(struct prepared *p, struct err *e)
{
	static const enum msg_role roles[] = {MSG_ROLE_FRONT, MSG_ROLE_WORKER};
	AUTO(auto_free) char *real = NULL;
	struct err why;
	size_t above;
	int rc = 0;

	real = place_resolve(conf_str(p->conf, CONF_DATA_DIR), &above, &why);
	for (size_t i = 0; i < ARRAY_LEN(roles) && real != NULL && rc == 0; i++)
		rc = check_way(&p->users, roles[i], real, &why);
	if (rc != ERR_POLICY)
		return rc == 0 ? 0 : err_set(e, rc, "%s", why.msg);
	return err_set(e, rc,
	    "DATA_DIR %.200s: %s: set DATA_DIR to a directory that everybody "
	    "may pass to, such as /var/lib/mcp-sandboxd, or let others pass "
	    "there (chmod o+x)",
	    real, why.msg);
}

/* ---- the steps */

static const char *const programs[CHILD_ROLES] = {
    [MSG_ROLE_FRONT] = "mcp-sandboxd-front",
    [MSG_ROLE_WORKER] = "mcp-sandboxd-worker",
    [MSG_ROLE_KEYS] = "mcp-sandboxd-keys",
    [MSG_ROLE_COURIER] = "mcp-sandboxd-courier"};

static int
find_programs(struct prepared *p, struct err *e)
{
	for (size_t i = 0; i < CHILD_ROLES; i++)
		if (users_are_wanted(p->conf, (enum msg_role)i) &&
		    spawn_find(programs[i], &p->paths[i], e) != 0)
			return e->code;
	return 0;
}

static int
take_tls(struct prepared *p, struct err *e)
{
	return tlsfiles_open(p->conf, &p->tls, e);
}

static int
take_bounds(struct prepared *p, struct err *e)
{
	return bounds_read(conf_str(p->conf, CONF_TENANTS_FILE), &p->bounds, e);
}

/* Also for a look: nobody connects within that moment. */
static int
take_port(struct prepared *p, struct err *e)
{
	if (strcmp(conf_str(p->conf, CONF_BIND), CONF_BIND_NONE) == 0)
		return 0;
	return listen_open(conf_str(p->conf, CONF_BIND),
	    (uint16_t)conf_int(p->conf, CONF_PORT), &p->listener, e);
}

static int
find_users(struct prepared *p, struct err *e)
{
	return users_resolve(p->conf, &p->users, e);
}

static int
take_directory(struct prepared *p, struct err *e)
{
	return (p->is_look ? datadir_look : datadir_open)(
	    conf_str(p->conf, CONF_DATA_DIR),
	    conf_str(p->conf, CONF_ARTIFACTS_DIR), &p->users, &p->datadir, e);
}

static int
take_admin(struct prepared *p, struct err *e)
{
	return p->is_look ?
	    0 :
	    listen_open_admin(p->datadir.lock_fd, LAYOUT_ADMIN, &p->admin, e);
}

static int
take_instance(struct prepared *p, struct err *e)
{
	const char *word = conf_str(p->conf, CONF_TAKEOVER);
	enum instance_takeover takeover = strcmp(word, "adopt") == 0 ?
	    INSTANCE_ADOPT :
	    strcmp(word, "forget") == 0 ? INSTANCE_FORGET :
					  INSTANCE_ASK;
	const struct datadir *d = &p->datadir;

	if (!p->is_look)
		return instance_open(
		    d->lock_fd, d->path, takeover, p->instance, e);
	return d->lock_fd < 0 ? 0 :
				instance_look(d->lock_fd, d->path, takeover, e);
}

/* A server without the key serves all but those who need a secret. */
static int
take_secrets_key(struct prepared *p, struct err *e)
{
	struct err why;

	(void)e;
	if (p->datadir.path != NULL &&
	    keyfile_open(conf_str(p->conf, CONF_SECRETS_KEY_FILE),
		p->datadir.path, p->is_look ? KEYFILE_LOOK : KEYFILE_MAKE,
		&p->secrets_key, &why) != 0)
		log_warn("%s; until then runs that need a secret are refused",
		    why.msg);
	return 0;
}

/* In this order: nothing is made on disk by a server that cannot listen. */
enum prepare_step {
	STEP_PROGRAMS,
	STEP_TLS,
	STEP_BOUNDS,
	STEP_PORT,
	STEP_USERS,
	STEP_PASSAGE,
	STEP_DIRECTORY,
	STEP_INSTANCE,
	STEP_SECRETS_KEY,
	STEP_ADMIN,
	STEP_COUNT
};
static int (*const steps[STEP_COUNT])(struct prepared *, struct err *) = {
    [STEP_PROGRAMS] = find_programs,
    [STEP_TLS] = take_tls,
    [STEP_BOUNDS] = take_bounds,
    [STEP_PORT] = take_port,
    [STEP_USERS] = find_users,
    [STEP_PASSAGE] = try_passage,
    [STEP_DIRECTORY] = take_directory,
    [STEP_INSTANCE] = take_instance,
    [STEP_SECRETS_KEY] = take_secrets_key,
    [STEP_ADMIN] = take_admin,
};

/* ---- a start */

/* From here on: start children as other users, without capabilities, and send
 * them signals.  Ports, owners and other users' files are done with. */
static int
shed_rights(struct err *e)
{
	const uint64_t needed = PRIVDROP_CAP(CAP_SETUID) |
	    PRIVDROP_CAP(CAP_SETGID) | PRIVDROP_CAP(CAP_SETPCAP) |
	    PRIVDROP_CAP(CAP_KILL);

	spawn_raise_limits();
	slice_shorten(SLICE_INHERITED);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return err_errno(e, "prctl");
	if (privdrop_bound(needed, e) != 0)
		return ERR_SYS;
	return privdrop_keep(needed, e);
}

int
prepare_start(const struct conf *conf, struct prepared *p, struct err *e)
{
	p->conf = conf;
	for (size_t i = 0; i < STEP_COUNT; i++)
		if (steps[i](p, e) != 0)
			return e->code;
	return shed_rights(e);
}

/* ---- a look */

struct prepare_look {
	struct conf *conf; /* as children are told */
	struct prepared p;
	struct err why[STEP_COUNT]; /* code 0: good */
	bool is_served;             /* a server runs on this DATA_DIR */
	int status;                 /* of children */
};

static void
try_steps(struct prepare_look *l)
{
	for (size_t i = 0; i < STEP_COUNT; i++) {
		l->why[i].code = 0;
		if (steps[i](&l->p, &l->why[i]) == 0)
			l->why[i].code = 0;
	}
	l->is_served = l->why[STEP_DIRECTORY].code == ERR_CONFLICT;
}

/* The port that a running server has, and its lock, are no faults of the
 * settings: it will be stopped before the next start. */
static bool
is_servers(const struct prepare_look *l, size_t step)
{
	return l->is_served && l->why[step].code == ERR_CONFLICT &&
	    (step == STEP_PORT || step == STEP_DIRECTORY);
}

static void
say_steps(const struct prepare_look *l, struct err *first)
{
	for (size_t i = 0; i < STEP_COUNT; i++) {
		if (l->why[i].code == 0)
			continue;
		if (is_servers(l, i)) {
			log_warn("%s", l->why[i].msg);
			continue;
		}
		log_error("%s", l->why[i].msg);
		if (first->code == 0)
			*first = l->why[i];
	}
}

static void
ask_child(struct prepare_look *l, enum msg_role role, const char *word)
{
	int status =
	    consult_check(&(struct consult_check){.program = l->p.paths[role],
		.role = role,
		.word = word,
		.files = l->p.tls.fds,
		.conf = l->conf,
		.users = &l->p.users});

	if (l->status == 0)
		l->status = status;
}

/* As whom and by which programs must be known.  Where DATA_DIR is wrong, which
 * was said, the rest is looked at with one that is not. */
static int
ask_children(struct prepare_look *l, struct err *e)
{
	const char *data =
	    l->why[STEP_PASSAGE].code == 0 ? l->p.datadir.path : NULL;

	if (l->why[STEP_PROGRAMS].code != 0 || l->why[STEP_USERS].code != 0)
		return 0;
	/* What is made in it at a start is the front's then. */
	if (conf_set(l->conf, "DATA_DIR", data != NULL ? data : "/", e) != 0 ||
	    (l->p.datadir.has_artifacts &&
		conf_set(l->conf, "ARTIFACTS_DIR", "", e) != 0))
		return e->code;
	ask_child(l, MSG_ROLE_FRONT, "data");
	ask_child(l, MSG_ROLE_WORKER, "");
	if (l->p.tls.fds[MSG_TLS_PART_CERTIFICATE] != -1)
		ask_child(l, MSG_ROLE_FRONT, "tls");
	for (size_t i = MSG_ROLE_KEYS; i < CHILD_ROLES; i++)
		if (l->p.paths[i] != NULL)
			ask_child(l, (enum msg_role)i, "");
	return 0;
}

int
prepare_look(const struct conf *conf, struct err *e)
{
	struct prepare_look l = {.p = PREPARED_INIT};
	struct err why;

	l.conf = conf_copy(conf);
	l.p.conf = l.conf;
	l.p.is_look = true;
	e->code = 0;
	try_steps(&l);
	say_steps(&l, e);
	if (ask_children(&l, &why) != 0) {
		log_error("%s", why.msg);
		if (e->code == 0)
			*e = why;
	}
	prepared_clear(&l.p);
	conf_free(l.conf);
	return e->code != 0 ? e->code : l.status;
}

void
prepared_clear(struct prepared *p)
{
	users_clear(&p->users);
	tlsfiles_close(&p->tls);
	bounds_clear(&p->bounds);
	if (p->secrets_key != -1)
		(void)close(p->secrets_key);
	p->secrets_key = -1;
	if (p->admin.address[0] != '\0') /* also when it is closed by now */
		(void)unlinkat(p->datadir.lock_fd, LAYOUT_ADMIN, 0);
	listen_close(&p->admin);
	datadir_close(&p->datadir);
	listen_close(&p->listener);
	for (size_t i = 0; i < CHILD_ROLES; i++) {
		free(p->paths[i]);
		p->paths[i] = NULL;
	}
}
