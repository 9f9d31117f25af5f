/*
 * ctl_commands.c - each command: its words, what it asks, how it is told
 *
 * A command is a row of schema/ctl.txt: words that must be there, how many
 * follow, and a function of this file or of a family's own.  Most are one
 * request; with --json the server's answer is printed as it came.
 */
#include "supervisor/ctl/ctl_call.h"

#include <time.h>

#include "common/hex.h"
#include "common/js.h"
#include "common/token.h"
#include "common/words_gen.h"
#include "common/xmalloc.h"
#include "supervisor/ctl/ctl_print.h"
#include "supervisor/ctl/ctl_query.h"

#define GONE_POLL_NS 200000000L
#define GONE_POLLS 300
#define PATH_MAX_BYTES 256

struct ctl_command {
	const char *first, *second; /* second may be NULL */
	const char *follows;        /* as the help has it */
	int least, most;
	int (*run)(const struct ctl_call *c, struct err *e);
	bool is_local; /* it asks no server */
};

/* ---- parts */

/* What the server would not take is refused here. */
static int
check_name(const char *name, struct err *e)
{
	return ctl_query_is_name(name) ?
	    0 :
	    err_set(e, ERR_INVAL, "%.100s: that is no name", name);
}

static int
ask(const struct ctl_call *c, const char *method, const char *path,
    const json_t *body, json_t **out, struct err *e)
{
	return ctl_request(c->link, method, path, body, out, e);
}

/* Before and behind the name. */
static const char *const of_tenant[2] = {"/api/v1/tenants/", ""};
static const char *const tokens_of_tenant[2] = {"/api/v1/tenants/", "/tokens"};
static const char *const of_token[2] = {"/api/v1/tokens/", ""};
static const char *const usage_of_tenant[2] = {"/api/v1/usage?tenant=", ""};

/* A path with one name in it. */
static int
ask_named(const struct ctl_call *c, const char *method,
    const char *const form[2], const char *name, const json_t *body,
    json_t **out, struct err *e)
{
	char path[PATH_MAX_BYTES];

	if (check_name(name, e) != 0)
		return e->code;
	(void)snprintf(path, sizeof(path), "%s%s%s", form[0], name, form[1]);
	return ask(c, method, path, body, out, e);
}

/* rule.KEY=VALUE, likewise. */
static int
add_rule(json_t *rules, const char *word, struct err *e)
{
	const char *equals = strchr(word, '=');
	char key[64];

	if (equals == NULL || (size_t)(equals - word) >= sizeof(key))
		return err_set(
		    e, ERR_INVAL, "%.100s: want rule.KEY=VALUE", word);
	(void)snprintf(
	    key, sizeof(key), "%.*s", (int)(equals - word - 5), word + 5);
	json_object_set_new(rules, key,
	    strcmp(equals + 1, "default") == 0   ? json_null() :
		strcmp(equals + 1, "true") == 0  ? json_true() :
		strcmp(equals + 1, "false") == 0 ? json_false() :
						   json_string(equals + 1));
	return 0;
}

/* quota.KEY=VALUE: the server knows the keys; "default" is null. */
static int
add_quota(json_t *quotas, const char *word, struct err *e)
{
	const char *equals = strchr(word, '=');
	char key[64], *end;
	long long value;

	if (strncmp(word, "quota.", 6) != 0 || equals == NULL ||
	    (size_t)(equals - word) >= sizeof(key))
		return err_set(e, ERR_INVAL,
		    "%.100s: want quota.KEY=VALUE or rule.KEY=VALUE", word);
	(void)snprintf(
	    key, sizeof(key), "%.*s", (int)(equals - word - 6), word + 6);
	if (strcmp(equals + 1, "default") == 0) {
		json_object_set_new(quotas, key, json_null());
		return 0;
	}
	value = strtoll(equals + 1, &end, 10);
	if (equals[1] < '0' || equals[1] > '9' || *end != '\0')
		return err_set(e, ERR_INVAL,
		    "%.100s: want a number, or \"default\"", word);
	json_object_set_new(quotas, key, json_integer(value));
	return 0;
}

