/*
 * Looks at one thing after another and says of each whether it holds.
 *
 *	settings -> kernel, Landlock, clock, disk -> the engine: versions, user
 *	namespace, seccomp, AppArmor or SELinux, control groups, storage, and
 *	whether its disks are the store's; by which carrier agents are reached
 *
 * What cannot be known (another distribution's patches, an engine that does
 * not say) is not guessed: it is unknown, and so not content.
 */
#include "worker/doctor/doctor.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/exit.h"
#include "common/fence.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/backends.h"
#include "worker/disks.h"
#include "worker/doctor/advisory.h"
#include "worker/doctor/finding.h"
#include "worker/doctor/host.h"
#include "worker/doctor/reach.h"
#include "worker/doctor/version.h"
#include "worker/policy.h"

#define OLDEST_KERNEL "4.8" /* before, ptrace goes round seccomp */
#define CLOCK_MS 5000       /* the engine's from ours */
#define MIB (UINT64_C(1) << 20)
#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)
#define SOON_MS (30 * DAY_MS)

struct doctor {
	const struct conf *conf;
	struct policy policy;
	struct findings found;
	struct backend_facts engine;
	struct host_kernel kernel;
};

static enum finding_state
holds_if(bool good)
{
	return good ? FINDING_HOLDS : FINDING_FAILS;
}

/* ---- this machine */

static void
look_at_kernel(struct doctor *d)
{
	host_kernel(&d->kernel);
	if (version_compare(d->kernel.version, OLDEST_KERNEL) < 0)
		findings_add(&d->found, "kernel", FINDING_FAILS,
		    "take a newer kernel",
		    "%s is older than " OLDEST_KERNEL
		    ": a tracer goes round the seccomp profile",
		    d->kernel.release);
	advisory_look(
	    &(struct advisory_subject){.component = "kernel",
		.version = d->kernel.version,
		.package = "",
		.patched = d->kernel.patched,
		.has_profile = strcmp(d->policy.seccomp, "unconfined") != 0},
	    &d->found);
}

static void
look_at_landlock(struct doctor *d)
{
	int abi = fence_version();

	findings_add(&d->found, "landlock", holds_if(abi != FENCE_NONE),
	    "a kernel of 5.19 or later with landlock among its lsm=",
	    "ABI %d%s", abi,
	    abi != FENCE_NONE ? "" : ": the kernel has none that is of use");
}

static void
look_at_clock(struct doctor *d)
{
	bool synchronized = host_clock_is_synchronized();

	findings_add(&d->found, "clock", holds_if(synchronized),
	    "run a time service: lifetimes of sandboxes are by this clock",
	    "%s",
	    synchronized ? "the kernel calls it synchronized" :
			   "the kernel calls it not synchronized");
}

/* Below twice the reserve old output is evicted. */
static void
look_at_disk(struct doctor *d, const char *what, const char *path)
{
	uint64_t bytes =
	    (uint64_t)conf_int(d->conf, CONF_DISK_RESERVE_MB) * MIB;
	uint64_t inodes = (uint64_t)conf_int(d->conf, CONF_DISK_RESERVE_INODES);
	struct host_disk disk;

	if (!host_disk(path, &disk)) {
		findings_add(&d->found, "disk", FINDING_UNKNOWN, "look at it",
		    "%s: %s cannot be looked at", what, path);
		return;
	}
	findings_add(&d->found, "disk",
	    holds_if(bytes > 0 && disk.free_bytes >= 2 * bytes &&
		disk.free_inodes >= 2 * inodes),
	    bytes == 0 ? "set DISK_RESERVE_MB" :
			 "make room, or another file system",
	    "%s: %llu MiB and %llu inodes are free at %s; the reserve is "
	    "%llu MiB",
	    what, (unsigned long long)(disk.free_bytes / MIB),
	    (unsigned long long)disk.free_inodes, disk.path,
	    (unsigned long long)(bytes / MIB));
}

/* ---- the engine */

static void
look_at_part(struct doctor *d, const char *component, const char *said,
    const char *package_name)
{
	char version[BACKEND_WORD_MAX] = "", package[HOST_WORD_MAX] = "";

	if (said[0] != '\0')
		version_upstream(said, version, sizeof(version));
	/* An engine of Debian says less than its package's version. */
	if (version_is_debians(said))
		host_package(package_name, package);
	if (package[0] == '\0' && strstr(said, "deb") != NULL)
		(void)snprintf(package, sizeof(package), "%s", said);
	advisory_look(
	    &(struct advisory_subject){
		.component = component, .version = version, .package = package},
	    &d->found);
}

