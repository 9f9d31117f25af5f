/* ctl_doctor.h - sandboxctl doctor: "mcp-sandboxd doctor", which needs the
 * settings and the engine, in our place */
#ifndef CTL_DOCTOR_H
#define CTL_DOCTOR_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/ctl/ctl_call.h"

/* ctl_doctor_run - returns only when there is no such program; the exit status
 * is the doctor's */
int ctl_doctor_run(const struct ctl_call *c, struct err *e);

#endif
