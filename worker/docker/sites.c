#include "worker/docker/sites.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/conf.h"
#include "common/fence.h"
#include "common/xmalloc.h"
#include "worker/docker/owner.h"

static bool
is_missing(const char *path)
{
	return access(path, F_OK) == -1 && errno == ENOENT;
}

/* The names that Docker's own client gives them.  Where only authorities are
 * kept, no certificate is shown; where nothing is yet, all is still to come. */
static void
take_files(struct sites *s, const char *directory)
{
	s->directory = xstrdup(directory);
	/* Once it is confined, a process cannot ask for Landlock. */
	s->is_awaited = is_missing(directory) && fence_version() != FENCE_NONE;
	s->ca = xasprintf("%s/ca.pem", directory);
	s->cert = xasprintf("%s/cert.pem", directory);
	s->key = xasprintf("%s/key.pem", directory);
	if (is_missing(s->ca) || !is_missing(s->cert) || !is_missing(s->key))
		return;
	free(s->cert);
	free(s->key);
	s->cert = s->key = NULL;
}

int
sites_init(struct sites *s, const struct conf *conf, struct err *e)
{
	const char *host = conf_str(conf, CONF_DOCKER_HOST);
	struct engine_host at;
	char *usual[ENGINE_HOST_USUAL_MAX];

	memset(s, 0, sizeof(*s));
	if (host[0] == '\0') {
		s->is_chosen_here = true;
		s->n = engine_host_usual(usual);
		for (size_t i = 0; i < s->n; i++)
			s->all[i].where = usual[i];
		return 0;
	}
	if (engine_host_parse(host, &at, e) != 0)
		return ERR_INVAL;
	s->n = 1;
	s->is_tcp = at.kind == ENGINE_HOST_TCP;
	s->port = at.port;
	s->is_loopback = at.is_loopback;
	s->all[0].where = xstrdup(s->is_tcp ? host : at.path);
	if (s->is_tcp && conf_str(conf, CONF_DOCKER_TLS_VERIFY)[0] != '\0')
		take_files(s, conf_str(conf, CONF_DOCKER_CERT_PATH));
	return 0;
}

void
sites_clear(struct sites *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->all[i].where);
	free(s->directory);
	free(s->ca);
	free(s->cert);
	free(s->key);
	memset(s, 0, sizeof(*s));
}

bool
sites_is_there(struct site *s)
{
	struct stat st;
	int rc = stat(s->where, &st);

	if (rc == 0 && S_ISSOCK(st.st_mode)) {
		s->why[0] = '\0';
		return true;
	}
	if (rc == -1 && errno == EACCES)
		owner_say_refusal(s->where, s->why, sizeof(s->why));
	else
		(void)snprintf(s->why, sizeof(s->why), "%s",
		    rc == -1 ? strerror(errno) : "it is no socket");
	return false;
}

static struct api_tls
files_of(const struct sites *s)
{
	return (struct api_tls){.ca = s->ca, .cert = s->cert, .key = s->key};
}

int
sites_use_tcp(const struct sites *s, struct api *api, struct err *e)
{
	const struct api_tls files = files_of(s);

	return api_set_address(
	    api, s->all[0].where, s->ca != NULL ? &files : NULL, e);
}

/* Modes do not say it: Landlock is asked when a file is opened. */
static int
check_open(const char *path, struct err *e)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd != -1 || errno != EACCES)
		return 0;
	return err_set(e, ERR_BACKEND,
	    "DOCKER_CERT_PATH: %.200s is outside of what this worker may read "
	    "since its start: a file there must be no link to elsewhere; where "
	    "the directory itself was exchanged, restart the server",
	    path);
}

static int
check_readable(const char *path, struct err *e)
{
	char user[OWNER_NAME_MAX];
	int number;

	if (path == NULL)
		return 0;
	if (access(path, R_OK) == 0)
		return check_open(path, e);
	number = errno;
	return err_set(e, ERR_BACKEND, "DOCKER_CERT_PATH: %.200s: %s%s%s", path,
	    strerror(number),
	    number == EACCES ? ": let it be read by user " : "",
	    number == EACCES ? owner_user(geteuid(), user) : "");
}

int
sites_check_files(const struct sites *s, struct certs_look *out, struct err *e)
{
	const struct api_tls files = files_of(s);

	memset(out, 0, sizeof(*out));
	if (s->ca == NULL)
		return 0;
	if (check_readable(s->ca, e) != 0 || check_readable(s->cert, e) != 0 ||
	    check_readable(s->key, e) != 0)
		return ERR_BACKEND;
	if (certs_look_at(&files, out, e) == 0)
		return 0;
	(void)err_wrap(e, "DOCKER_CERT_PATH");
	e->code = ERR_BACKEND;
	return ERR_BACKEND;
}

bool
sites_came_late(const struct sites *s)
{
	return s->is_awaited && !is_missing(s->ca);
}

void
sites_say_passed(const struct sites *s, char *out, size_t size)
{
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; i < s->n && n < size; i++)
		if (s->all[i].why[0] != '\0')
			n += (size_t)snprintf(out + n, size - n, "%s%s: %s",
			    n > 0 ? "; " : "", s->all[i].where, s->all[i].why);
}
