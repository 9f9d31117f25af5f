/*
 * mcp-sandboxd - the supervisor, and the one command a user starts
 *
 * Exit status (sysexits.h): 0 told to stop; 64 wrong command line; 71 the
 * system refused something; 75 the port or DATA_DIR is in use; 78 the
 * configuration is wrong or programs are missing; 77 and 78 also when the
 * front or all workers ended so.  doctor: worker/doctor/doctor.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "common/conf.h"
#include "common/log.h"
#include "common/privdrop.h"
#include "supervisor/master/clients.h"
#include "supervisor/master/consult.h"
#include "supervisor/master/datadir.h"
#include "supervisor/master/instance.h"
#include "supervisor/master/listen.h"
#include "supervisor/master/master.h"
#include "supervisor/master/options.h"
#include "supervisor/master/spawn.h"
#include "supervisor/master/users.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unreleased"
#endif

/* Descriptors 0 to 2 are ours, else the first socket would become stderr. */
static void
ensure_standard_descriptors(void)
{
	int fd = open("/dev/null", O_RDWR);

	while (fd >= 0 && fd <= STDERR_FILENO)
		fd = dup(fd);
	if (fd >= 0)
		(void)close(fd);
}

static int
status_of(const struct err *e)
{
	switch (e->code) {
	case ERR_CONFLICT:
		return EX_TEMPFAIL;
	case ERR_NOTFOUND:
	case ERR_INVAL:
	case ERR_POLICY:
		return EX_CONFIG;
	default:
		return EX_OSERR;
	}
}

static void
apply_log_settings(const struct conf *conf)
{
	int level = log_parse_level(conf_str(conf, CONF_LOG_LEVEL));

	if (level >= 0)
		log_set_level((enum log_level)level);
	if (strcmp(conf_str(conf, CONF_LOG_FORMAT), "json") == 0)
		log_set_format(LOG_FORMAT_JSON);
}

/* From here on: start children as other users, without capabilities, and send
 * them signals.  Ports, owners and other users' files are done with. */
static int
shed_rights(struct err *e)
{
	const uint64_t needed = PRIVDROP_CAP(CAP_SETUID) |
	    PRIVDROP_CAP(CAP_SETGID) | PRIVDROP_CAP(CAP_SETPCAP) |
	    PRIVDROP_CAP(CAP_KILL);

	spawn_raise_limits();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return err_set(e, ERR_SYS, "prctl: %s", strerror(errno));
	if (privdrop_bound(needed, e) != 0)
		return ERR_SYS;
	return privdrop_keep(needed, e);
}

static enum instance_takeover
takeover_of(const struct conf *conf)
{
	const char *word = conf_str(conf, CONF_TAKEOVER);

	if (strcmp(word, "adopt") == 0)
		return INSTANCE_ADOPT;
	return strcmp(word, "forget") == 0 ? INSTANCE_FORGET : INSTANCE_ASK;
}

static int
find_programs(char **front_path, char **worker_path, struct err *e)
{
	if (spawn_find("mcp-sandboxd-front", front_path, e) != 0)
		return e->code;
	return spawn_find("mcp-sandboxd-worker", worker_path, e);
}

/* What must be there before the first child starts, in this order: nothing is
 * made on disk by a server that cannot listen. */
static int
prepare(struct conf *conf, struct users *users, struct listener *listener,
    struct datadir *datadir, char instance[INSTANCE_ID_LEN + 1], struct err *e)
{
	int rc = listen_open(conf_str(conf, CONF_BIND),
	    (uint16_t)conf_int(conf, CONF_PORT), listener, e);

	if (rc == 0)
		rc = users_resolve(conf, users, e);
	if (rc == 0)
		rc = datadir_open(conf_str(conf, CONF_DATA_DIR),
		    conf_str(conf, CONF_ARTIFACTS_DIR), users, datadir, e);
	if (rc == 0)
		rc = instance_open(datadir->lock_fd, datadir->path,
		    takeover_of(conf), instance, e);
	return rc == 0 ? shed_rights(e) : rc;
}

