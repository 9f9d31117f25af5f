/*
 * consult.h - become the doctor or the purge, or ask children's programs
 *
 * The supervisor may not reach the engine.  The worker's program may, as the
 * worker's user and with the groups of the engine's sockets; it has the
 * doctor in it (worker/doctor/).
 */
#ifndef MASTER_CONSULT_H
#define MASTER_CONSULT_H

#include "common/base.h"
#include "common/conf.h"
#include "common/err.h"
#include "supervisor/master/users.h"

/* consult_doctor - executes program in this process, with the workers'
 * settings alone as environment; it returns only when that fails, with *e */
void consult_doctor(const char *program, bool as_json, const struct conf *conf,
    const struct users *users, struct err *e);

/* consult_purge - the same with worker/visit.h; lock, a descriptor, is held
 * by it as long as it runs */
void consult_purge(const char *program, const char *id, bool is_agreed,
    int lock, const struct conf *conf, const struct users *users,
    struct err *e);

/* consult_check - run a program with the word "check", as its user and with
 * its settings alone; it says in the log what is wrong.  Returns its exit
 * status */
struct consult_check {
	const char *program;
	enum msg_role role;
	const char *word; /* one more argument; "": none */
	/* tlsfiles.h; the program has them from descriptor CHILD_CTL_FD on,
	 * -1 is none */
	const int *files;
	const struct conf *conf;
	const struct users *users;
};
int consult_check(const struct consult_check *c) MUSTCHECK;

#endif
