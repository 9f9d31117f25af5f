/*
 * JSON for the engine, its filters, and the tar that an image is built from.
 * What a sandbox may be is the policy's (policy.h), what its agent needs the
 * carrier's (backend_wishes): nothing here decides.
 */
#include "worker/docker/body.h"

#include <stdio.h>
#include <sys/resource.h>

#include <jansson.h>

#include "common/msg/frame_gen.h"
#include "common/frame.h"
#include "common/js.h"
#include "common/exit.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/http/api.h"

#define MIB (UINT64_C(1) << 20)
/* Of 1024 and 500, which everybody else on the host has, this server too.  The
 * front divides by tenants: decision 52. */
#define CPU_SHARES 256
#define IO_WEIGHT 100
/* In which a quota of the processors holds.  A short one spreads what a box
 * has, where others wait for what it does not have (decision 64); the kernel
 * takes no quota below QUOTA_MIN_US and no period above a second. */
#define CPU_PERIOD_US 100000
#define CPU_BOUND_PERIOD_US 5000
#define CPU_PERIOD_MAX_US 1000000
#define QUOTA_MIN_US 1000
#define NANO 1000000000u
#define SIGNALS_MAX 1024 /* queued, and timers, of a user */
#define MASKED_MAX 4096
#define OPEN_FILES_MAX (UINT64_C(1) << 20)
#define PROCESSES_MAX (UINT64_C(1) << 22)
#define PID_MAX "/proc/sys/kernel/pid_max"
#define DIGITS_ROOM 32
#define SHM_BYTES (64 * MIB) /* /dev/shm; counts as memory */
#define TAR_BLOCK 512
#define TAR_END (2 * TAR_BLOCK) /* zeros */

/* ---- a container */

static void
put(json_t *o, const char *key, json_t *value)
{
	if (json_object_set_new(o, key, value) != 0)
		fatal(EXIT_BUG, "body: cannot set %s", key);
}

static json_t *
text(const char *s)
{
	return json_string(s);
}

static json_t *
number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *
list(const char *const *items)
{
	json_t *a = json_array();

	for (size_t i = 0; items[i] != NULL; i++)
		(void)json_array_append_new(a, text(items[i]));
	return a;
}

static json_t *
object_of(const char *key, json_t *only)
{
	json_t *o = json_object();

	put(o, key, only);
	return o;
}

static json_t *
list_of(json_t *only)
{
	json_t *a = json_array();

	(void)json_array_append_new(a, only);
	return a;
}

static uint64_t
quota_us(uint64_t nano_cpus, uint64_t period_us)
{
	uint64_t us = nano_cpus / 1000 * period_us / (NANO / 1000);

	return us < QUOTA_MIN_US ? QUOTA_MIN_US : us;
}

/* The shortest in which so little is a quota. */
static uint64_t
bound_period_us(uint64_t nano_cpus)
{
	uint64_t us = (uint64_t)QUOTA_MIN_US * NANO / nano_cpus + 1;

	return us < CPU_BOUND_PERIOD_US ? CPU_BOUND_PERIOD_US :
	    us > CPU_PERIOD_MAX_US      ? CPU_PERIOD_MAX_US :
					  us;
}

void
body_bounds(char out[BODY_BOUNDS_MAX], const struct backend_bounds *b,
    enum body_cpus form, const char *cpuset)
{
	unsigned long long nano = b->nano_cpus, period;
	char most[80] = "", on[BODY_CPUSET_MAX + 24] = "";

	if (nano != 0 && form == BODY_CPUS_AS_NANO) {
		(void)snprintf(most, sizeof(most), ",\"NanoCpus\":%llu", nano);
	} else if (nano != 0) {
		period = bound_period_us(b->nano_cpus);
		(void)snprintf(most, sizeof(most),
		    ",\"CpuPeriod\":%llu,\"CpuQuota\":%llu", period,
		    (unsigned long long)quota_us(nano, period));
	}
	if (cpuset != NULL)
		(void)snprintf(
		    on, sizeof(on), ",\"CpusetCpus\":\"%s\"", cpuset);
	(void)snprintf(out, BODY_BOUNDS_MAX, "{\"CpuShares\":%u%s%s}",
	    b->cpu_shares, most, on);
}

/* ---- which processors */

/* The n of them from the first on. */
static void
choose(const cpu_set_t *of, unsigned int first, unsigned int n, cpu_set_t *out)
{
	unsigned int all = (unsigned int)CPU_COUNT(of), at = 0;

	CPU_ZERO(out);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, of))
			continue;
		if ((at + all - first) % all < n)
			CPU_SET(cpu, out);
		at++;
	}
}

