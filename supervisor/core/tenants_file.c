#include "supervisor/core/tenants_file.h"

#include <stdio.h>

#include "common/ceiling.h"
#include "common/hex.h"
#include "common/tenant_lines.h"
#include "supervisor/core/acts.h"
#include "supervisor/core/tenants.h"

/* Where tenants are NULL, a line is checked only. */
struct target {
	struct tenants *tenants;
	struct acts *acts; /* NULL: nobody is told */
	bool wants_tokens; /* a line makes a tenant or a token */
};

struct line {
	char *const *words;
	size_t n;
};

/* ---- one line */

static void
tell(const struct target *to, const char *what, const struct tenant *n,
    const char *subject, const char *detail)
{
	if (to->acts == NULL)
		return;
	acts_tell(to->acts,
	    &(struct act){.what = what,
		.origin = "TENANTS_FILE",
		.tenant = n == NULL ? NULL : n->row.name,
		.subject = subject,
		.detail = detail},
	    NULL, NULL);
}

/* What stands behind "key=", or NULL. */
static const char *
value_of(const char *word, const char *key)
{
	size_t n = strlen(key);

	return strncmp(word, key, n) == 0 && word[n] == '=' ? word + n + 1 :
							      NULL;
}

static void
grant(const struct target *to, struct tenant *n, enum quota_key key,
    int64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%lld", (long long)value);
	tenant_grant(n, key, value, NULL, NULL);
	tell(to, "tenant.quota", n, quota_rule(key)->key, text);
}

static int
set_quota(const struct target *to, struct tenant *n, char *word, struct err *e)
{
	char *equals = strchr(word, '=');
	enum quota_key key;
	int64_t value;

	if (equals == NULL)
		return err_set(
		    e, ERR_INVAL, "%.60s: want quota.KEY=VALUE", word);
	*equals = '\0';
	if (quota_find(word + strlen("quota."), &key, e) != 0 ||
	    quota_parse(key, equals + 1, &value, e) != 0)
		return e->code;
	if (n == NULL || (n->quota_is_set[key] && n->quota[key] == value))
		return 0;
	grant(to, n, key, value);
	return 0;
}

static void
take_rule(const struct target *to, struct tenant *n, const struct ceiling *c)
{
	const char *runtime =
	    c->runtime[0] != '\0' ? c->runtime : n->row.runtime;
	bool read_only = c->root == CEILING_ROOT_UNSET ?
	    n->row.read_only_root :
	    c->root == CEILING_ROOT_READ_ONLY;

	if (strcmp(runtime, n->row.runtime) == 0 &&
	    read_only == n->row.read_only_root)
		return;
	if (c->runtime[0] != '\0')
		tell(to, "tenant.rule", n, "runtime", runtime);
	else
		tell(to, "tenant.rule", n, "read_only_root",
		    read_only ? "true" : "false");
	tenant_rule(n, runtime, read_only, NULL, NULL);
}

/* Clamp quotas to the ceiling: the worker refuses what exceeds it. */
static int
take_ceiling(
    const struct target *to, struct tenant *n, const char *word, struct err *e)
{
	struct ceiling c = {.runtime = ""};

	if (ceiling_word(&c, word, e) != 0)
		return e->code;
	if (n == NULL)
		return 0;
	for (size_t i = 0; i < QUOTA_COUNT; i++)
		if (c.most[i] != 0 &&
		    (n->quota[i] == 0 || n->quota[i] > c.most[i]))
			grant(to, n, (enum quota_key)i, c.most[i]);
	take_rule(to, n, &c);
	return 0;
}

/* *out NULL: only checked. */
static int
find_or_add(const struct target *to, const char *name, struct tenant **out,
    struct err *e)
{
	*out = NULL;
	if (tenants_check_name(name, e) != 0)
		return e->code;
	if (to->tenants == NULL)
		return 0;
	*out = tenants_find_name(to->tenants, name);
	if (*out != NULL)
		return 0;
	if (tenant_add(to->tenants, name, NULL, NULL, out, e) != 0)
		return e->code;
	tell(to, "tenant.add", *out, NULL, NULL);
	return 0;
}

static void
disable(const struct target *to, struct tenant *n)
{
	if (n == NULL || n->row.disabled_ms != 0)
		return;
	tenant_use(n, TENANT_DISABLED, NULL, NULL);
	tell(to, "tenant.disable", n, NULL, NULL);
}

