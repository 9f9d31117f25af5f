/*
 * prepared_boxes SOCKET INSTANCE INDEX AGENT - what a worker does of preparing
 *
 * Has the engine at SOCKET make a box for each line "NAME IMAGE" of its input,
 * with AGENT in its image (delivery_image.h), as worker INDEX of INSTANCE. Says
 * "up" when the engine is there, and for each "NAME ok ID" or "NAME failed
 * WHY". Goes on until its input ends.
 */
#include <stdio.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/conf.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/backends.h"
#include "worker/link/delivery_image.h"
#include "worker/policy.h"

#define WORD "%127s"

struct wanted {
	char name[128], image[128];
	struct backend_spec spec;
};

static struct event_base *base;
static struct conf *conf;
static struct policy policy;
static struct backend *backend;
static struct backend_wishes wishes;
static bool is_up;

static void
must(int rc, const struct err *e)
{
	if (rc == 0)
		return;
	(void)fprintf(stderr, "%s\n", e->msg);
	exit(1);
}

static void
on_state(bool up, const char *detail, void *arg)
{
	(void)detail;
	(void)arg;
	if (up && !is_up)
		(void)puts("up");
	is_up = up;
}

static void
on_change(const struct backend_handle *h, enum backend_change what, void *arg)
{
	(void)h;
	(void)what;
	(void)arg;
}

static void
created_cb(
    int rc, const struct backend_handle *h, const struct err *why, void *arg)
{
	struct wanted *w = arg;

	(void)printf("%s %s %s\n", w->name, rc == 0 ? "ok" : "failed",
	    rc == 0 ? backend_handle_text(h) : why->msg);
	free(w);
}

static void
create(const char *line)
{
	struct wanted *w = xcalloc(1, sizeof(*w));

	if (sscanf(line, WORD " " WORD, w->name, w->image) != 2)
		exit(2);
	w->spec = (struct backend_spec){.name = w->name,
	    .identity = {.tenant = "t"},
	    .template = {.image = w->image,
		.memory_bytes = UINT64_C(128) << 20,
		.nano_cpus = 1000000000,
		.pids = 64,
		.runtime = ""},
	    .claim = {.identifier = "a"},
	    .wishes = &wishes};
	(void)backend->ops->create(backend, &w->spec, created_cb, w);
}

static void
input_cb(evutil_socket_t fd, short what, void *arg)
{
	static char text[65536];
	static size_t len;
	ssize_t n = read(fd, text + len, sizeof(text) - 1 - len);
	char *end;

	(void)what;
	(void)arg;
	if (n <= 0) {
		(void)event_base_loopbreak(base);
		return;
	}
	len += (size_t)n;
	text[len] = '\0';
	while ((end = memchr(text, '\n', len)) != NULL) {
		*end = '\0';
		create(text);
		len -= (size_t)(end + 1 - text);
		memmove(text, end + 1, len + 1);
	}
}

static void
open_backend(char **argv)
{
	static const struct backend_watch watch = {
	    .on_state = on_state, .on_change = on_change};
	const struct backend_start start = {.base = base,
	    .instance_id = argv[2],
	    .index = (unsigned int)strtoul(argv[3], NULL, 10),
	    .agent = argv[4],
	    .policy = &policy,
	    .watch = &watch};
	AUTO(auto_free) char *host = xasprintf("unix://%s", argv[1]);
	struct agent_delivery *d = delivery_image_new();
	struct err e;

	must(conf_load_env(conf, &e), &e);
	must(conf_set(conf, "DOCKER_HOST", host, &e), &e);
	must(conf_set(conf, "AUTO_BUILD_SANDBOX_IMAGE", "false", &e), &e);
	must(policy_init(&policy, conf, &e), &e);
	must(backend_open_configured(conf, &start, &backend, &e), &e);
	must(d->ops->prepare(d, &(struct uuid){{0}}, &wishes, &e), &e);
	free(d);
}

int
main(int argc, char **argv)
{
	struct event *input;

	if (argc != 5)
		return 2;
	log_init("prepared_boxes");
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	base = event_base_new();
	conf = conf_new();
	open_backend(argv);
	input = event_new(base, 0, EV_READ | EV_PERSIST, input_cb, NULL);
	(void)event_add(input, NULL);
	(void)event_base_dispatch(base);
	event_free(input);
	backend->ops->free(backend);
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
	policy_clear(&policy);
	conf_free(conf);
	event_base_free(base);
	return 0;
}