bool
body_cpuset(const cpu_set_t *of, unsigned int first, unsigned int n,
    char out[BODY_CPUSET_MAX])
{
	unsigned int all = (unsigned int)CPU_COUNT(of);
	size_t len = 0;
	cpu_set_t set;

	if (n == 0) {
		first = 0;
		n = all;
	}
	if (all == 0 || first >= all || n > all)
		return false;
	choose(of, first, n, &set);
	for (size_t from = 0; from < CPU_SETSIZE; from++) {
		size_t to = from;

		if (!CPU_ISSET(from, &set))
			continue;
		while (to + 1 < CPU_SETSIZE && CPU_ISSET(to + 1, &set))
			to++;
		len += (size_t)snprintf(out + len, BODY_CPUSET_MAX - len,
		    to > from ? "%s%zu-%zu" : "%s%zu", len > 0 ? "," : "", from,
		    to);
		if (len >= BODY_CPUSET_MAX)
			return false;
		from = to;
	}
	return true;
}

/* ---- labels */

/* What the box is, for its whole life: by these it is known again.  What uses
 * it (identifier, generation) is to be read by people, and believed only when
 * an operator has a database made anew from it (SWEEP_FOUND). */
static json_t *
labels(const struct body_create *c)
{
	const struct box_identity *id = &c->spec->identity;
	const struct policy_claim *claim = &c->spec->claim;
	json_t *o = json_object();
	char uuid[UUID_TEXT_LEN + 1];

	uuid_format(&id->uuid, uuid);
	put(o, BODY_LABEL_ROLE,
	    text(c->spec->is_trial ? BODY_ROLE_TRIAL : BODY_ROLE));
	put(o, BODY_LABEL_INSTANCE, text(c->instance));
	put(o, BODY_LABEL_ID, text(c->id));
	put(o, BODY_LABEL_BOX, text(uuid));
	put(o, BODY_LABEL_TENANT, text(id->tenant));
	put(o, BODY_LABEL_CREATED,
	    json_sprintf("%lld", (long long)c->created_ms));
	/* By the TTL of now: labels stay as they are, a TTL does not. */
	if (c->spec->ttl_s != 0)
		put(o, BODY_LABEL_EXPIRES,
		    json_sprintf("%lld",
			(long long)c->created_ms +
			    (long long)c->spec->ttl_s * 1000));
	put(o, BODY_LABEL_FINGERPRINT, text(id->fingerprint));
	put(o, BODY_LABEL_IMAGE, text(c->spec->template.image));
	put(o, BODY_LABEL_CPUS,
	    json_sprintf(
		"%llu", (unsigned long long)c->spec->template.nano_cpus));
	put(o, BODY_LABEL_MEMORY,
	    json_sprintf(
		"%llu", (unsigned long long)c->spec->template.memory_bytes));
	put(o, BODY_LABEL_IDENTIFIER, text(claim->identifier));
	put(o, BODY_LABEL_GENERATION, json_sprintf("%u", claim->generation));
	if (c->spec->wishes->carrier != NULL)
		put(o, BODY_LABEL_CARRIER, text(c->spec->wishes->carrier));
	return o;
}

/* Of type bind an engine refuses what is not there; in "Binds" it would make an
 * empty directory of root's on its host. */
static json_t *
mounts(const struct backend_wishes *w)
{
	json_t *a = json_array();

	for (size_t i = 0; i < w->nmounts; i++)
		(void)json_array_append_new(a,
		    json_pack("{s:s, s:s, s:s, s:b}", "Type", "bind", "Source",
			w->mounts[i].source, "Target", w->mounts[i].target,
			"ReadOnly", true));
	return a;
}

static json_t *
ulimit(const char *name, uint64_t most)
{
	return json_pack("{s:s, s:I, s:I}", "Name", name, "Soft",
	    (json_int_t)most, "Hard", (json_int_t)most);
}

/* What may be written beyond the image: by the engine's quota, or by the
 * agent, which does not see a file without a name, so that no file may be
 * larger than what it lets pass for a moment. */
static void
put_disk(json_t *o, json_t *ulimits, const struct body_create *c)
{
	uint64_t bytes = c->policy->disk_bytes;
	unsigned long long whole = bytes + c->quota_image_bytes;

	if (bytes == 0)
		return;
	if (!c->has_quota) {
		(void)json_array_append_new(
		    ulimits, ulimit("fsize", 2 * bytes));
		return;
	}
	put(o, "StorageOpt", object_of("size", json_sprintf("%llu", whole)));
}

