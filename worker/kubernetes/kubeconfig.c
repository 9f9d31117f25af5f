/*
 * Of a kubeconfig three entries count: the context, and the cluster and the
 * user that it names.  What of them is not known here is left alone, but for
 * what would change where we go or who we are.
 */
#include "worker/kubernetes/kubeconfig.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include <openssl/evp.h>

#include "common/fd.h"
#include "common/js.h"
#include "common/text.h"
#include "common/xmalloc.h"
#include "worker/http/server_address.h"
#include "worker/kubernetes/yaml_tree.h"

#define NAME_MAX_SHOWN 100
#define TOKEN_MAX 65536
#define NAMESPACE_MAX 63
/* Where Debian, and images that have any, keep them. */
#define HOST_AUTHORITIES "/etc/ssl/certs/ca-certificates.crt"

/* What a kubeconfig is read from. */
struct kubeconfig_source {
	const char *name; /* for texts */
	const char *directory;
	const json_t *root;
};

/* One entry of a list, for texts, too. */
struct kubeconfig_entry {
	const char *kind; /* "cluster" */
	const char *name;
	const json_t *value; /* NULL: not there */
};

static void
tree_auto(json_t **tree)
{
	yaml_tree_free(*tree);
}

static void
secret_auto(char **s)
{
	if (*s != NULL)
		explicit_bzero(*s, strlen(*s));
	free(*s);
}

/* Names of others, fit to be shown. */
static const char *
shown(const char *name, char out[NAME_MAX_SHOWN])
{
	text_clean(out, NAME_MAX_SHOWN, name, strlen(name));
	return out;
}

static int
entry_fail(const struct kubeconfig_source *s, const struct kubeconfig_entry *of,
    struct err *e, const char *what)
{
	char name[NAME_MAX_SHOWN];

	return err_set(e, ERR_INVAL, "%.200s: %s %s: %s", s->name, of->kind,
	    shown(of->name, name), what);
}

/* Whatever a file or a parser said, a setting is wrong. */
static int
invalid(struct err *e)
{
	e->code = ERR_INVAL;
	return ERR_INVAL;
}

/* ---- entries */

/* [{"name": ..., kind: {...}}, ...] */
static int
find_entry(const struct kubeconfig_source *s, const char *list,
    struct kubeconfig_entry *out, struct err *e)
{
	const json_t *all = json_object_get(s->root, list), *one;
	size_t i;

	json_array_foreach (all, i, one)
		if (strcmp(js_text(one, "name"), out->name) == 0) {
			out->value = json_object_get(one, out->kind);
			break;
		}
	return json_is_object(out->value) ?
	    0 :
	    entry_fail(s, out, e, "there is no such entry");
}

static bool
is_set(const struct kubeconfig_entry *of, const char *key)
{
	const json_t *v = json_object_get(of->value, key);

	if (json_is_string(v))
		return json_string_value(v)[0] != '\0';
	return json_object_size(v) > 0 || json_array_size(v) > 0;
}

/* NULL: not there, or empty. */
static char *
copy_text(const struct kubeconfig_entry *of, const char *key)
{
	const char *text = js_text(of->value, key);

	return text[0] != '\0' ? xstrdup(text) : NULL;
}

static const struct unsupported {
	const char *key, *what;
} cluster_unsupported[] = {{"proxy-url",
    "proxy-url is not followed: name a server that is reached without a "
    "proxy"}},
  user_unsupported[] = {
      {"exec",
	  "exec would start a program for its credentials, which this server "
	  "does not do: give it a token or a client certificate, as of a "
	  "service account"},
      {"auth-provider",
	  "auth-provider is not supported: give it a token or a client "
	  "certificate, as of a service account"},
      {"username",
	  "a password is not supported: give it a token or a client "
	  "certificate"},
      {"as",
	  "impersonation (as) is not supported: use the credentials of the "
	  "user that is meant"},
      {"as-groups", "impersonation (as-groups) is not supported"},
      {"as-uid", "impersonation (as-uid) is not supported"}};

static int
check_unsupported(const struct kubeconfig_source *s,
    const struct kubeconfig_entry *of, const struct unsupported *all, size_t n,
    struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (is_set(of, all[i].key))
			return entry_fail(s, of, e, all[i].what);
	return 0;
}

/* ---- files and data */