static int
parse_settings(const struct ctl_call *c, json_t *body, struct err *e)
{
	json_t *quotas = json_object_get(body, "quotas");
	json_t *rules = json_object_get(body, "rules");

	for (int i = 1; i < c->n; i++) {
		const char *word = c->words[i];
		int rc = strncmp(word, "rule.", 5) == 0 ?
		    add_rule(rules, word, e) :
		    add_quota(quotas, word, e);

		if (rc != 0)
			return rc;
	}
	return 0;
}

/* "90", "90s", "15m", "12h", "30d" */
static int
parse_duration(const char *text, long long *out, struct err *e)
{
	static const char units[] = "smhd";
	static const long long seconds[] = {1, 60, 3600, 86400};
	char *end;
	const char *unit;

	*out = strtoll(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && *out > 0 &&
	    *out <= 1000000000LL) {
		if (*end == '\0')
			return 0;
		unit = strchr(units, *end);
		if (unit != NULL && end[1] == '\0') {
			*out *= seconds[unit - units];
			return 0;
		}
	}
	return err_set(e, ERR_INVAL,
	    "--expires %.60s: want a number with s, m, h or d, such as 30d",
	    text);
}

/* ---- tenants */

static int
tenant_add(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json)
	json_t *body = json_pack(
	    "{s:s, s:{}, s:{}}", "name", c->words[0], "quotas", "rules");
	AUTO(auto_json) json_t *o = NULL;

	if (check_name(c->words[0], e) != 0 ||
	    parse_settings(c, body, e) != 0 ||
	    ask(c, "POST", "/api/v1/tenants", body, &o, e) != 0)
		return e->code;
	ctl_print_done(c->o, o,
	    "tenant %s is there; give it a token: sandboxctl token add %s",
	    c->words[0], c->words[0]);
	return 0;
}

static int
tenant_list(const struct ctl_call *c, struct err *e)
{
	static const struct ctl_column columns[] = {{"NAME", "name"},
	    {"STATE", "state"}, {"TOKENS", "tokens"}, {"CREATED", "created_at"},
	    {"QUOTAS SET", "quotas_set"}};
	AUTO(auto_json) json_t *o = NULL;

	if (ask(c, "GET", "/api/v1/tenants", NULL, &o, e) != 0)
		return e->code;
	ctl_print_list(c->o, o, "tenants", columns, ARRAY_LEN(columns));
	return 0;
}

static int
tenant_show(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;

	if (ask_named(c, "GET", of_tenant, c->words[0], NULL, &o, e) != 0)
		return e->code;
	ctl_print_answer(c->o, o);
	return 0;
}

static int
tenant_set(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json)
	json_t *body = json_pack("{s:{}, s:{}}", "quotas", "rules");
	AUTO(auto_json) json_t *o = NULL;

	if (parse_settings(c, body, e) != 0 ||
	    ask_named(c, "PATCH", of_tenant, c->words[0], body, &o, e) != 0)
		return e->code;
	ctl_print_answer(c->o, o);
	return 0;
}

static int
tenant_switch(const struct ctl_call *c, int off, struct err *e)
{
	AUTO(auto_json) json_t *body = json_pack("{s:b}", "disabled", off);
	AUTO(auto_json) json_t *o = NULL;

	if (ask_named(c, "PATCH", of_tenant, c->words[0], body, &o, e) != 0)
		return e->code;
	ctl_print_done(
	    c->o, o, "tenant %s is %s", c->words[0], js_text(o, "state"));
	return 0;
}

static int
tenant_disable(const struct ctl_call *c, struct err *e)
{
	return tenant_switch(c, 1, e);
}

static int
tenant_enable(const struct ctl_call *c, struct err *e)
{
	return tenant_switch(c, 0, e);
}

