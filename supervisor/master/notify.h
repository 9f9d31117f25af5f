/*
 * notify.h - tell the service manager how we are (sd_notify(3)), by hand
 *
 * Without NOTIFY_SOCKET in the environment every call does nothing.  A
 * manager that does not listen costs a debug line, never more.
 */
#ifndef MASTER_NOTIFY_H
#define MASTER_NOTIFY_H

#include "common/base.h"

struct notify;

/* notify_open - reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID */
struct notify *notify_open(void);
void notify_close(struct notify *n);
/* notify_watchdog_ms - send WATCHDOG=1 this often; 0: not wanted */
uint32_t notify_watchdog_ms(const struct notify *n);

/* notify_say - "READY=1", "STOPPING=1" or "WATCHDOG=1" */
void notify_say(struct notify *n, const char *text);
void notify_reloading(struct notify *n); /* READY=1 ends it */
void notify_status(struct notify *n, const char *fmt, ...) PRINTF(2, 3);

#endif