/* Whitespace between is fine.  NULL: it is no base64. */
static char *
decode_base64(const char *text)
{
	EVP_ENCODE_CTX *ctx = EVP_ENCODE_CTX_new();
	size_t n = strlen(text);
	char *out = xcalloc(1, n + 1);
	int some = 0, last = 0;

	EVP_DecodeInit(ctx);
	if (EVP_DecodeUpdate(ctx, (unsigned char *)out, &some,
		(const unsigned char *)text, (int)n) < 0 ||
	    EVP_DecodeFinal(ctx, (unsigned char *)out + some, &last) != 1 ||
	    some == 0 || memchr(out, '\0', (size_t)some) != NULL) {
		secret_auto(&out);
		out = NULL;
	}
	EVP_ENCODE_CTX_free(ctx);
	return out;
}

static char *
absolute_path(const struct kubeconfig_source *s, const char *path)
{
	return path[0] == '/' ? xstrdup(path) :
				xasprintf("%s/%s", s->directory, path);
}

/* PEM, inline ("...-data", which counts when both are there) or in a file, of
 * which *file is the path; *out NULL: neither. */
static int
take_pem(const struct kubeconfig_source *s, const struct kubeconfig_entry *of,
    const char *key, char **out, char **file, struct err *e)
{
	AUTO(auto_free) char *data = xasprintf("%s-data", key);
	AUTO(auto_free) char *path = NULL;
	char what[2 * NAME_MAX_SHOWN];
	size_t n;

	if (is_set(of, data)) {
		*out = decode_base64(js_text(of->value, data));
		(void)snprintf(
		    what, sizeof(what), "%s is no text in base64", data);
		return *out != NULL ? 0 : entry_fail(s, of, e, what);
	}
	if (!is_set(of, key))
		return 0;
	path = absolute_path(s, js_text(of->value, key));
	if (fd_read_file(path, KUBECONFIG_BYTES_MAX, out, &n, e) != 0) {
		(void)err_wrap(e, "%.100s: %s", s->name, key);
		return invalid(e);
	}
	if (file != NULL) {
		*file = path;
		path = NULL;
	}
	return 0;
}

static int
check_url(const struct kubeconfig_source *s, const struct kubeconfig_entry *of,
    const char *url, struct err *e)
{
	struct server_address at;
	struct err why;
	char what[ERR_TEXT_MAX];

	if (strncmp(url, "https://", strlen("https://")) != 0)
		return entry_fail(s, of, e,
		    "its server is not at https://: credentials are sent over "
		    "TLS only");
	if (server_address_parse(url, &at, &why) == 0)
		return 0;
	(void)snprintf(what, sizeof(what), "server: %.400s", why.msg);
	return entry_fail(s, of, e, what);
}

/* It becomes a URL's host. */
static int
check_server_name(const struct kubeconfig_source *s,
    const struct kubeconfig_entry *of, const char *name, struct err *e)
{
	AUTO(auto_free) char *url = xasprintf("https://%s/", name);
	struct server_address at;

	if (server_address_parse(url, &at, NULL) == 0 &&
	    strcasecmp(at.name, name) == 0)
		return 0;
	return entry_fail(s, of, e, "tls-server-name is no name of a host");
}

static bool
skips_verification(const struct kubeconfig_entry *of)
{
	const char *word = js_text(of->value, "insecure-skip-tls-verify");

	return word[0] != '\0' && strcasecmp(word, "false") != 0;
}

/* ---- the parts of what is wanted */

static int
use_host_authorities(const char *name, char **out, struct err *e)
{
	size_t n;

	if (fd_read_file(
		HOST_AUTHORITIES, KUBECONFIG_BYTES_MAX, out, &n, NULL) == 0)
		return 0;
	return err_set(e, ERR_INVAL,
	    "%.200s: the cluster has no certificate-authority, and this host "
	    "no " HOST_AUTHORITIES ": name the authority of its certificate",
	    name);
}

static int
take_cluster(const struct kubeconfig_source *s,
    const struct kubeconfig_entry *of, struct kubeconfig *out, struct err *e)
{
	if (check_unsupported(s, of, cluster_unsupported,
		ARRAY_LEN(cluster_unsupported), e) != 0)
		return ERR_INVAL;
	if (skips_verification(of))
		return entry_fail(s, of, e,
		    "insecure-skip-tls-verify would send credentials to "
		    "whoever answers: give it certificate-authority instead");
	out->url = copy_text(of, "server");
	if (out->url == NULL)
		return entry_fail(s, of, e, "it names no server");
	out->tls_server_name = copy_text(of, "tls-server-name");
	if (check_url(s, of, out->url, e) != 0 ||
	    (out->tls_server_name != NULL &&
		check_server_name(s, of, out->tls_server_name, e) != 0) ||
	    take_pem(s, of, "certificate-authority", &out->ca, &out->ca_file,
		e) != 0)
		return ERR_INVAL;
	return out->ca != NULL ? 0 : use_host_authorities(s->name, &out->ca, e);
}