static int
see_doctor(const struct options *options, const struct conf *conf)
{
	AUTO(auto_free) char *worker_path = NULL;
	struct users users = {.docker_host = NULL};
	struct err e;
	int rc = spawn_find("mcp-sandboxd-worker", &worker_path, &e);

	log_set_level(LOG_WARN);
	if (rc == 0)
		rc = users_resolve(conf, &users, &e);
	if (rc == 0)
		consult_doctor(worker_path, options->json, conf, &users, &e);
	log_error("%s", e.msg);
	users_clear(&users);
	return status_of(&e);
}

static int
purge(const struct options *options, struct conf *conf)
{
	AUTO(auto_free) char *worker_path = NULL;
	struct datadir datadir = {.lock_fd = -1};
	struct users users = {.docker_host = NULL};
	char instance[INSTANCE_ID_LEN + 1];
	struct err e;
	int rc = spawn_find("mcp-sandboxd-worker", &worker_path, &e);

	log_set_level(LOG_WARN);
	if (rc == 0)
		rc = datadir_lock(conf_str(conf, CONF_DATA_DIR), &datadir, &e);
	if (rc == 0)
		rc = instance_read(datadir.lock_fd, datadir.path, instance, &e);
	if (rc == 0)
		rc = conf_set(conf, "DATA_DIR", datadir.path, &e);
	if (rc == 0)
		rc = users_resolve(conf, &users, &e);
	if (rc == 0)
		consult_purge(worker_path, instance, options->yes,
		    datadir.lock_fd, conf, &users, &e);
	log_error("%s", e.msg);
	users_clear(&users);
	datadir_close(&datadir);
	return status_of(&e);
}

static int
print_clients(const struct options *options, const struct conf *conf)
{
	struct err e;

	if (clients_print(options->client, conf, stdout, &e) == 0)
		return EX_OK;
	log_error("%s", e.msg);
	return status_of(&e);
}

static int
serve(const struct options *options, struct conf *conf)
{
	AUTO(auto_free) char *front_path = NULL;
	AUTO(auto_free) char *worker_path = NULL;
	struct listener listener = LISTENER_INIT;
	struct datadir datadir = {.lock_fd = -1};
	struct users users = {.docker_host = NULL};
	char instance[INSTANCE_ID_LEN + 1];
	struct err e;
	int status;

	apply_log_settings(conf);
	if (find_programs(&front_path, &worker_path, &e) != 0 ||
	    prepare(conf, &users, &listener, &datadir, instance, &e) != 0) {
		log_error("%s", e.msg);
		status = status_of(&e);
	} else {
		log_info("listening on http://%s", listener.address);
		status = master_run(&(struct master_setup){
		    .options = options,
		    .conf = conf,
		    .users = &users,
		    .datadir = &datadir,
		    .instance = instance,
		    .listener = &listener,
		    .front_path = front_path,
		    .worker_path = worker_path,
		});
	}
	users_clear(&users);
	datadir_close(&datadir);
	listen_close(&listener);
	return status;
}

int
main(int argc, char **argv)
{
	struct options options;
	struct conf *conf = NULL;
	struct err e;
	int status = EX_OK;

	ensure_standard_descriptors();
	log_init("supervisor");
	if (options_parse(argc, argv, &options, &e) != 0) {
		log_error("%s", e.msg);
		return EX_USAGE;
	}
	if (options.action == OPTIONS_HELP) {
		options_print_help(stdout);
		return EX_OK;
	}
	if (options.action == OPTIONS_VERSION) {
		(void)puts("mcp-sandboxd " PACKAGE_VERSION);
		return EX_OK;
	}
	if (options_load(&options, &conf, &e) != 0) {
		log_error("configuration: %s", e.msg);
		return EX_CONFIG;
	}
	if (options.action == OPTIONS_CHECK)
		(void)puts("the configuration is good");
	else if (options.action == OPTIONS_DOCTOR)
		status = see_doctor(&options, conf);
	else if (options.action == OPTIONS_PURGE)
		status = purge(&options, conf);
	else if (options.action == OPTIONS_CLIENTS)
		status = print_clients(&options, conf);
	else
		status = serve(&options, conf);
	conf_free(conf);
	return status;
}
