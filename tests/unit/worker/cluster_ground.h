/* cluster_ground.h - a client of an API server that can misbehave */
#ifndef TESTS_WORKER_CLUSTER_GROUND_H
#define TESTS_WORKER_CLUSTER_GROUND_H

struct ground;
#define TEST_STATE struct ground *g

#include "tests/unit/worker/fake_engine.h"
#include "tests/unit/worker/tls_ground.h"
#include "worker/kubernetes/cluster.h"
#include "tests/unit/test.h"

struct ground {
	struct event_base *base;
	struct fake_engine server;
	struct identity identity;
	char config[64], token[64]; /* paths */
	struct cluster *cluster;
};

struct said {
	bool done;
	int rc;
	long status;
	char reason[64];
	char why[ERR_TEXT_MAX];
	char kind[64]; /* of the body */
};

static inline void
write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline void
write_config(struct ground *g, const char *url)
{
	AUTO(auto_free)
	char *text = xasprintf(
	    "current-context: x\n"
	    "contexts: [{name: x, context: {cluster: c, user: u, "
	    "namespace: boxes}}]\n"
	    "clusters: [{name: c, cluster: {server: 'https%s/prefix', "
	    "certificate-authority: %s}}]\n"
	    "users: [{name: u, user: {tokenFile: %s}}]\n",
	    url + strlen("tcp"), g->identity.cert_path, g->token);

	write_text(g->config, text);
	write_text(g->token, "secret-1\n");
}

static inline int
ground_setup(void **state)
{
	static struct ground g;
	char url[64];
	struct err e;

	memset(&g, 0, sizeof(g));
	g.base = event_base_new();
	fake_engine_init(&g.server, g.base);
	identity_make(&g.identity, "IP:127.0.0.1");
	tls_setup(&g.server, &g.identity, NULL, url);
	(void)snprintf(g.config, sizeof(g.config), "/tmp/test-cluster-%ld",
	    (long)getpid());
	(void)snprintf(g.token, sizeof(g.token), "/tmp/test-cluster-%ld.token",
	    (long)getpid());
	write_config(&g, url);
	assert_int_equal(cluster_open(g.base,
			     &(struct cluster_setup){.kubeconfig = g.config},
			     &g.cluster, &e),
	    0);
	*state = &g;
	return 0;
}

static inline int
ground_teardown(void **state)
{
	struct ground *g = *state;

	cluster_free(g->cluster);
	fake_engine_clear(&g->server);
	tls_clear(&g->server);
	fixture_settle(g->base);
	event_base_free(g->base);
	identity_clear(&g->identity);
	(void)unlink(g->config);
	(void)unlink(g->token);
	return 0;
}

static inline void
said_cb(const struct cluster_answer *a, void *arg)
{
	struct said *s = arg;

	assert_false(s->done);
	s->done = true;
	s->rc = a->rc;
	s->status = a->status;
	(void)snprintf(s->reason, sizeof(s->reason), "%s", a->reason);
	(void)snprintf(s->why, sizeof(s->why), "%s", a->why->msg);
	(void)snprintf(s->kind, sizeof(s->kind), "%s",
	    json_string_value(json_object_get(a->body, "kind")) != NULL ?
		json_string_value(json_object_get(a->body, "kind")) :
		"");
}

static inline struct cluster_call *
ask_start(struct ground *g, struct said *s, struct cluster_ask what)
{
	memset(s, 0, sizeof(*s));
	what.on_done = said_cb;
	what.arg = s;
	return cluster_start(g->cluster, &what);
}

static inline void
ask(struct ground *g, struct said *s, const char *method, uint32_t timeout_ms)
{
	(void)ask_start(g, s,
	    (struct cluster_ask){
		.method = method, .path = "/x", .timeout_ms = timeout_ms});
	fixture_loop(g->base, &s->done);
}

#endif
