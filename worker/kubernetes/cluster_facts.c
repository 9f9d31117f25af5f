#include "worker/kubernetes/kubernetes_int.h"

#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "common/conf.h"
#include "common/js.h"
#include "common/text.h"
#include "worker/kubernetes/pod_namespace.h"

#define DOCTOR "doctor" /* in the place of an instance's id */

struct asking_facts {
	struct event_base *base;
	struct backend_facts *out;
	int rc;
	struct err why;
};

static void
version_cb(const struct cluster_answer *a, void *arg)
{
	struct asking_facts *f = arg;
	const char *version = js_text(a->body, "gitVersion");

	f->rc = pod_check(a, "version", &f->why);
	text_clean(
	    f->out->engine, sizeof(f->out->engine), version, strlen(version));
	(void)event_base_loopbreak(f->base);
}

/* ---- the network: as a worker tries it at its start */

static void
tried_cb(enum network_verdict verdict, const char *why, void *arg)
{
	static const enum backend_network said[] = {
	    [NETWORK_UNKNOWN] = BACKEND_NETWORK_UNKNOWN,
	    [NETWORK_CLOSED] = BACKEND_NETWORK_CLOSED,
	    [NETWORK_OPEN] = BACKEND_NETWORK_OPEN};
	struct asking_facts *f = arg;

	f->out->network = said[verdict];
	(void)snprintf(
	    f->out->network_why, sizeof(f->out->network_why), "%s", why);
	(void)event_base_loopbreak(f->base);
}

static void
try_network(struct asking_facts *f, const struct conf *conf, struct cluster *c)
{
	struct pod_settings settings;
	struct err why;

	/* Of tenants' namespaces each is tried when it is first needed. */
	if (strcmp(conf_str(conf, CONF_SANDBOX_NETWORK_MODE), "none") != 0 ||
	    pod_namespace_is_per_tenant(
		conf_str(conf, CONF_KUBERNETES_SANDBOX_NAMESPACE)))
		return;
	if (pod_settings_init(&settings, conf, &why) == 0) {
		(void)network_trial_start(
		    &(struct network_setup){.base = f->base,
			.cluster = c,
			.ns = settings.ns[0] != '\0' ? settings.ns :
						       cluster_namespace(c),
			.id = DOCTOR,
			.settings = &settings},
		    tried_cb, f);
		(void)event_base_dispatch(f->base);
	} else {
		tried_cb(NETWORK_UNKNOWN, why.msg, f);
	}
	pod_settings_clear(&settings);
}

/* ---- all of it */

static void
take_wire(const struct cluster *c, struct backend_facts *out)
{
	struct cluster_facts said;

	cluster_look(c, &said);
	(void)snprintf(out->where, sizeof(out->where), "%s", said.url);
	out->is_remote = !said.is_loopback;
	out->has_tls = true;
	out->peer_ends_ms = said.peer_ends_ms;
	out->ca_ends_ms = said.ca_ends_ms;
	out->own_ends_ms = said.own_ends_ms;
}

int
kubernetes_ask_facts(
    const struct conf *conf, struct backend_facts *out, struct err *e)
{
	struct asking_facts f = {.out = out, .rc = ERR_BACKEND};
	struct cluster *c = NULL;

	memset(out, 0, sizeof(*out));
	out->ahead_ms = INT64_MIN;
	out->is_cluster = true;
	f.base = event_base_new();
	if (f.base == NULL)
		return err_set(e, ERR_BACKEND, "no event base");
	f.rc = cluster_open(f.base,
	    &(struct cluster_setup){
		.kubeconfig = conf_str(conf, CONF_KUBECONFIG),
		.context = conf_str(conf, CONF_KUBERNETES_CONTEXT)},
	    &c, &f.why);
	if (f.rc == 0) {
		(void)cluster_start(c,
		    &(struct cluster_ask){.method = "GET",
			.path = "/version",
			.timeout_ms = KUBERNETES_ASK_MS,
			.on_done = version_cb,
			.arg = &f});
		(void)event_base_dispatch(f.base);
		take_wire(c, out);
		if (f.rc == 0)
			try_network(&f, conf, c);
		cluster_free(c);
		(void)event_base_loop(f.base, EVLOOP_NONBLOCK); /* later.h */
	}
	event_base_free(f.base);
	if (f.rc != 0 && e != NULL)
		*e = f.why;
	return f.rc;
}