/* Until nothing of it is left. */
static int
wait_until_gone(const struct ctl_call *c, struct err *e)
{
	const struct timespec pause = {.tv_nsec = GONE_POLL_NS};
	json_t *o = NULL;

	for (int i = 0; i < GONE_POLLS; i++) {
		int rc =
		    ask_named(c, "GET", of_tenant, c->words[0], NULL, &o, e);

		if (rc == ERR_NOTFOUND)
			return 0;
		if (rc != 0)
			return rc;
		json_decref(o);
		(void)nanosleep(&pause, NULL);
	}
	return err_set(e, ERR_BACKEND,
	    "tenant %s cannot call any more and is still being deleted: the "
	    "server goes on with it",
	    c->words[0]);
}

static int
tenant_delete(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;

	if (ask_named(c, "DELETE", of_tenant, c->words[0], NULL, &o, e) != 0 ||
	    wait_until_gone(c, e) != 0)
		return e->code;
	ctl_print_done(c->o, o, "tenant %s is gone", c->words[0]);
	return 0;
}

/* ---- tokens */

static int
token_body(const struct ctl_call *c, json_t *body, struct err *e)
{
	long long seconds;

	if (c->o->role != NULL)
		json_object_set_new(body, "role", json_string(c->o->role));
	if (c->o->name != NULL)
		json_object_set_new(body, "name",
		    js_string_bytes(c->o->name, strlen(c->o->name), NULL));
	if (c->o->expires == NULL)
		return 0;
	if (parse_duration(c->o->expires, &seconds, e) != 0)
		return e->code;
	json_object_set_new(body, "expires_in_s", json_integer(seconds));
	return 0;
}

static int
token_add(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *body = json_object();
	AUTO(auto_json) json_t *o = NULL;

	if (token_body(c, body, e) != 0 ||
	    ask_named(c, "POST", tokens_of_tenant, c->words[0], body, &o, e) !=
		0)
		return e->code;
	ctl_print_done(c->o, o, "%s", js_text(o, "token"));
	return 0;
}

static int
token_list(const struct ctl_call *c, struct err *e)
{
	static const struct ctl_column columns[] = {{"ID", "id"},
	    {"TENANT", "tenant"}, {"ROLE", "role"}, {"STATE", "state"},
	    {"EXPIRES", "expires_at"}, {"LAST USED", "last_used_at"},
	    {"NAME", "name"}};
	AUTO(auto_json) json_t *o = NULL;
	int rc = c->n == 0 ?
	    ask(c, "GET", "/api/v1/tokens", NULL, &o, e) :
	    ask_named(c, "GET", tokens_of_tenant, c->words[0], NULL, &o, e);

	if (rc != 0)
		return rc;
	ctl_print_list(c->o, o, "tokens", columns, ARRAY_LEN(columns));
	return 0;
}

static int
token_revoke(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;

	if (!token_is_id(c->words[0]))
		return err_set(e, ERR_INVAL,
		    "%.100s: want the id of a token, as token list prints it",
		    c->words[0]);
	if (ask_named(c, "DELETE", of_token, c->words[0], NULL, &o, e) != 0)
		return e->code;
	ctl_print_done(c->o, o, "token %s is revoked", c->words[0]);
	return 0;
}

/* As the server does when it reads the line. */
static int
check_role(const char *tenant, const char *word, struct err *e)
{
	enum principal_role role;

	if (principal_role_parse(word, &role) != 0)
		return err_set(e, ERR_INVAL,
		    "--role %.60s: want user, admin or metrics", word);
	if (role == PRINCIPAL_USER && strcmp(tenant, "-") == 0)
		return err_set(e, ERR_INVAL,
		    "a token of role user belongs to a tenant: name it");
	return 0;
}

