/* SPDX-License-Identifier: MIT */
/*
 * Where it was measured: what one must know to believe a figure, or to
 * compare it with one's own. Topology, CPU model and caches come from hwloc;
 * frequency policy from sysfs; the hypervisor from CPUID where there is one.
 *
 * What the system does not tell is "unknown", which is a result and not an
 * error: no cpufreq directory in a virtual machine, no model name on some
 * boards.
 */
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

static void copy(char *to, const char *text)
{
	snprintf(to, ENVIRON_TEXT, "%s", text && *text ? text : "unknown");
}

/* The first line of a file of sysfs; false where there is none. */
static bool read_line(const char *root, const char *path, char *to)
{
	char full[ENVIRON_TEXT + 128];
	FILE *in;
	bool found;

	snprintf(full, sizeof(full), "%s%s", root, path);
	in = fopen(full, "r");
	if (!in)
		return false;
	found = fgets(to, ENVIRON_TEXT, in) != NULL;
	fclose(in);
	if (found)
		to[strcspn(to, "\n")] = '\0';
	return found && *to;
}

static void read_governor(struct environ *e, const struct cpus *cpus,
			  const char *root)
{
	char path[128];

	snprintf(path, sizeof(path),
		 "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor",
		 cpus->id[0]);
	if (!read_line(root, path, e->governor))
		copy(e->governor, NULL);
}

/* The name that a hypervisor gives itself; false where there is none. */
static bool read_hypervisor(char name[static 13])
{
	memset(name, 0, 13);
#if defined(__x86_64__) || defined(__i386__)
	unsigned int a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 31)))
		return false;
	__cpuid(0x40000000, a, b, c, d);
	memcpy(name, &b, 4);
	memcpy(name + 4, &c, 4);
	memcpy(name + 8, &d, 4);
	return true;
#else
	return false;
#endif
}

static void read_machine(struct environ *e, const char *root)
{
	char text[ENVIRON_TEXT];

	if (read_hypervisor(text)) {
		snprintf(e->machine, ENVIRON_TEXT, "virtual (%.12s)",
			 *text ? text : "unknown");
	} else if (read_line(root, "/sys/hypervisor/type", text)) {
		snprintf(e->machine, ENVIRON_TEXT, "virtual (%.64s)", text);
	} else {
#if defined(__x86_64__) || defined(__i386__)
		copy(e->machine, "physical, or a hypervisor that hides");
#else
		copy(e->machine, NULL);
#endif
	}
}

static void read_kernel(struct environ *e)
{
	struct utsname u;

	copy(e->kernel, NULL);
	copy(e->host, NULL);
	if (uname(&u))
		return;
	snprintf(e->kernel, ENVIRON_TEXT, "%.64s %.64s %.64s", u.sysname,
		 u.release, u.machine);
	copy(e->host, u.nodename);
}

static void read_date(struct environ *e)
{
	time_t t = time(NULL);
	struct tm tm;

	copy(e->date, NULL);
	if (gmtime_r(&t, &tm))
		strftime(e->date, ENVIRON_TEXT, "%Y-%m-%dT%H:%M:%S+00:00", &tm);
}

static void read_model(struct environ *e, hwloc_topology_t topology)
{
	static const char *const keys[] = { "CPUModel", "CPUType" };
	hwloc_obj_t package =
		hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PACKAGE, NULL);
	const char *model = NULL;

	for (size_t i = 0; i < 2 && !model; i++) {
		if (package)
			model = hwloc_obj_get_info_by_name(package, keys[i]);
		if (!model)
			model = hwloc_obj_get_info_by_name(
				hwloc_get_root_obj(topology), keys[i]);
	}
	copy(e->cpu, model);
}

static void read_topology(struct environ *e, hwloc_topology_t topology)
{
	int packages = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);
	int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
	int nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
	int weight = hwloc_bitmap_weight(
		hwloc_topology_get_complete_cpuset(topology));

	e->hardware = weight > 0 ? (unsigned int)weight : 0;
	if (packages < 1 || cores < 1)
		copy(e->topology, NULL);
	else
		snprintf(e->topology, ENVIRON_TEXT,
			 "%d package%s, %d NUMA node%s, %d core%s, %u CPU%s",
			 packages, packages > 1 ? "s" : "", nodes,
			 nodes > 1 ? "s" : "", cores, cores > 1 ? "s" : "",
			 e->hardware, e->hardware > 1 ? "s" : "");
}

