#include "supervisor/front/check_data.h"

#include <errno.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/layout.h"
#include "common/log.h"
#include "common/netaddr.h"
#include "common/place.h"
#include "common/tenant_lines.h"
#include "common/xmalloc.h"
#include "supervisor/core/denylist.h"
#include "supervisor/core/tenants_file.h"
#include "supervisor/front/check.h"
#include "supervisor/front/key.h"
#include "supervisor/store/store.h"

int
check_data_places(const struct conf *conf, struct err *e)
{
	AUTO(auto_free)
	char *dir =
	    xasprintf("%s/" LAYOUT_FRONT, conf_str(conf, CONF_DATA_DIR));
	const char *artifacts = conf_str(conf, CONF_ARTIFACTS_DIR);
	enum place_state state;
	struct err why;

	if (place_check_way(dir, &why) != 0)
		return err_set(e, ERR_INVAL,
		    "DATA_DIR %.120s: %.200s: let the front's user pass there "
		    "(chmod o+x), or set DATA_DIR",
		    conf_str(conf, CONF_DATA_DIR), why.msg);
	if (artifacts[0] == '\0' || place_check(artifacts, &state, &why) == 0)
		return 0;
	return err_set(e, ERR_INVAL,
	    "ARTIFACTS_DIR %.120s: %.200s: make it and give it to the front's "
	    "user (RUN_AS_FRONT), or leave it empty for DATA_DIR/" LAYOUT_FRONT
	    "/artifacts",
	    artifacts, why.msg);
}

static int
check_tenants(const struct conf *conf, bool *wants_tokens, struct err *e)
{
	const char *path = conf_str(conf, CONF_TENANTS_FILE);
	AUTO(auto_free) char *text = NULL;

	if (path[0] == '\0')
		return 0;
	if (tenant_lines_read(path, NULL, &text, e) != 0)
		return e->code;
	return tenants_file_check(path, text, wants_tokens, e);
}

/* What there is of it: the supervisor makes it, and gives it to the front. */
static int
check_files(const char *dir, bool *wants_tokens, struct err *e)
{
	uint8_t key[KEY_BYTES];
	int rc;

	if (access(dir, R_OK | X_OK) == -1) {
		*wants_tokens = errno != ENOENT; /* who knows */
		return 0;
	}
	rc = key_look(dir, key, e);
	explicit_bzero(key, sizeof(key));
	return rc == 0 ? store_look(dir, wants_tokens, e) : rc;
}

/* A start asks the same of its socket. */
static int
check_address(const struct conf *conf, struct err *e)
{
	const char *text = conf_str(conf, CONF_BIND);
	struct netaddr address;

	if (conf_str(conf, CONF_OAUTH_ISSUER)[0] != '\0' ||
	    conf_bool(conf, CONF_REQUIRE_TOKEN) ||
	    netaddr_parse(text, strlen(text), &address) != 0)
		return 0; /* the supervisor says what is wrong with it */
	return check_may_listen(&address, e);
}

/* As a start compiles it: the supervisor has looked at its form alone. */
static int
check_denylist(const struct conf *conf, struct err *e)
{
	struct denylist *deny = NULL;
	int rc = denylist_new(conf, &deny, e);

	denylist_free(deny);
	return rc;
}

static int
say(const struct err *e)
{
	log_error("%s", e->msg);
	return EXIT_CONFIG;
}

static int
check_all(const struct conf *conf)
{
	AUTO(auto_free)
	char *dir =
	    xasprintf("%s/" LAYOUT_FRONT, conf_str(conf, CONF_DATA_DIR));
	bool by_file = false, by_database = false, is_known = true;
	int status = 0;
	struct err e;

	if (check_data_places(conf, &e) != 0)
		status = say(&e);
	if (check_denylist(conf, &e) != 0)
		status = say(&e);
	if (check_tenants(conf, &by_file, &e) != 0) {
		status = say(&e);
		is_known = false;
	}
	if (check_files(dir, &by_database, &e) != 0) {
		status = say(&e);
		is_known = false;
	}
	if (is_known && !by_file && !by_database &&
	    check_address(conf, &e) != 0)
		status = say(&e);
	return status;
}

int
check_data_main(void)
{
	struct conf *conf = conf_new();
	struct err e;
	int status;

	log_set_level(LOG_WARN);
	if (conf_load_env(conf, &e) != 0) {
		(void)err_wrap(&e, "configuration");
		status = say(&e);
	} else {
		status = check_all(conf);
	}
	conf_free(conf);
	return status;
}