/* What a sandbox is for: where else it cannot write. */
static void
put_own(json_t *tmpfs, uint64_t bytes)
{
	static const char *const places[] = {"/workspace", "/artifacts"};

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		put(tmpfs, places[i],
		    json_sprintf("rw,exec,nosuid,nodev,uid=1000,gid=1000,"
				 "mode=755,size=%llum",
			(unsigned long long)(bytes / MIB)));
}

static uint64_t
own_limit(__rlimit_resource_t which, uint64_t most)
{
	struct rlimit own;

	return getrlimit(which, &own) == 0 && own.rlim_max < most ?
	    own.rlim_max :
	    most;
}

void
body_look_at_limits(struct body_podman *out)
{
	AUTO(auto_free) char *text = NULL;
	uint64_t processes = PROCESSES_MAX;
	struct err e;
	size_t n;

	/* To which Podman lowers its own limit. */
	if (fd_read_file(PID_MAX, DIGITS_ROOM, &text, &n, &e) == 0)
		processes = strtoul(text, NULL, 10);
	out->files = own_limit(RLIMIT_NOFILE, OPEN_FILES_MAX);
	out->processes = own_limit(RLIMIT_NPROC, processes);
}

/* No core files; tmpfs counts as memory; no swap beyond the memory. */
static void
put_limits(json_t *o, const struct body_create *c)
{
	const struct policy_template *t = &c->spec->template;
	json_t *ulimits = list_of(ulimit("core", 0)), *tmpfs = json_object();

	put(o, "Memory", number(t->memory_bytes));
	put(o, "MemorySwap", number(t->memory_bytes));
	put(o, "CpuPeriod", number(CPU_PERIOD_US));
	put(o, "CpuQuota", number(quota_us(t->nano_cpus, CPU_PERIOD_US)));
	put(o, "PidsLimit", number(t->pids));
	put(o, "CpuShares",
	    number(t->cpu_shares == 0 ? CPU_SHARES : t->cpu_shares));
	if (c->has_io_weight)
		put(o, "BlkioWeight", number(IO_WEIGHT));
	/* Of what is written there by way of its files, and synced. */
	if (c->policy->write_bytes_s != 0)
		put(o, "BlkioDeviceWriteBps",
		    json_pack("[{s:s, s:I}]", "Path", c->policy->write_device,
			"Rate", (json_int_t)c->policy->write_bytes_s));
	/* What the kernel counts per user of the host, all sandboxes and
	 * namespaces together: decision 25. */
	(void)json_array_append_new(ulimits, ulimit("sigpending", SIGNALS_MAX));
	(void)json_array_append_new(ulimits, ulimit("msgqueue", 0));
	/* Podman would raise the processes, which a namespace of the box's own
	 * users may not. */
	if (c->is_podman) {
		(void)json_array_append_new(
		    ulimits, ulimit("nofile", c->podman.files));
		(void)json_array_append_new(ulimits,
		    ulimit("nproc",
			c->policy->own_users ? t->pids : c->podman.processes));
	}
	put_disk(o, ulimits, c);
	put(o, "Ulimits", ulimits);
	put(tmpfs, "/tmp",
	    json_sprintf("rw,exec,nosuid,nodev,mode=1777,size=%llum",
		(unsigned long long)(c->policy->tmp_bytes / MIB)));
	if (t->read_only_root)
		put_own(tmpfs, c->policy->tmp_bytes);
	put(o, "Tmpfs", tmpfs);
}

static void
add_option(json_t *options, const char *key, const char *value)
{
	(void)json_array_append_new(options, json_sprintf("%s=%s", key, value));
}

/* Docker takes the profile itself and lists of paths; Podman the profile's
 * path on this host, and one more option with colons between the paths. */
static json_t *
security(const struct policy *p, bool is_podman)
{
	json_t *a = json_array();
	bool by_path = is_podman && p->seccomp_path != NULL;
	struct buf masked;

	if (p->no_new_privileges)
		(void)json_array_append_new(a, text("no-new-privileges"));
	add_option(a, "seccomp", by_path ? p->seccomp_path : p->seccomp);
	if (!is_podman)
		return a;
	buf_init(&masked, MASKED_MAX);
	for (size_t i = 0; p->masked[i] != NULL; i++)
		if (buf_printf(
			&masked, "%s%s", i > 0 ? ":" : "", p->masked[i]) != 0)
			fatal(EXIT_BUG, "body: too many masked paths");
	if (buf_append(&masked, "", 1) != 0)
		fatal(EXIT_BUG, "body: too many masked paths");
	add_option(a, "mask", (const char *)buf_data(&masked));
	buf_clear(&masked);
	return a;
}