static void
look_at_users(struct doctor *d)
{
	bool mapped = d->engine.maps_users;

	findings_add(&d->found, "users", holds_if(mapped),
	    "start the engine with --userns-remap=default", "%s",
	    d->engine.rootless ? "the engine runs without root" :
		mapped         ? "users of sandboxes are mapped to others" :
			 "root and uid 1000 of a sandbox are the host's and "
			 "every other sandbox's");
}

static void
look_at_seccomp(struct doctor *d)
{
	const char *setting = conf_str(d->conf, CONF_SANDBOX_SECCOMP);
	bool confined = strcmp(setting, "unconfined") != 0;

	findings_add(&d->found, "seccomp",
	    holds_if(d->engine.seccomp && confined),
	    confined ? "an engine and a kernel with seccomp" :
		       "take SANDBOX_SECCOMP=default",
	    "%s%s; the engine %s it",
	    strcmp(setting, "default") == 0 ? "our profile" : setting,
	    confined ? "" : " (no system call is denied)",
	    d->engine.seccomp ? "enforces" : "does not enforce");
}

static void
look_at_modules(struct doctor *d)
{
	findings_add(&d->found, "lsm",
	    holds_if(d->engine.apparmor || d->engine.selinux),
	    "a kernel with AppArmor or SELinux, and its tools", "%s",
	    d->engine.apparmor    ? "AppArmor" :
		d->engine.selinux ? "SELinux" :
				    "neither AppArmor nor SELinux confines "
				    "sandboxes");
}

static void
look_at_groups(struct doctor *d)
{
	const struct backend_facts *f = &d->engine;
	bool all = f->limits_memory && f->limits_pids && f->limits_cpu;

	findings_add(&d->found, "cgroups",
	    holds_if(strcmp(f->cgroup, "2") == 0),
	    "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)",
	    "version %s", f->cgroup[0] != '\0' ? f->cgroup : "unknown");
	findings_add(&d->found, "limits", holds_if(all),
	    f->rootless ? "boot with cgroup v2 and delegate these controllers "
			  "to the engine's user: without root there are none "
			  "else" :
			  "enable these controllers",
	    "memory %s, processes %s, CPU %s", f->limits_memory ? "yes" : "no",
	    f->limits_pids ? "yes" : "no", f->limits_cpu ? "yes" : "no");
}

/* What is to be done, by what is known of the engine's disk. */
static void
advise_on_disks(const char *node, char *out, size_t size)
{
	(void)snprintf(out, size,
	    "give DATA_DIR, or front/ in it, a disk of its own%s%s%s",
	    node[0] == '\0' ?
		"" :
		"; or bound what each sandbox writes: SANDBOX_WRITE_DEVICE=",
	    node, node[0] == '\0' ? "" : " SANDBOX_WRITE_MB_S=20");
}

/* Each commit of the store waits behind what sandboxes write there. */
static void
look_at_disks(struct doctor *d)
{
	static const char *const words[] = {[DISKS_APART] = "is on no disk of",
	    [DISKS_SHARED] = "shares a disk with",
	    [DISKS_UNKNOWN] = "may share a disk with"};
	const struct policy *p = &d->policy;
	AUTO(auto_free)
	char *store = xasprintf("%s/front", conf_str(d->conf, CONF_DATA_DIR));
	char advice[FINDING_TEXT_MAX];
	enum disks_shared shared;
	struct disks ours, theirs;
	bool bound;

	disks_below(store, &ours);
	disks_below(d->engine.root, &theirs);
	shared = disks_shared(&ours, &theirs);
	bound =
	    p->write_bytes_s != 0 && strcmp(p->write_device, theirs.node) == 0;
	advise_on_disks(theirs.node, advice, sizeof(advice));
	findings_add(&d->found, "disks",
	    shared == DISKS_APART || bound ? FINDING_HOLDS :
		shared == DISKS_SHARED     ? FINDING_FAILS :
					     FINDING_UNKNOWN,
	    advice, "the store (%s) %s the engine's data (%s)%s", store,
	    words[shared], d->engine.root,
	    shared == DISKS_APART ? "" :
		bound ? ", which takes SANDBOX_WRITE_MB_S from each sandbox" :
			": what one tenant's sandboxes write delays "
			"everybody's answers");
}

