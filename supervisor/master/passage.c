#include "supervisor/master/passage.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "common/place.h"
#include "common/xmalloc.h"

struct passage_answer {
	int rc;
	struct err e;
};

/* In a process of its own. */
static NORETURN void
answer_as(const struct privdrop_user *user, const char *path, int to)
{
	struct passage_answer a = {.rc = 0};

	a.rc = privdrop_apply(user, &a.e);
	if (a.rc == 0)
		a.rc = place_check_way(path, &a.e);
	_exit(write(to, &a, sizeof(a)) != (ssize_t)sizeof(a));
}

static int
ask_as(const struct privdrop_user *user, const char *path,
    struct passage_answer *a, struct err *e)
{
	AUTO(auto_close) int from = -1;
	AUTO(auto_close) int to = -1;
	int fds[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) == -1)
		return err_set(e, ERR_SYS, "pipe: %s", strerror(errno));
	from = fds[0];
	to = fds[1];
	pid = fork();
	if (pid == -1)
		return err_set(e, ERR_SYS, "fork: %s", strerror(errno));
	if (pid == 0)
		answer_as(user, path, to);
	(void)close(to);
	to = -1;
	n = read(from, a, sizeof(*a));
	(void)waitpid(pid, NULL, 0);
	if (n != (ssize_t)sizeof(*a))
		return err_set(e, ERR_SYS,
		    "user %s: the way to %s could not be tried", user->name,
		    path);
	return 0;
}

/* 0, ERR_SYS, or ERR_POLICY with "user mcp-front: uid 999 may not pass
 * through /root". */
static int
check_way(
    const struct users *u, enum msg_role role, const char *path, struct err *e)
{
	struct passage_answer a;
	struct privdrop_user user;

	if (users_find(u, role, &user) == USERS_STAY)
		return 0;
	if (ask_as(&user, path, &a, e) != 0)
		return e->code;
	if (a.rc == 0)
		return 0;
	return err_set(e, a.rc == ERR_INVAL ? ERR_POLICY : ERR_SYS,
	    "user %s: %s", user.name, a.e.msg);
}

int
passage_check(const struct users *u, const char *data_dir, struct err *e)
{
	static const enum msg_role roles[] = {MSG_ROLE_FRONT, MSG_ROLE_WORKER};
	AUTO(auto_free) char *real = NULL;
	struct err why;
	size_t above;
	int rc = 0;

	real = place_resolve(data_dir, &above, &why);
	for (size_t i = 0; i < ARRAY_LEN(roles) && real != NULL && rc == 0; i++)
		rc = check_way(u, roles[i], real, &why);
	if (rc != ERR_POLICY)
		return rc == 0 ? 0 : err_set(e, rc, "%s", why.msg);
	return err_set(e, rc,
	    "DATA_DIR %.200s: %s: set DATA_DIR to a directory that everybody "
	    "may pass to, such as /var/lib/mcp-sandboxd, or let others pass "
	    "there (chmod o+x)",
	    real, why.msg);
}