/* A token and its line for TENANTS_FILE; nobody else is told. */
static int
token_make_line(const struct ctl_call *c, struct err *e)
{
	char text[TOKEN_TEXT_LEN + 1], digest[HEX_BYTES(TOKEN_DIGEST_LEN)];
	const char *role = c->o->role == NULL ? "user" : c->o->role;
	struct token_text of;
	long long seconds = 0;
	char *line;

	if (check_name(c->words[0], e) != 0 ||
	    check_role(c->words[0], role, e) != 0 ||
	    (c->o->expires != NULL &&
		parse_duration(c->o->expires, &seconds, e) != 0))
		return e->code;
	if (c->o->name != NULL && check_name(c->o->name, e) != 0)
		return e->code;
	token_make(&of, text);
	hex_encode(of.digest, sizeof(of.digest), digest);
	line = xasprintf("token %s %s %s %s", c->words[0], of.id, role, digest);
	(void)printf("%s\n%s", text, line);
	if (seconds != 0)
		(void)printf(" expires=%lld", (long long)time(NULL) + seconds);
	if (c->o->name != NULL)
		(void)printf(" name=%s", c->o->name);
	(void)putchar('\n');
	explicit_bzero(text, sizeof(text));
	free(line);
	return 0;
}

/* ---- the rest */

static int
usage_days(const struct ctl_call *c, struct err *e)
{
	static const struct ctl_column columns[] = {{"DAY", "day"},
	    {"RUNS", "runs"}, {"RUN_SECONDS", "run_seconds"},
	    {"OUTPUT", "output_bytes"}, {"ARTIFACTS", "artifact_bytes"},
	    {"SANDBOXES", "sandboxes"}, {"REFUSALS", "refusals"}};
	const char *days = c->words[1];
	char path[PATH_MAX_BYTES];
	AUTO(auto_json) json_t *o = NULL;

	if (check_name(c->words[0], e) != 0)
		return e->code;
	if (strncmp(days, "days=", 5) != 0 || strlen(days) > 8 ||
	    days[5] == '\0' || days[5 + strspn(days + 5, "0123456789")] != '\0')
		return err_set(
		    e, ERR_INVAL, "%.60s: want days=N, as in days=7", days);
	(void)snprintf(path, sizeof(path), "/api/v1/usage?tenant=%s&%s",
	    c->words[0], days);
	if (ask(c, "GET", path, NULL, &o, e) != 0)
		return e->code;
	ctl_print_list(c->o, o, "days", columns, ARRAY_LEN(columns));
	return 0;
}

static int
usage_show(const struct ctl_call *c, struct err *e)
{
	static const struct ctl_column columns[] = {{"TENANT", "tenant"},
	    {"SANDBOXES", "sandboxes"}, {"RUNNING", "runs_running"},
	    {"QUEUED", "runs_queued"}, {"CPU", "cpu_cores"},
	    {"MEMORY", "memory_bytes"}, {"RUN_SECONDS", "run_seconds_today"},
	    {"SPOOL", "spool_bytes"}, {"ARTIFACTS", "artifact_bytes"},
	    {"HISTORY", "history_bytes"}};
	AUTO(auto_json) json_t *o = NULL;

	if (c->n > 1)
		return usage_days(c, e);
	if (c->n > 0) {
		if (ask_named(c, "GET", usage_of_tenant, c->words[0], NULL, &o,
			e) != 0)
			return e->code;
		ctl_print_answer(c->o, o);
		return 0;
	}
	if (ask(c, "GET", "/api/v1/usage", NULL, &o, e) != 0)
		return e->code;
	if (json_object_get(o, "tenants") == NULL) /* a tenant's own token */
		ctl_print_answer(c->o, o);
	else
		ctl_print_list(c->o, o, "tenants", columns, ARRAY_LEN(columns));
	return 0;
}

static int
show(const struct ctl_call *c, const char *path, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;

	if (ask(c, "GET", path, NULL, &o, e) != 0)
		return e->code;
	ctl_print_answer(c->o, o);
	return 0;
}

