#include "supervisor/master/passage.h"

#include "common/place.h"
#include "supervisor/master/spawn.h"

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