static json_t *
host_config(const struct body_create *c)
{
	const struct policy_template *t = &c->spec->template;
	const struct policy *p = c->policy;
	json_t *o = json_object();
	const char *runtime;

	put(o, "LogConfig", object_of("Type", text("none")));
	put(o, "NetworkMode",
	    text(p->network == POLICY_NETWORK_NONE ? "none" : "bridge"));
	put(o, "CapDrop", list((const char *const *)p->cap_drop));
	put(o, "CapAdd", list((const char *const *)p->cap_add));
	put(o, "SecurityOpt", security(p, c->is_podman));
	put(o, "MaskedPaths", list(p->masked));
	put(o, "ReadonlyPaths", list(p->read_only));
	put(o, "ShmSize", number(SHM_BYTES));
	put_limits(o, c);
	put(o, "Mounts", mounts(c->spec->wishes));
	runtime = t->runtime[0] != '\0' ? t->runtime : p->runtime;
	if (runtime[0] != '\0')
		put(o, "Runtime", text(runtime));
	if (p->own_users)
		put(o, "UsernsMode", text("auto"));
	put(o, "ReadonlyRootfs", json_boolean(t->read_only_root));
	put(o, "Init", json_false());
	put(o, "RestartPolicy", object_of("Name", text("no")));
	put(o, "AutoRemove", json_false());
	put(o, "Privileged", json_false());
	return o;
}

/* Behind the carrier's command: images/agent/terms.h. */
static json_t *
agent_arguments(const struct body_create *c)
{
	const struct policy *p = c->policy;
	json_t *a = json_pack("[s, o, s, o, s, o]", "-k",
	    json_sprintf("%llx", (unsigned long long)p->withheld), "-b",
	    json_sprintf(
		"%llu", (unsigned long long)(c->has_quota ? 0 : p->disk_bytes)),
	    "-n", json_sprintf("%llu", (unsigned long long)p->disk_inodes));

	if (c->spec->wishes->listens) {
		(void)json_array_append_new(a, text("-l"));
		(void)json_array_append_new(a, text("1"));
	}
	return a;
}

char *
body_create(const struct body_create *c)
{
	const struct backend_wishes *wishes = c->spec->wishes;
	AUTO(auto_json) json_t *o = json_object();

	put(o, "Image", text(c->image_id));
	put(o, "Entrypoint", list(wishes->command));
	put(o, "Cmd", agent_arguments(c));
	put(o, "User", text("0:0"));
	put(o, "WorkingDir", text("/workspace"));
	put(o, "Hostname", text("sandbox"));
	/* Still a namespace of its own with lo, at half the cost of a start
	 * with NetworkMode none alone: 69 ms against 167 ms. */
	if (c->policy->network == POLICY_NETWORK_NONE)
		put(o, "NetworkDisabled", json_true());
	put(o, "Tty", json_false());
	put(o, "Labels", labels(c));
	put(o, "HostConfig", host_config(c));
	return js_dump(o);
}

/* ---- a program in it */

char *
body_exec(const char *const *command)
{
	AUTO(auto_json)
	json_t *o =
	    json_pack("{s:b, s:b, s:b, s:b, s:b, s:s, s:s}", "AttachStdin",
		true, "AttachStdout", true, "AttachStderr", true, "Tty", false,
		"Privileged", false, "User", "0:0", "WorkingDir", "/");

	put(o, "Cmd", list(command));
	return js_dump(o);
}

char *
body_exec_start(void)
{
	AUTO(auto_json)
	json_t *o = json_pack("{s:b, s:b}", "Detach", false, "Tty", false);

	return js_dump(o);
}

/* ---- a prepared image */

/* The container's own go into the image where the engine (Podman) reads none
 * in a commit. */
static json_t *
prepared_labels(const struct body_prepared *p)
{
	json_t *o = json_object();

	put(o, BODY_LABEL_ROLE, text(BODY_ROLE_PREPARED));
	put(o, BODY_LABEL_PREPARED_AGENT, text(p->agent));
	put(o, BODY_LABEL_PREPARED_BASE, text(p->base));
	put(o, BODY_LABEL_PREPARED_BY, text(p->by));
	put(o, BODY_LABEL_CREATED,
	    json_sprintf("%lld", (long long)p->created_ms));
	return o;
}

/* An engine wants a command of a base that has none.  The name of the host is
 * the one that sandboxes have: Podman makes it a variable of the image. */