static void
look_at_storage(struct doctor *d)
{
	const struct backend_facts *f = &d->engine;
	bool has_quota = f->limits_disk;

	findings_add(&d->found, "storage", holds_if(has_quota),
	    "btrfs, zfs, or overlay2 on xfs with pquota, for the engine's data",
	    "driver %s: %s", f->storage,
	    has_quota ? "the kernel can limit a sandbox's files" :
			"no quota limits a sandbox's files, its agent "
			"watches them (decision 21)");
	if (f->root[0] == '\0')
		return;
	look_at_disk(d, "the engine's data", f->root);
	look_at_disks(d);
}

static void
look_at_engine_clock(struct doctor *d)
{
	int64_t ms = d->engine.ahead_ms;

	if (ms == INT64_MIN)
		findings_add(&d->found, "clock", FINDING_UNKNOWN,
		    "compare them", "the engine does not say its time");
	else
		findings_add(&d->found, "clock",
		    holds_if(ms > -CLOCK_MS && ms < CLOCK_MS),
		    "set the clocks of this host and of the engine's",
		    "the engine's is %lld ms from ours", (long long)ms);
}

/* The first that ends; "" and a date far away: none does. */
static int64_t
first_end(const struct backend_facts *f, const char **what)
{
	const struct {
		const char *what;
		int64_t ms;
	} ends[] = {{"ca.pem", f->ca_ends_ms}, {"cert.pem", f->own_ends_ms},
	    {"the engine's certificate", f->peer_ends_ms}};
	int64_t first = INT64_MAX;

	*what = "";
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (ends[i].ms != 0 && ends[i].ms < first) {
			first = ends[i].ms;
			*what = ends[i].what;
		}
	return first;
}

static void
look_at_wire(struct doctor *d)
{
	const struct backend_facts *f = &d->engine;
	const char *what;
	int64_t left_ms = first_end(f, &what) - clock_wall_ms();

	if (f->has_tls)
		findings_add(&d->found, "wire", holds_if(left_ms > SOON_MS),
		    "renew it: what is put in its place is taken without a "
		    "restart",
		    "%s by TLS; %s is the first certificate to end, in %lld "
		    "days",
		    f->where, what, (long long)(left_ms / DAY_MS));
	else
		findings_add(&d->found, "wire", holds_if(!f->is_remote),
		    "set DOCKER_TLS_VERIFY and DOCKER_CERT_PATH", "%s%s",
		    f->where,
		    f->is_remote ? " without TLS: who reaches that port has "
				   "root on the engine's machine" :
				   "");
}

/* What is asked for and is not there; and of each that is there, what stands
 * between a sandbox and the host. */
static void
look_at_runtimes(struct doctor *d)
{
	const struct backend_facts *f = &d->engine;

	if (!runtimes_have(f->runtimes, d->policy.runtime))
		findings_add(&d->found, "runtime", FINDING_FAILS,
		    "install it, or leave SANDBOX_RUNTIME empty",
		    "the engine has no %s (SANDBOX_RUNTIME); it has:%s",
		    d->policy.runtime, f->runtimes);
	for (char **r = d->policy.runtimes; *r != NULL; r++)
		if (!runtimes_have(f->runtimes, *r))
			findings_add(&d->found, "runtime", FINDING_FAILS,
			    "install it and name it in the engine's "
			    "daemon.json, or take it from the list",
			    "the engine has no %s (SANDBOX_RUNTIMES_ALLOWED); "
			    "it has:%s",
			    *r, f->runtimes);
	for (size_t i = 0; i < f->nruntimes; i++) {
		const struct backend_runtime *r = &f->runtime[i];

		findings_add(&d->found, "runtimes", FINDING_HOLDS, "",
		    "%s isolates %s%s%s", r->name, runtimes_isolates(r->kind),
		    r->platform[0] != '\0' ? ", platform " : "", r->platform);
	}
}

static void
look_at_cluster_network(struct doctor *d)
{
	static const char advice[] =
	    "see docs/kubernetes.md: a network that enforces NetworkPolicies, "
	    "or KUBERNETES_ALLOW_UNENFORCED_NETWORK=true";
	const struct backend_facts *f = &d->engine;

	switch (f->network) {
	case BACKEND_NETWORK_NOT_TRIED:
		break;
	case BACKEND_NETWORK_CLOSED:
		findings_add(&d->found, "network", FINDING_HOLDS, "",
		    "tried with three Pods: sandboxes reach nobody");
		break;
	case BACKEND_NETWORK_OPEN:
		findings_add(&d->found, "network", FINDING_FAILS, advice, "%s",
		    f->network_why);
		break;
	case BACKEND_NETWORK_UNKNOWN:
		findings_add(&d->found, "network", FINDING_UNKNOWN, advice,
		    "%s", f->network_why);
		break;
	}
}