static int
whoami(const struct ctl_call *c, struct err *e)
{
	return show(c, "/api/v1/whoami", e);
}

static int
health_ask(const struct ctl_call *c, struct err *e)
{
	return show(c, "/readyz", e);
}

#include "supervisor/ctl/ctl_calls_gen.h" /* commands[] */

/* ---- running */

static const struct ctl_command *
find(const struct ctl_options *o, int *own)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		const struct ctl_command *k = &commands[i];

		*own = k->second == NULL ? 1 : 2;
		if (o->nwords >= *own && strcmp(o->words[0], k->first) == 0 &&
		    (k->second == NULL || strcmp(o->words[1], k->second) == 0))
			return k;
	}
	return NULL;
}

/* Options that say where to ask and how to print are of use to all commands but
 * these. */
static const struct {
	int (*run)(const struct ctl_call *c, struct err *e);
	const char *useless;
} narrow[] = {{ctl_doctor_run, "--url --token-file --token"},
    {ctl_run_export, "--json"}, {ctl_tail_run, "--json"},
    {token_make_line, "--json --data-dir --url --token-file --token"}};

static bool
has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	while ((text = strstr(text, word)) != NULL) {
		text += n;
		if (strchr(" ]", *text) != NULL) /* or the end */
			return true;
	}
	return false;
}

/* An option that the help names behind any command is of use only there. */
static bool
is_of_use(const struct ctl_command *k, const char *option)
{
	bool is_general = true;

	if (has_word(k->follows, option))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(commands) && is_general; i++)
		is_general = !has_word(commands[i].follows, option);
	for (size_t i = 0; i < ARRAY_LEN(narrow) && is_general; i++)
		is_general = narrow[i].run != k->run ||
		    !has_word(narrow[i].useless, option);
	return is_general;
}

static int
usage_fails(const struct ctl_command *k, const char *why, const char *what,
    struct err *e)
{
	(void)err_set(e, ERR_INVAL, "%s%swant: sandboxctl %s%s%s%s%s", what,
	    why, k->first, k->second != NULL ? " " : "",
	    k->second != NULL ? k->second : "",
	    k->follows[0] != '\0' ? " " : "", k->follows);
	return CTL_USAGE;
}

static int
check_options(
    const struct ctl_options *o, const struct ctl_command *k, struct err *e)
{
	const char *name;
	size_t at = 0;

	while ((name = ctl_options_given(o, &at)) != NULL) {
		AUTO(auto_free) char *option = xasprintf("--%s", name);

		if (!is_of_use(k, option))
			return usage_fails(
			    k, " is of no use here; ", option, e);
	}
	return CTL_DONE;
}

int
ctl_commands_run(const struct ctl_options *o, struct err *e)
{
	struct ctl_call c = {.o = o};
	const struct ctl_command *k;
	int own, rc;

	if (o->nwords == 0) {
		(void)err_set(
		    e, ERR_INVAL, "want a command: sandboxctl --help");
		return CTL_USAGE;
	}
	k = find(o, &own);
	if (k == NULL) {
		(void)err_set(e, ERR_INVAL,
		    "no command %.60s%s%.60s: sandboxctl --help", o->words[0],
		    o->nwords > 1 ? " " : "", o->nwords > 1 ? o->words[1] : "");
		return CTL_USAGE;
	}
	c.words = o->words + own;
	c.n = o->nwords - own;
	if (c.n < k->least || c.n > k->most)
		return usage_fails(k, "", "", e);
	if (check_options(o, k, e) != CTL_DONE)
		return CTL_USAGE;
	if (!k->is_local && ctl_link_open(o, &c.link, e) != 0)
		return CTL_FAILED;
	rc = k->run(&c, e);
	ctl_link_close(c.link);
	if (rc == 0)
		return CTL_DONE;
	return rc == ERR_INVAL ? CTL_USAGE : CTL_FAILED;
}