char *
body_prepare(const struct body_prepared *p)
{
	AUTO(auto_json) json_t *o = json_object();
	json_t *host = json_object();

	put(o, "Image", text(p->base));
	put(o, "Entrypoint", list_of(text(FRAME_PROGRAM_IN_SANDBOX)));
	put(o, "Hostname", text("sandbox"));
	put(o, "NetworkDisabled", json_true());
	put(o, "Labels", prepared_labels(p));
	put(host, "NetworkMode", text("none"));
	put(host, "LogConfig", object_of("Type", text("none")));
	put(o, "HostConfig", host);
	return js_dump(o);
}

char *
body_commit(const struct body_prepared *p)
{
	AUTO(auto_json) json_t *o = object_of("Labels", prepared_labels(p));

	return js_dump(o);
}

/* ---- filters */

static char *
filters(json_t *o, const char *label, const char *value)
{
	AUTO(auto_free) char *s = NULL;

	put(o, "label", list_of(json_sprintf("%s=%s", label, value)));
	s = js_dump(o);
	return api_escape(s);
}

char *
body_filters_list(const char *id)
{
	AUTO(auto_json) json_t *o = json_object();

	return filters(o, BODY_LABEL_ID, id);
}

char *
body_filters_prepared(void)
{
	AUTO(auto_json) json_t *o = json_object();

	return filters(o, BODY_LABEL_ROLE, BODY_ROLE_PREPARED);
}

char *
body_filters_events(const char *id)
{
	AUTO(auto_json) json_t *o = json_object();

	put(o, "type", list_of(text("container")));
	/* Docker's words, and Podman's, which finds its own alone. */
	put(o, "event",
	    list((const char *const[]){
		"die", "oom", "destroy", "died", "remove", NULL}));
	return filters(o, BODY_LABEL_ID, id);
}

/* ---- tar: what an image is built from, and what is put into one */

/* POSIX.1-1988 (ustar): numbers are octal digits, the checksum is taken with
 * spaces in its place.  Decision 12 says why this is no library. */
struct tar_header {
	char name[100];
	char mode[8], uid[8], gid[8];
	char size[12], mtime[12];
	char checksum[8];
	char type;
	char link_name[100];
	char magic[6], version[2];
	char user[32], group[32];
	char device[2][8];
	char prefix[155];
	char padding[12];
};

static void
tar_seal(struct tar_header *h)
{
	const uint8_t *p = (const uint8_t *)h;
	unsigned int sum = 0;

	memset(h->checksum, ' ', sizeof(h->checksum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += p[i];
	(void)snprintf(h->checksum, sizeof(h->checksum), "%06o", sum);
}

static void
tar_head(struct tar_header *h, const struct body_entry *en)
{
	size_t n = strlen(en->name);

	if (n == 0 || n > BODY_TAR_NAME_MAX)
		fatal(EXIT_BUG, "body: %zu bytes are no name in a tar", n);
	memset(h, 0, sizeof(*h));
	memcpy(h->name, en->name, n);
	(void)snprintf(h->mode, sizeof(h->mode), "%07o", en->mode);
	memcpy(h->uid, "0000000", sizeof(h->uid));
	memcpy(h->gid, "0000000", sizeof(h->gid));
	(void)snprintf(h->size, sizeof(h->size), "%011zo", en->len);
	memcpy(h->mtime, "00000000000", sizeof(h->mtime));
	h->type = en->name[n - 1] == '/' ? '5' : '0';
	memcpy(h->magic, "ustar", sizeof(h->magic));
	memcpy(h->version, "00", sizeof(h->version));
	tar_seal(h);
}

int
body_tar(
    const struct body_entry *entries, size_t n, struct buf *out, struct err *e)
{
	uint8_t *room;

	for (size_t i = 0; i < n; i++) {
		const struct body_entry *en = &entries[i];
		size_t padded =
		    (en->len + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
		struct tar_header h;

		room = buf_reserve(out, sizeof(h) + padded + TAR_END);
		if (room == NULL)
			return err_set(e, ERR_LIMIT,
			    "a file for the engine, %zu bytes, is too large",
			    en->len);
		tar_head(&h, en);
		memset(room, 0, sizeof(h) + padded);
		memcpy(room, &h, sizeof(h));
		if (en->len > 0)
			memcpy(room + sizeof(h), en->data, en->len);
		buf_commit(out, sizeof(h) + padded);
	}
	room = buf_reserve(out, TAR_END);
	if (room == NULL) /* it was there with the last one */
		fatal(EXIT_BUG, "body: no room for a tar's end");
	memset(room, 0, TAR_END);
	buf_commit(out, TAR_END);
	return 0;
}
