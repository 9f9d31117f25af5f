#include "worker/kubernetes/kubeconfig.h"

#include <stdio.h>

#include "common/xmalloc.h"
#include "tests/unit/test.h"

/* ---- one of its parts may be another */

#define CLUSTER                                                                \
	"    server: https://10.0.0.1:6443\n"                                  \
	"    certificate-authority-data: UEVNIG9mIGNh\n"
#define USER "    token: secret-1\n"
#define CONTEXT "    namespace: boxes\n"

struct parts {
	const char *cluster, *user, *context;
};

static int
parse(const struct parts *p, struct kubeconfig *k, struct err *e)
{
	AUTO(auto_free)
	char *text = xasprintf("apiVersion: v1\n"
			       "kind: Config\n"
			       "preferences: {}\n"
			       "current-context: one\n"
			       "clusters:\n"
			       "- name: c\n"
			       "  cluster:\n%s"
			       "users:\n"
			       "- name: other\n"
			       "  user: {token: no}\n"
			       "- name: u\n"
			       "  user:\n%s"
			       "contexts:\n"
			       "- name: one\n"
			       "  context:\n"
			       "    cluster: c\n"
			       "    user: u\n%s"
			       "- name: two\n"
			       "  context: {cluster: c, user: other}\n",
	    p->cluster != NULL ? p->cluster : CLUSTER,
	    p->user != NULL ? p->user : USER,
	    p->context != NULL ? p->context : CONTEXT);

	return kubeconfig_parse(
	    text, strlen(text), "/dir", "/dir/config", NULL, k, e);
}

static void
expect_refused(const struct parts *p, const char *words)
{
	struct kubeconfig k;
	struct err e;

	if (parse(p, &k, &e) != ERR_INVAL || strstr(e.msg, words) == NULL)
		fail_msg("want \"%s\", is \"%s\"", words, e.msg);
	assert_non_null(strstr(e.msg, "/dir/config: "));
	assert_null(strstr(e.msg, "secret"));
}

TEST(the_current_context_counts)
{
	struct kubeconfig k;
	struct err e;

	assert_int_equal(parse(&(struct parts){.user = NULL}, &k, &e), 0);
	assert_string_equal(k.url, "https://10.0.0.1:6443");
	assert_string_equal(k.ca, "PEM of ca");
	assert_string_equal(k.token, "secret-1");
	assert_string_equal(k.ns, "boxes");
	assert_null(k.tls_server_name);
	assert_null(k.cert);
	assert_null(k.token_file);
	kubeconfig_clear(&k);
	assert_null(k.token);
}

TEST(another_context_may_be_named)
{
	static const char text[] =
	    "{\"clusters\": [{\"name\": \"c\", \"cluster\": {\"server\": "
	    "\"https://c\", \"tls-server-name\": \"k.example\", "
	    "\"certificate-authority-data\": \"UEVN\"}}], "
	    "\"users\": [{\"name\": \"u\", \"user\": {"
	    "\"client-certificate-data\": \"UEV\\nN\", "
	    "\"client-key-data\": \"S0VZ\", \"exec\": null}}], "
	    "\"contexts\": [{\"name\": \"x\", \"context\": "
	    "{\"cluster\": \"c\", \"user\": \"u\"}}]}";
	struct kubeconfig k;
	struct err e;

	assert_int_equal(
	    kubeconfig_parse(text, strlen(text), "/", "f", "x", &k, &e), 0);
	assert_string_equal(k.tls_server_name, "k.example");
	assert_string_equal(k.cert, "PEM");
	assert_string_equal(k.key, "KEY");
	assert_string_equal(k.ns, "default");
	assert_null(k.token);
	kubeconfig_clear(&k);
	assert_int_equal(
	    kubeconfig_parse(text, strlen(text), "/", "f", "y", &k, &e),
	    ERR_INVAL);
	assert_string_equal(e.msg, "f: context y: there is no such entry");
	assert_int_equal(
	    kubeconfig_parse(text, strlen(text), "/", "f", NULL, &k, &e),
	    ERR_INVAL);
	assert_non_null(strstr(e.msg, "no current-context"));
}

TEST(what_cannot_be_followed_is_refused_by_name)
{
	static const struct {
		struct parts parts;
		const char *words;
	} bad[] = {
	    {{.user = "    exec: {command: aws}\n"}, "user u: exec would"},
	    {{.user = USER "    auth-provider: {name: oidc}\n"},
		"auth-provider is not supported"},
	    {{.user = "    username: me\n    password: secret\n"},
		"a password is not supported"},
	    {{.user = USER "    as: root\n"}, "impersonation"},
	    {{.user = "    token: \"secret a\"\n"}, "its token has a blank"},
	    {{.user = "    token: ~\n"}, "no token and no client"},
	    {{.user = "    client-certificate-data: UEVN\n"},
		"one without the other"},
	    {{.user = "    client-certificate-data: secret!\n"},
		"client-certificate-data is no text in base64"},
	    {{.cluster = CLUSTER "    insecure-skip-tls-verify: true\n"},
		"cluster c: insecure-skip-tls-verify would"},
	    {{.cluster = CLUSTER "    proxy-url: http://p:1\n"},
		"proxy-url is not followed"},
	    {{.cluster = "    server: http://10.0.0.1\n"}, "over TLS only"},
	    {{.cluster = "    server: https://u@10.0.0.1\n"}, "names a user"},
	    {{.cluster = "    server: https://10.0.0.1:22\n"}, "port is none"},
	    {{.cluster = "    tls-server-name: x\n"}, "it names no server"},
	    {{.cluster = "    server: [x]\n"}, "it names no server"},
	    {{.cluster = CLUSTER "    tls-server-name: a/b\n"},
		"tls-server-name is no name"},
	    {{.context = "    namespace: ../kube-system\n"},
		"context one: its namespace is no name"}};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		expect_refused(&bad[i].parts, bad[i].words);
}