/* No blank, no control character: it stands in a header. */
static bool
is_token(const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 0x7f)
			return false;
	return n > 0 && n <= TOKEN_MAX;
}

/* A file counts more than a token beside it, as for kubectl. */
static int
take_token(const struct kubeconfig_source *s, const struct kubeconfig_entry *of,
    struct kubeconfig *out, struct err *e)
{
	if (is_set(of, "tokenFile")) {
		out->token_file =
		    absolute_path(s, js_text(of->value, "tokenFile"));
		if (kubeconfig_read_token(out->token_file, &out->token, e) == 0)
			return 0;
		(void)err_wrap(e, "%.100s: tokenFile", s->name);
		return invalid(e);
	}
	out->token = copy_text(of, "token");
	if (out->token != NULL && !is_token(out->token))
		return entry_fail(s, of, e,
		    "its token has a blank or a character that no token has");
	return 0;
}

static int
take_user(const struct kubeconfig_source *s, const struct kubeconfig_entry *of,
    struct kubeconfig *out, struct err *e)
{
	if (check_unsupported(
		s, of, user_unsupported, ARRAY_LEN(user_unsupported), e) != 0 ||
	    take_pem(s, of, "client-certificate", &out->cert, NULL, e) != 0 ||
	    take_pem(s, of, "client-key", &out->key, NULL, e) != 0 ||
	    take_token(s, of, out, e) != 0)
		return ERR_INVAL;
	if ((out->cert == NULL) != (out->key == NULL))
		return entry_fail(s, of, e,
		    "of client-certificate and client-key there is one without "
		    "the other");
	if (out->cert == NULL && out->token == NULL)
		return entry_fail(
		    s, of, e, "it has no token and no client certificate");
	return 0;
}

/* A DNS label. */
static bool
is_namespace(const char *s)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t n = strlen(s);

	return n > 0 && n <= NAMESPACE_MAX && strspn(s, good) == n &&
	    s[0] != '-' && s[n - 1] != '-';
}

static int
take_context(const struct kubeconfig_source *s,
    const struct kubeconfig_entry *of, struct kubeconfig *out, struct err *e)
{
	struct kubeconfig_entry cluster = {.kind = "cluster"},
				user = {.kind = "user"};
	const char *ns = js_text(of->value, "namespace");

	cluster.name = js_text(of->value, "cluster");
	user.name = js_text(of->value, "user");
	if (ns[0] != '\0' && !is_namespace(ns))
		return entry_fail(s, of, e, "its namespace is no name of one");
	out->ns = xstrdup(ns[0] != '\0' ? ns : "default");
	if (find_entry(s, "clusters", &cluster, e) != 0 ||
	    find_entry(s, "users", &user, e) != 0 ||
	    take_cluster(s, &cluster, out, e) != 0)
		return ERR_INVAL;
	return take_user(s, &user, out, e);
}

/* ---- public: files of kubectl's */

int
kubeconfig_parse(const char *text, size_t n, const char *directory,
    const char *name, const char *context, struct kubeconfig *out,
    struct err *e)
{
	AUTO(tree_auto) json_t *root = NULL;
	struct kubeconfig_source s = {.name = name, .directory = directory};
	struct kubeconfig_entry of = {.kind = "context", .name = context};
	struct kubeconfig k = {.url = NULL};

	if (n > KUBECONFIG_BYTES_MAX)
		return err_set(e, ERR_INVAL, "%.200s: more than %d bytes", name,
		    KUBECONFIG_BYTES_MAX);
	if (yaml_tree_parse(text, n, &root, e) != 0) {
		(void)err_wrap(e, "%.200s", name);
		return invalid(e);
	}
	s.root = root;
	if (context == NULL || context[0] == '\0')
		of.name = js_text(root, "current-context");
	if (of.name[0] == '\0')
		return err_set(e, ERR_INVAL,
		    "%.200s: it has no current-context: name one by "
		    "KUBERNETES_CONTEXT",
		    name);
	if (find_entry(&s, "contexts", &of, e) != 0 ||
	    take_context(&s, &of, &k, e) != 0) {
		kubeconfig_clear(&k);
		return ERR_INVAL;
	}
	*out = k;
	return 0;
}