static int
apply_tenant(struct target *to, const struct line *l, struct err *e)
{
	struct tenant *n;

	if (l->n < 2)
		return err_set(e, ERR_INVAL,
		    "want tenant NAME [disabled] [quota.KEY=VALUE ...] "
		    "[ceiling.KEY=VALUE ...] [rule.KEY=VALUE ...]");
	if (find_or_add(to, l->words[1], &n, e) != 0)
		return e->code;
	if (strcmp(l->words[1], TENANT_DEFAULT_NAME) != 0)
		to->wants_tokens = true;
	for (size_t i = 2; i < l->n; i++) {
		if (strncmp(l->words[i], "quota.", 6) == 0) {
			if (set_quota(to, n, l->words[i], e) != 0)
				return e->code;
		} else if (ceiling_is_word(l->words[i])) {
			if (take_ceiling(to, n, l->words[i], e) != 0)
				return e->code;
		} else if (strcmp(l->words[i], "disabled") == 0) {
			disable(to, n);
		} else {
			return err_set(e, ERR_INVAL,
			    "%.60s: want disabled, quota.KEY=VALUE, "
			    "ceiling.KEY=VALUE or rule.KEY=VALUE",
			    l->words[i]);
		}
	}
	return 0;
}

static int
parse_expiry(const char *text, int64_t *out, struct err *e)
{
	size_t n = strlen(text);

	if (n == 0 || n > 12 || strspn(text, "0123456789") != n)
		return err_set(
		    e, ERR_INVAL, "expires: want seconds since 1970");
	*out = strtoll(text, NULL, 10) * 1000;
	return 0;
}

static int
parse_token(const struct line *l, struct token_text *of, struct token_wish *w,
    struct err *e)
{
	const char *value;

	if (l->n < 5)
		return err_set(e, ERR_INVAL,
		    "want token TENANT|- ID ROLE SHA256 [expires=SECONDS] "
		    "[name=WORD]");
	if (!token_is_id(l->words[2]))
		return err_set(e, ERR_INVAL,
		    "%.60s: a token's id is %d letters and digits", l->words[2],
		    TOKEN_ID_LEN);
	memcpy(of->id, l->words[2], sizeof(of->id));
	if (principal_role_parse(l->words[3], &w->role) != 0)
		return err_set(e, ERR_INVAL,
		    "%.60s: want user, admin or metrics", l->words[3]);
	if (hex_decode(l->words[4], of->digest, sizeof(of->digest)) != 0)
		return err_set(e, ERR_INVAL,
		    "%.70s: want the SHA-256 of the secret, 64 hexadecimal "
		    "digits",
		    l->words[4]);
	for (size_t i = 5; i < l->n; i++) {
		if ((value = value_of(l->words[i], "name")) != NULL)
			w->name = value;
		else if ((value = value_of(l->words[i], "expires")) == NULL)
			return err_set(e, ERR_INVAL,
			    "%.60s: want expires=SECONDS or name=WORD",
			    l->words[i]);
		else if (parse_expiry(value, &w->expires_ms, e) != 0)
			return e->code;
	}
	return 0;
}

static int
apply_token(struct target *to, const struct line *l, struct err *e)
{
	struct tenants *t = to->tenants;
	struct token_wish wish = {.name = ""};
	struct token_text of;
	struct tenant *n = NULL;
	bool is_new;

	if (parse_token(l, &of, &wish, e) != 0)
		return e->code;
	to->wants_tokens = true;
	if (t == NULL)
		return 0;
	if (strcmp(l->words[1], "-") != 0) {
		n = tenants_find_name(t, l->words[1]);
		if (n == NULL)
			return err_set(e, ERR_INVAL,
			    "there is no tenant %.60s: a line \"tenant %.60s\" "
			    "must come before",
			    l->words[1], l->words[1]);
	}
	is_new = tenants_find_token(t, of.id) == NULL;
	if (tenants_import_token(t, n, &wish, &of, e) != 0)
		return e->code;
	if (is_new)
		tell(to, "token.add", n, of.id, principal_role_word(wish.role));
	return 0;
}

static int
apply_line(char *const *words, size_t n, void *arg, struct err *e)
{
	const struct line l = {words, n};

	if (strcmp(words[0], "tenant") == 0)
		return apply_tenant(arg, &l, e);
	if (strcmp(words[0], "token") == 0)
		return apply_token(arg, &l, e);
	return err_set(e, ERR_INVAL,
	    "a line begins with tenant or token, not with %.60s", words[0]);
}

int
tenants_file_apply(struct tenants *t, struct acts *acts, const char *path,
    char *text, struct err *e)
{
	struct target to = {.tenants = t, .acts = acts};

	return tenant_lines_each(path, text, apply_line, &to, e);
}

int
tenants_file_check(
    const char *path, char *text, bool *wants_tokens, struct err *e)
{
	struct target to = {.tenants = NULL};
	int rc = tenant_lines_each(path, text, apply_line, &to, e);

	*wants_tokens = to.wants_tokens;
	return rc;
}
