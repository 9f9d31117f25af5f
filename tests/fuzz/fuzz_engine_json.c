/* fuzz_engine_json.c - whatever an engine may answer.  The first byte says
 * which question it answers.
 * libs: worker common */
#include "tests/fuzz/fuzz.h"
#include "worker/docker/answer.h"
#include "worker/docker/isolation.h"
#include "worker/docker/docker.h"

static void
check_text(const char *s, size_t max)
{
	size_t n = strnlen(s, max);

	REQUIRE(n != max);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			abort();
}

static void
read_line(const char *line, size_t n)
{
	struct answer_event ev;
	char text[ANSWER_TEXT_MAX];
	struct err e;

	if (answer_event(line, n, &ev, &e) == 1 && !policy_is_id(ev.handle.id))
		abort();
	if (answer_progress(line, n, text) == 1)
		check_text(text, sizeof(text));
}

static void
check_from(const struct answer_prepared *p)
{
	check_text(p->agent, sizeof(p->agent));
	check_text(p->base, sizeof(p->base));
}

/* Of images, and of containers that one is prepared by. */
static void
read_prepared(const char *s, size_t n)
{
	struct answer_preparing *containers;
	struct answer_listed *images;
	struct err e;
	size_t count;

	if (answer_images(s, n, "p:", &images, &count, &e) == 0) {
		for (size_t i = 0; i < count; i++) {
			check_text(images[i].id, sizeof(images[i].id));
			check_from(&images[i].from);
		}
		free(images);
	}
	if (answer_preparings(s, n, &containers, &count, &e) == 0) {
		for (size_t i = 0; i < count; i++) {
			REQUIRE(policy_is_id(containers[i].id));
			check_from(&containers[i].from);
		}
		free(containers);
	}
}

static void
read_list(const char *s, size_t n)
{
	struct backend_container *list;
	struct err e;
	size_t count;

	read_prepared(s, n);
	if (answer_list(s, n, "i", &list, &count, &e) != 0)
		return;
	for (size_t i = 0; i < count; i++)
		REQUIRE(policy_is_id(list[i].handle.id));
	free(list);
}

/* The doctor reads both answers whole. */
static void
read_facts(const char *s, size_t n)
{
	char *text = xstrndup(s, n);
	struct backend_facts f;

	docker_read_facts(text, text, 0, &f);
	check_text(f.engine, sizeof(f.engine));
	check_text(f.runc, sizeof(f.runc));
	check_text(f.root, sizeof(f.root));
	free(text);
}

static void
read_version(const char *s, size_t n)
{
	struct answer_version v;
	struct err e;

	if (answer_version(s, n, &v, &e) != 0)
		return;
	check_text(v.speak, sizeof(v.speak));
	check_text(v.about.name, sizeof(v.about.name));
	check_text(v.about.version, sizeof(v.about.version));
	check_text(v.about.api, sizeof(v.about.api));
}

static void
read_small(unsigned int which, const char *s, size_t n)
{
	struct backend_handle handle;
	static struct backend_report report;
	char text[ANSWER_TEXT_MAX];
	struct answer_image image;
	struct backend_container c;
	struct answer_info info;
	static char profile[] = "{}";
	struct policy policy = {.seccomp = profile};
	struct err e;

	switch (which) {
	case 0:
		if (answer_container(s, n, "i", &c, &report, &e) == 0 &&
		    (!policy_is_id(c.handle.id) ||
			(c.running && (c.pid < 2 || c.handle.life[0] == '\0'))))
			abort();
		isolation_write(s, n,
		    &(struct isolation_host){
			.policy = &policy, .has_seccomp = true},
		    report.isolation);
		check_text(report.isolation, sizeof(report.isolation));
		break;
	case 1:
		if (answer_created(s, n, &handle, text, &e) == 0)
			check_text(text, sizeof(text));
		break;
	case 2:
		if (answer_image(s, n, &image, &e) == 0)
			check_text(image.id, sizeof(image.id));
		break;
	case 3:
		read_version(s, n);
		break;
	case 4:
		if (answer_info(s, n, "runc", &info, &e) == 0)
			check_text(
			    info.default_runtime, sizeof(info.default_runtime));
		read_facts(s, n);
		break;
	default:
		answer_message(s, n, text);
		check_text(text, sizeof(text));
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] % 8 == 6) {
		read_list((const char *)data + 1, size - 1);
	} else if (data[0] % 8 == 7) {
		read_line((const char *)data + 1, size - 1);
	} else {
		read_small(data[0] % 8u, (const char *)data + 1, size - 1);
	}
	return 0;
}