static char *
directory_of(const char *path)
{
	const char *end = strrchr(path, '/');

	if (end == NULL)
		return xstrdup(".");
	return end == path ? xstrdup("/") :
			     xstrndup(path, (size_t)(end - path));
}

int
kubeconfig_read(const char *path, const char *context, struct kubeconfig *out,
    struct err *e)
{
	AUTO(auto_free) char *directory = directory_of(path);
	AUTO(secret_auto) char *text = NULL;
	size_t n;

	if (fd_read_file(path, KUBECONFIG_BYTES_MAX, &text, &n, e) != 0) {
		(void)err_wrap(e, "KUBECONFIG");
		return invalid(e);
	}
	return kubeconfig_parse(text, n, directory, path, context, out, e);
}

/* ---- public: what a Pod has */

int
kubeconfig_read_token(const char *path, char **out, struct err *e)
{
	AUTO(secret_auto) char *text = NULL;
	size_t n, skip;

	if (fd_read_file(path, TOKEN_MAX, &text, &n, e) != 0) {
		e->code = ERR_BACKEND;
		return ERR_BACKEND;
	}
	while (n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL)
		text[--n] = '\0';
	skip = strspn(text, " \t\r\n");
	if (!is_token(text + skip))
		return err_set(e, ERR_BACKEND, "%.200s: it has no token", path);
	*out = xstrdup(text + skip);
	return 0;
}

static int
take_namespace(const char *directory, struct kubeconfig *out, struct err *e)
{
	AUTO(auto_free) char *path = xasprintf("%s/namespace", directory);
	char *text = NULL;
	size_t n;

	if (access(path, F_OK) == -1 && errno == ENOENT) {
		out->ns = xstrdup("default");
		return 0;
	}
	if (fd_read_file(path, NAMESPACE_MAX + 1, &text, &n, e) != 0)
		return invalid(e);
	out->ns = text;
	text[strcspn(text, "\n")] = '\0';
	return is_namespace(text) ?
	    0 :
	    err_set(e, ERR_INVAL, "%.200s: it has no namespace", path);
}

static int
take_account(const char *directory, struct kubeconfig *out, struct err *e)
{
	size_t n;

	out->ca_file = xasprintf("%s/ca.crt", directory);
	out->token_file = xasprintf("%s/token", directory);
	if (fd_read_file(out->ca_file, KUBECONFIG_BYTES_MAX, &out->ca, &n, e) !=
		0 ||
	    kubeconfig_read_token(out->token_file, &out->token, e) != 0) {
		(void)err_wrap(e, "the Pod's service account");
		return invalid(e);
	}
	return take_namespace(directory, out, e);
}

int
kubeconfig_in_cluster(
    const char *directory, struct kubeconfig *out, struct err *e)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	struct kubeconfig k = {.url = NULL};
	struct server_address at;

	if (host == NULL || port == NULL || host[0] == '\0' || port[0] == '\0')
		return err_set(e, ERR_INVAL,
		    "KUBECONFIG is not set, and this is no Pod of a cluster "
		    "(KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are "
		    "not set): name a kubeconfig file");
	k.url = xasprintf(
	    strchr(host, ':') != NULL ? "https://[%s]:%s" : "https://%s:%s",
	    host, port);
	if (server_address_parse(k.url, &at, e) != 0)
		(void)err_wrap(
		    e, "KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT");
	else if (take_account(
		     directory != NULL ? directory : KUBECONFIG_ACCOUNT, &k,
		     e) == 0) {
		*out = k;
		return 0;
	}
	kubeconfig_clear(&k);
	return ERR_INVAL;
}

void
kubeconfig_set_token(struct kubeconfig *k, char *token)
{
	secret_auto(&k->token);
	k->token = token;
}

void
kubeconfig_clear(struct kubeconfig *k)
{
	free(k->url);
	free(k->tls_server_name);
	free(k->ca);
	free(k->cert);
	secret_auto(&k->key);
	secret_auto(&k->token);
	free(k->token_file);
	free(k->ca_file);
	free(k->ns);
	memset(k, 0, sizeof(*k));
}
