#include "worker/disks.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "common/fd.h"
#include "common/xmalloc.h"
#include "worker/doctor/host.h"

#define MOUNTS_PATH "/proc/self/mountinfo"
#define MOUNTS_MAX (4u << 20)
#define SYS_MAX 4096 /* bytes of a file in /sys */
#define SYS_PATH_MAX 512
#define LAYERS_MAX 8 /* a loop over LVM over RAID over ... */

static void find_below(const char *path, struct disks *d, unsigned int layer);

/* ---- mounts */

/* 0: not told. */
static uint64_t
mount_of(const char *path)
{
#ifdef STATX_MNT_ID
	AUTO(auto_free) char *at = xstrdup(path);
	struct statx st;

	while (statx(AT_FDCWD, at, 0, STATX_MNT_ID, &st) == -1)
		if (!host_climb(at))
			return 0;
	return (st.stx_mask & STATX_MNT_ID) != 0 ? st.stx_mnt_id : 0;
#else
	(void)path;
	return 0;
#endif
}

struct mount_line {
	dev_t dev;
	char type[32];
	char source[SYS_PATH_MAX];
};

/* "98:0" */
static bool
read_number(const char *text, dev_t *out)
{
	char *end;
	unsigned long a, b;

	a = strtoul(text, &end, 10);
	if (end == text || *end != ':')
		return false;
	text = end + 1;
	b = strtoul(text, &end, 10);
	*out = makedev((unsigned int)a, (unsigned int)b);
	return end != text;
}

/* The word that p begins with; what is behind it and its blank. */
static const char *
read_word(const char *p, char *out, size_t size)
{
	size_t n = strcspn(p, " ");

	(void)snprintf(out, size, "%.*s", (int)n, p);
	return p + n + (p[n] == ' ' ? 1 : 0);
}

/* "36 35 98:0 /root /at options [more] - type source options" */
static bool
read_mount(const char *line, uint64_t id, struct mount_line *m)
{
	const char *rest = strstr(line, " - ");
	char number[32];

	line = read_word(line, number, sizeof(number));
	if (rest == NULL || strtoull(number, NULL, 10) != id)
		return false;
	line = read_word(line, number, sizeof(number)); /* the parent's */
	(void)read_word(line, number, sizeof(number));
	rest = read_word(rest + 3, m->type, sizeof(m->type));
	(void)read_word(rest, m->source, sizeof(m->source));
	return read_number(number, &m->dev);
}

static bool
find_mount(const char *path, struct mount_line *m)
{
	AUTO(auto_free) char *text = NULL;
	uint64_t id = mount_of(path);
	char *line, *rest;
	struct err e;
	size_t n;

	if (id == 0 ||
	    fd_read_file(MOUNTS_PATH, MOUNTS_MAX, &text, &n, &e) != 0)
		return false;
	for (line = strtok_r(text, "\n", &rest); line != NULL;
	     line = strtok_r(NULL, "\n", &rest))
		if (read_mount(line, id, m))
			return true;
	return false;
}

/* ---- devices */

/* The first line of a file below a device's directory; false: there is none. */
static bool
read_sys(dev_t dev, const char *name, char *out, size_t size)
{
	AUTO(auto_free) char *text = NULL;
	char path[SYS_PATH_MAX];
	struct err e;
	size_t n;

	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%.400s",
	    major(dev), minor(dev), name);
	if (fd_read_file(path, SYS_MAX, &text, &n, &e) != 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	(void)snprintf(out, size, "%s", text);
	return true;
}

static bool
read_dev(dev_t of, const char *name, dev_t *out)
{
	char text[32];

	return read_sys(of, name, text, sizeof(text)) && read_number(text, out);
}

static dev_t
whole_of(dev_t dev)
{
	char text[32];
	dev_t whole;

	return read_sys(dev, "partition", text, sizeof(text)) &&
		read_dev(dev, "../dev", &whole) ?
	    whole :
	    dev;
}

static void
add(struct disks *d, dev_t dev)
{
	for (unsigned int i = 0; i < d->n; i++)
		if (d->all[i] == dev)
			return;
	if (d->n < DISKS_MAX)
		d->all[d->n++] = dev;
	else
		d->is_known = false;
}

static void add_device(struct disks *d, dev_t dev, unsigned int layer);

/* What it is made of; how many there were. */
static unsigned int
add_slaves(struct disks *d, dev_t dev, unsigned int layer)
{
	char path[SYS_PATH_MAX];
	unsigned int n = 0;
	struct dirent *en;
	dev_t slave;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/slaves",
	    major(dev), minor(dev));
	dir = opendir(path);
	while (dir != NULL && (en = readdir(dir)) != NULL) {
		if (en->d_name[0] == '.')
			continue;
		(void)snprintf(
		    path, sizeof(path), "slaves/%.255s/dev", en->d_name);
		if (read_dev(dev, path, &slave))
			add_device(d, slave, layer + 1);
		else
			d->is_known = false;
		n++;
	}
	if (dir != NULL)
		(void)closedir(dir);
	return n;
}

static void
add_device(struct disks *d, dev_t dev, unsigned int layer)
{
	char file[SYS_PATH_MAX];

	dev = whole_of(dev);
	if (layer > LAYERS_MAX)
		d->is_known = false;
	else if (add_slaves(d, dev, layer) > 0)
		return;
	else if (read_sys(dev, "loop/backing_file", file, sizeof(file)))
		find_below(file, d, layer + 1);
	else
		add(d, dev);
}

static void
take_node(struct disks *d, dev_t dev)
{
	char path[SYS_PATH_MAX], link[SYS_PATH_MAX];
	const char *name;
	ssize_t n;

	dev = whole_of(dev);
	(void)snprintf(
	    path, sizeof(path), "/sys/dev/block/%u:%u", major(dev), minor(dev));
	n = readlink(path, link, sizeof(link) - 1);
	if (n <= 0)
		return;
	link[n] = '\0';
	name = strrchr(link, '/');
	/* A name with a "!" has a path below /dev. */
	if (name != NULL && strchr(name, '!') == NULL &&
	    strlen(name) < sizeof(d->node) - 4)
		(void)snprintf(d->node, sizeof(d->node), "/dev%.59s", name);
}

static void
find_below(const char *path, struct disks *d, unsigned int layer)
{
	struct mount_line m;
	struct stat st;

	if (!find_mount(path, &m)) {
		d->is_known = false;
		return;
	}
	if (strcmp(m.type, "tmpfs") == 0 || strcmp(m.type, "ramfs") == 0)
		return;
	/* btrfs has a number of its own and says what it is on. */
	if (major(m.dev) == 0) {
		if (strncmp(m.source, "/dev/", 5) != 0 ||
		    stat(m.source, &st) == -1 || !S_ISBLK(st.st_mode)) {
			d->is_known = false;
			return;
		}
		add_device(d, st.st_rdev, layer);
		return;
	}
	add_device(d, m.dev, layer);
	if (layer == 0)
		take_node(d, m.dev);
}

void
disks_below(const char *path, struct disks *out)
{
	memset(out, 0, sizeof(*out));
	out->is_known = true;
	find_below(path, out, 0);
}

enum disks_shared
disks_shared(const struct disks *a, const struct disks *b)
{
	for (unsigned int i = 0; i < a->n; i++)
		for (unsigned int k = 0; k < b->n; k++)
			if (a->all[i] == b->all[k])
				return DISKS_SHARED;
	return a->is_known && b->is_known ? DISKS_APART : DISKS_UNKNOWN;
}