/* Its nodes are not looked at: what they run and how is their operator's. */
static void
look_at_cluster(struct doctor *d)
{
	const char *users = conf_str(d->conf, CONF_KUBERNETES_HOST_USERS);
	const char *runtime = d->policy.runtime;
	bool mapped = strcmp(users, "false") == 0;

	findings_add(&d->found, "cluster", FINDING_HOLDS, "", "Kubernetes %s",
	    d->engine.engine);
	findings_add(&d->found, "users", holds_if(mapped),
	    "set KUBERNETES_HOST_USERS=false where the nodes can",
	    mapped ? "users of Pods are mapped to others" :
		     "users of Pods are the node's and every other Pod's, "
		     "unless the cluster decides otherwise");
	findings_add(&d->found, "runtime",
	    runtime[0] != '\0' ? FINDING_HOLDS : FINDING_UNKNOWN,
	    "name a RuntimeClass (SANDBOX_RUNTIME) of gVisor or Kata",
	    "%s isolates %s", runtime[0] != '\0' ? runtime : "the nodes' own",
	    runtimes_isolates(runtimes_kind(runtime, "")));
	look_at_cluster_network(d);
	findings_add(&d->found, "processes of a Pod", FINDING_UNKNOWN,
	    "see that the kubelets have podPidsLimit",
	    "a Pod has no field for DEFAULT_PIDS");
}

static void
look_at_carrier(struct doctor *d, const struct backend_facts *engine)
{
	reach_look(
	    &(struct reach_subject){.setting = conf_str(d->conf, CONF_CARRIER),
		.runtime = d->policy.runtime,
		.runtimes = d->policy.runtimes,
		.kernel = d->kernel.release,
		.engine = engine},
	    &d->found);
}

static void
look_at_engine(struct doctor *d)
{
	const struct backend_facts *f = &d->engine;
	struct err e;

	if (backend_ask_facts(d->conf, &d->engine, &e) != 0) {
		findings_add(&d->found, "engine", FINDING_FAILS,
		    d->engine.is_cluster ?
			"see to KUBECONFIG and the cluster" :
			"start one, set DOCKER_HOST, or run this as a user who "
			"may connect",
		    "%s", e.msg);
		look_at_carrier(d, NULL);
		return;
	}
	look_at_wire(d);
	if (f->is_cluster) {
		look_at_cluster(d);
		return;
	}
	look_at_part(d, "engine", f->engine, "docker.io");
	look_at_part(d, "containerd", f->containerd, "containerd");
	look_at_part(d, "runc", f->runc, "runc");
	look_at_runtimes(d);
	look_at_carrier(d, f);
	look_at_users(d);
	look_at_seccomp(d);
	look_at_modules(d);
	look_at_groups(d);
	look_at_storage(d);
	look_at_engine_clock(d);
}

/* ---- all of it */

static void
look(struct doctor *d, bool apart)
{
	findings_add(&d->found, "settings", FINDING_HOLDS, "",
	    "they can be started with");
	findings_add(&d->found, "processes", holds_if(apart),
	    "start as root, with the users of RUN_AS_FRONT and RUN_AS_WORKER",
	    "front and workers run as %s",
	    apart ? "two users" : "one user, or as root");
	look_at_kernel(d);
	look_at_landlock(d);
	look_at_clock(d);
	look_at_disk(d, "DATA_DIR", conf_str(d->conf, CONF_DATA_DIR));
	look_at_engine(d);
}

int
doctor_main(enum doctor_form form, enum doctor_users users)
{
	static struct doctor d; /* of some size */
	struct conf *conf = conf_new();
	struct err e;
	int status;

	d.conf = conf;
	if (conf_load_env(conf, &e) != 0 || conf_check(conf, &e) != 0 ||
	    policy_init(&d.policy, conf, &e) != 0) {
		log_error("configuration: %s", e.msg);
		conf_free(conf);
		return EXIT_CONFIG;
	}
	look(&d, users == DOCTOR_USERS_APART);
	if (form == DOCTOR_JSON)
		findings_print_json(&d.found, stdout);
	else
		findings_print_table(&d.found, stdout);
	status = findings_all_hold(&d.found) ? 0 : 1;
	policy_clear(&d.policy);
	conf_free(conf);
	return fflush(stdout) == 0 ? status : EXIT_BUG;
}