TEST(verification_that_is_not_skipped_is_fine)
{
	struct kubeconfig k;
	struct err e;

	assert_int_equal(parse(&(struct parts){.cluster = CLUSTER
				   "    insecure-skip-tls-verify: false\n"},
			     &k, &e),
	    0);
	kubeconfig_clear(&k);
}

TEST(what_is_no_yaml_of_ours_is_refused)
{
	static const struct {
		const char *text, *words;
	} bad[] = {{"", "it is empty"}, {"a: [", "line 2: "},
	    {"a: b\na: c\n", "line 2: a key is there twice"},
	    {"a: &x {b: c}\nkey: *x\n", "alias"},
	    {"a: \"\\0\"\n", "a NUL character"},
	    {"a: b\n---\na: b\n", "it is two documents"},
	    {"? [a]\n: b\n", "a key is no text"},
	    {"[[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]]", "it nests too deep"}};
	struct kubeconfig k;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (kubeconfig_parse(bad[i].text, strlen(bad[i].text), "/", "f",
			NULL, &k, &e) != ERR_INVAL ||
		    strstr(e.msg, bad[i].words) == NULL)
			fail_msg("%s: %s", bad[i].text, e.msg);
}

/* ---- files */

#define TEMPLATE "/tmp/test-kubeconfig-XXXXXX"

static char directory[sizeof(TEMPLATE)];

static void
write_file(const char *name, const char *text)
{
	AUTO(auto_free) char *path = xasprintf("%s/%s", directory, name);
	FILE *f = fopen(path, "we");

	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static char *
path_of(const char *name)
{
	return xasprintf("%s/%s", directory, name);
}

static void
remove_files(void)
{
	static const char *const names[] = {
	    "config", "ca.crt", "token", "namespace"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO(auto_free) char *path = path_of(names[i]);

		(void)unlink(path);
	}
}

TEST(names_of_files_are_relative_to_it)
{
	AUTO(auto_free) char *path = path_of("config");
	struct kubeconfig k;
	struct err e;

	write_file("config",
	    "current-context: x\n"
	    "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
	    "clusters: [{name: c, cluster: {server: 'https://c:6443/p', "
	    "certificate-authority: ca.crt}}]\n"
	    "users: [{name: u, user: {tokenFile: token, token: old}}]\n");
	write_file("ca.crt", "PEM\n");
	write_file("token", " secret-2\n");
	assert_int_equal(kubeconfig_read(path, NULL, &k, &e), 0);
	assert_string_equal(k.ca, "PEM\n");
	assert_string_equal(k.token, "secret-2");
	assert_non_null(strstr(k.token_file, directory));
	assert_non_null(strstr(k.ca_file, directory));
	kubeconfig_clear(&k);
	write_file("token", "\n");
	assert_int_equal(kubeconfig_read(path, NULL, &k, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "/token: it has no token"));
	remove_files();
	assert_int_equal(kubeconfig_read(path, NULL, &k, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "KUBECONFIG: "));
}

TEST(a_pod_has_a_service_account)
{
	struct kubeconfig k;
	struct err e;

	(void)unsetenv("KUBERNETES_SERVICE_HOST");
	assert_int_equal(kubeconfig_in_cluster(directory, &k, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "this is no Pod"));
	(void)setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	(void)setenv("KUBERNETES_SERVICE_PORT", "443", 1);
	assert_int_equal(kubeconfig_in_cluster(directory, &k, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "the Pod's service account: "));
	write_file("ca.crt", "PEM\n");
	write_file("token", "secret-3");
	write_file("namespace", "servers");
	assert_int_equal(kubeconfig_in_cluster(directory, &k, &e), 0);
	assert_string_equal(k.url, "https://[fd00::1]:443");
	assert_string_equal(k.ca, "PEM\n");
	assert_string_equal(k.token, "secret-3");
	assert_string_equal(k.ns, "servers");
	kubeconfig_clear(&k);
	write_file("namespace", "../x");
	assert_int_equal(kubeconfig_in_cluster(directory, &k, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "it has no namespace"));
	remove_files();
}

static int
setup(void **state)
{
	(void)snprintf(directory, sizeof(directory), "%s", TEMPLATE);
	*state = mkdtemp(directory);
	return *state != NULL ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	remove_files();
	return rmdir(directory);
}

TEST_MAIN(setup, teardown)
