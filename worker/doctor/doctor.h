/*
 * doctor.h - what holds on this host and what does not
 *
 * mcp-sandboxd starts its worker's program so ("mcp-sandboxd doctor"), with
 * the worker's user and groups: who it is may reach the engine.  The settings
 * come in the environment.  Nothing is changed and nothing is made.
 */
#ifndef WORKER_DOCTOR_DOCTOR_H
#define WORKER_DOCTOR_DOCTOR_H

#include "common/base.h"

enum doctor_form {
	DOCTOR_TABLE,
	DOCTOR_JSON
};

/* As whom front and workers run when the server is started as doctor was. */
enum doctor_users {
	DOCTOR_USERS_APART,
	DOCTOR_USERS_TOGETHER
};

/* doctor_main - prints its findings on stdout; the exit status: 0 all hold,
 * 1 some do not or are not known, 78 the settings are wrong */
int doctor_main(enum doctor_form form, enum doctor_users users);

#endif