/* Groups of usable CPUs that share a core: "0,32 1,33". */
static void read_smt(struct environ *e, const struct cpus *cpus)
{
	hwloc_bitmap_t both = hwloc_bitmap_alloc();
	hwloc_obj_t core = NULL;
	size_t len = 0;
	char list[64];

	copy(e->smt,
	     hwloc_get_nbobjs_by_type(cpus->topology, HWLOC_OBJ_CORE) > 0
		     ? "none"
		     : NULL);
	while (both && len < ENVIRON_TEXT &&
	       (core = hwloc_get_next_obj_by_type(cpus->topology,
						  HWLOC_OBJ_CORE, core))) {
		hwloc_bitmap_and(both, core->cpuset, cpus->allowed);
		if (hwloc_bitmap_weight(both) < 2)
			continue;
		hwloc_bitmap_list_snprintf(list, sizeof(list), both);
		len += (size_t)snprintf(e->smt + len, ENVIRON_TEXT - len,
					"%s%s", len ? " " : "", list);
	}
	hwloc_bitmap_free(both);
}

/* What the first usable CPU goes through: "L1d 48K, L2 2M, L3 480M". */
static void read_caches(struct environ *e, const struct cpus *cpus)
{
	hwloc_obj_t obj =
		hwloc_get_pu_obj_by_os_index(cpus->topology, cpus->id[0]);
	size_t len = 0;

	copy(e->caches, NULL);
	for (; obj && len < ENVIRON_TEXT; obj = obj->parent) {
		char name[32];

		if (!hwloc_obj_type_is_dcache(obj->type))
			continue;
		hwloc_obj_type_snprintf(name, sizeof(name), obj, 0);
		len += (size_t)snprintf(
			e->caches + len, ENVIRON_TEXT - len, "%s%s %lluK",
			len ? ", " : "", name,
			(unsigned long long)obj->attr->cache.size / 1024);
		if (!e->line)
			e->line = obj->attr->cache.linesize;
	}
}

static void read_line_size(struct environ *e)
{
#ifdef _SC_LEVEL1_DCACHE_LINESIZE
	long line = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);

	if (!e->line && line > 0)
		e->line = (unsigned int)line;
#else
	(void)e;
#endif
}

static void read_usable(struct environ *e, const struct cpus *cpus)
{
	size_t len = 0;

	hwloc_bitmap_list_snprintf(e->allowed, ENVIRON_TEXT, cpus->allowed);
	for (unsigned int i = 0; i < cpus->count && len < ENVIRON_TEXT; i++)
		len += (size_t)snprintf(e->usable + len, ENVIRON_TEXT - len,
					"%s%u", i ? "," : "", cpus->id[i]);
}

static void read_mhz(struct environ *e, const struct cpus *cpus,
		     const char *root)
{
	char path[128], text[ENVIRON_TEXT];

	snprintf(path, sizeof(path),
		 "/sys/devices/system/cpu/cpu%u/cpufreq/cpuinfo_max_freq",
		 cpus->id[0]);
	if (read_line(root, path, text))
		e->mhz = strtod(text, NULL) / 1e3;
}

void environ_read(struct environ *e, const struct cpus *cpus, const char *root)
{
	*e = (struct environ){ 0 };
	read_date(e);
	read_kernel(e);
	read_model(e, cpus->topology);
	read_topology(e, cpus->topology);
	read_smt(e, cpus);
	read_caches(e, cpus);
	read_line_size(e);
	read_usable(e, cpus);
	read_governor(e, cpus, root);
	read_mhz(e, cpus, root);
	read_machine(e, root);
	e->loads = getloadavg(e->load, 3);
}

static void print_number(FILE *out, const char *label, double x,
			 const char *otherwise, const char *unit)
{
	if (x > 0)
		fprintf(out, "%-10s %.4g%s\n", label, x, unit);
	else
		fprintf(out, "%-10s %s\n", label, otherwise);
}

void environ_print(FILE *out, const struct session *s)
{
	const struct environ *e = s->environ;

	fprintf(out, "%-10s %s\n", "cpu", e->cpu);
	fprintf(out, "%-10s %s; siblings: %s\n", "topology", e->topology,
		e->smt);
	fprintf(out, "%-10s %s\n", "caches", e->caches);
	print_number(out, "line", e->line, "unknown", " bytes");
	fprintf(out, "%-10s allowed %s; used %s, in this order%s\n", "cpus",
		e->allowed, e->usable,
		s->cpus->pin ? ", pinned" : ", not pinned");
	print_number(out, "quota", s->cpus->quota, "none", " CPUs");
	fprintf(out, "%-10s %s; governor %s\n", "machine", e->machine,
		e->governor);
	fprintf(out, "%-10s %s\n", "kernel", e->kernel);
	fprintf(out, "%-10s %s %s\n", "compiler", BENCH_COMPILER, BENCH_FLAGS);
}
