/*
 * envoy.h - what the programs have in common that talk to other servers
 *
 * The front makes no socket, so what must connect to another server, and reads
 * what that says, is a process of its own: without data, without a way to the
 * engine, with a user of its own.  It is the front's envoy: its channel to the
 * front is all it is told by and answers to, and it ends with that.
 *
 * The files that it reads by its settings are looked at before the system call
 * filter and Landlock (confine.h, fence.h) shut the rest.  When one of them, or
 * one that the C library reads (/etc/resolv.conf), is replaced by another file,
 * the process ends with status 0, once it has nothing under way, and the
 * supervisor starts the next one.
 */
#ifndef COMMON_ENVOY_H
#define COMMON_ENVOY_H

#include "common/base.h"
#include "common/child.h"
#include "common/conf.h"
#include "common/err.h"

#define ENVOY_FILES_MAX 4

struct event_base;
struct ipc_chan;
struct ipc_msg;

/* A setting that names a file of its own, which must be readable where it is
 * set. */
struct envoy_file {
	const char *key;
	enum conf_key name;
};

struct envoy_ops {
	const struct envoy_file *files; /* behind the last one key is NULL */
	const char *run_as;             /* the setting of its user */
	/* Before the system call filter: 0, or *e says what is wrong with the
	 * settings. */
	int (*on_open)(struct event_base *base, const struct conf *conf,
	    void *arg, struct err *e);
	/* For --check-config: 0, or *e says what is wrong with the settings
	 * beside the files. */
	int (*on_check)(
	    struct event_base *base, const struct conf *conf, struct err *e);
	void (*on_front)(struct ipc_chan *front, void *arg);
	bool (*is_busy)(void *arg); /* requests are under way; NULL: never */
	/* As in msg/chan.h. */
	int (*on_message)(struct ipc_msg *m, void *arg, struct err *e);
};

/* envoy_main - such a program, by its arguments: the life of a child, or a
 * check of its settings, which are the environment; the exit status.  ops and
 * arg are kept */
int envoy_main(int argc, char **argv, enum msg_role role, uint32_t index,
    const struct envoy_ops *ops, void *arg);
/* envoy_worked - a piece of work is done */
void envoy_worked(void);

#endif
