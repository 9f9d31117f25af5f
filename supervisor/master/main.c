/*
 * mcp-sandboxd - the supervisor, and the one command a user starts
 *
 * Its commands, options and exit statuses (of sysexits.h) are in
 * schema/usage.txt.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "common/conf.h"
#include "common/layout.h"
#include "common/log.h"
#include "supervisor/master/clients.h"
#include "supervisor/master/consult.h"
#include "supervisor/master/datadir.h"
#include "supervisor/master/instance.h"
#include "supervisor/master/master.h"
#include "supervisor/master/options.h"
#include "supervisor/master/prepare.h"
#include "supervisor/master/spawn.h"
#include "supervisor/master/stdio_command.h"
#include "supervisor/master/tlsfiles.h"
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
become_bridge(const struct options *options, const struct conf *conf)
{
	struct err e;

	stdio_command_run(options, conf, &e);
	log_error("%s", e.msg);
	return status_of(&e);
}

static int
serve(const struct options *options, struct conf *conf)
{
	struct prepared p = PREPARED_INIT;
	struct err e;
	int status;

	conf_apply_log(conf);
	if (prepare_start(conf, &p, &e) != 0) {
		log_error("%s", e.msg);
		status = status_of(&e);
	} else {
		if (p.listener.fd < 0)
			log_info("listening on %s/" LAYOUT_ADMIN " alone",
			    p.datadir.path);
		else
			log_info("listening on %s://%s", tlsfiles_scheme(conf),
			    p.listener.address);
		status = master_run(options, conf, &p);
	}
	prepared_clear(&p);
	return status;
}

static int
check(struct conf *conf)
{
	struct err e = {0};
	int status;

	log_set_level(LOG_WARN);
	status = prepare_look(conf, &e);
	if (e.code != 0)
		status = status_of(&e);
	if (status == EX_OK)
		(void)puts("the configuration is good");
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
		status = check(conf);
	else if (options.action == OPTIONS_DOCTOR)
		status = see_doctor(&options, conf);
	else if (options.action == OPTIONS_PURGE)
		status = purge(&options, conf);
	else if (options.action == OPTIONS_CLIENTS)
		status = print_clients(&options, conf);
	else if (options.action == OPTIONS_STDIO)
		status = become_bridge(&options, conf);
	else
		status = serve(&options, conf);
	conf_free(conf);
	return status;
}
