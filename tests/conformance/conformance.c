/*
 * tessera-conformance [OPTION..] OBJECT [PART..]: runs the conformance suites over the engine and
 * the device of a shared object, or over rank threads.
 */
#include "comm_suite.h"
#include "devices.h"
#include "plugged.h"
#include "watched.h"

#include <tessera/sys/library.h>
#include <tessera/version.h>

#include <dlfcn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

/* A call of a device that takes longer hangs. */
#define DEVICE_SECONDS 60

static const char usage[] =
    "usage: tessera-conformance [OPTION..] OBJECT [PART..]\n"
    "\n"
    "Tests a communicator's engine, or a device. OBJECT is the path of a shared object, which exports "
    "tessera_conformance()\n"
    "(tessera/sys/comm.h), or tessera_device() (tessera/sys/library.h), or both; or \"threads\" for Tessera's own rank "
    "threads.\n"
    "PART is one of these, of an engine: along, collectives, departure, disagreement, halves, meshes, rows, split;\n"
    "of a device: memory, copy, fill, reduce, convert, streams, products, moves. All of them are the default.\n"
    "\n"
    "  --threads          the engine's ranks are threads of this process; by default they are processes\n"
    "  --direct           the engine's table has `direct`\n"
    "  --watches          the engine names ranks that return, abort or are late to their peers, and sizes of messages "
    "that do not fit\n"
    "  --tests PATTERN    only tests whose names match: 'an_event*'\n"
    "  --timeout SECONDS  how long a call of a device may take (default 60)\n"
    "  --help, --version\n";

const comm_engine suite_engines[] = {{"threads", tsr_threads_run, true, true}, {0}};

static comm_engine plugged = {"", plugged_run_processes, false, false, true, NULL};

typedef struct options {
    int threads, direct, watches;
    unsigned seconds;
} options;

static void read_seconds(const char *text, options *o)
{
    char *end;
    const unsigned long seconds = strtoul(text, &end, 10);
    if (*end || end == text || seconds < 1 || seconds > 1000000) {
        fprintf(stderr, "tessera-conformance: --timeout %s: expected seconds, 1 to 1000000\n", text);
        exit(2);
    }
    o->seconds = (unsigned)seconds;
}

static void read_options(int count, char **arguments, options *o)
{
    const struct option known[] = {{"threads", no_argument, &o->threads, 1}, {"direct", no_argument, &o->direct, 1},
                                   {"watches", no_argument, &o->watches, 1}, {"help", no_argument, NULL, 'h'},
                                   {"version", no_argument, NULL, 'v'},      {"timeout", required_argument, NULL, 't'},
                                   {"tests", required_argument, NULL, 'n'},  {NULL, 0, NULL, 0}};
    for (int found; (found = getopt_long(count, arguments, "", known, NULL)) >= 0;) {
        if (found == 'v')
            printf("tessera-conformance %s\n", tsr_version());
        else if (found == 't')
            read_seconds(optarg, o);
        else if (found == 'n')
            cmocka_set_test_filter(optarg);
        else if (found != 0)
            fputs(usage, found == 'h' ? stdout : stderr);
        if (found != 0 && found != 't' && found != 'n')
            exit(found == '?' ? 2 : 0);
    }
}

static void use_engine(const char *path, tsr_comm_conformance *create, const options *o)
{
    plugged_use(create);
    plugged.name = path;
    plugged.direct = o->direct;
    plugged.watches = o->watches;
    plugged.apart = !o->threads;
    plugged.run = o->threads ? plugged_run_threads : plugged_run_processes;
    suite_engine = &plugged;
}

static void refuse_device(void)
{
    fprintf(stderr, "tessera-conformance: %s\n", tsr_status_message());
    exit(1);
}

/* Both drivers are this process's until its end. */
static void use_device(const char *path, const options *o)
{
    tsr_device_driver *driver, *watched;
    const char *reason = NULL;
    void *self;
    int count = 0;
    if (tsr_device_driver_load(NULL, path, &driver) != TSR_OK || watched_create(driver, o->seconds, &watched) != TSR_OK)
        refuse_device();
    const tsr_device_table *const table = tsr_device_driver_table(watched, &self);
    if (table->count(self, &count, &reason) != TSR_OK)
        refuse_device();
    if (count < 1) {
        fprintf(stderr, "tessera-conformance: %s has no device to test: %s\n", path,
                reason ? reason : "without a reason");
        exit(1);
    }
    devices_use(table->name, watched);
}

/* What a shared object has. */
typedef struct subject {
    const char *name;
    bool engine, device;
} subject;

static subject open_object(const char *path, const options *o)
{
    subject s = {.name = path};
    void *const object = dlopen(path, RTLD_NOW);
    if (!object) {
        fprintf(stderr, "tessera-conformance: %s\n", dlerror());
        exit(2);
    }
    void *const entry = dlsym(object, "tessera_conformance");
    s.engine = entry != NULL;
    s.device = dlsym(object, "tessera_device") != NULL;
    if (!s.engine && !s.device) {
        fprintf(stderr, "tessera-conformance: %s exports neither tessera_conformance nor tessera_device\n", path);
        exit(2);
    }
    if (s.engine) {
        tsr_comm_conformance *create;
        memcpy(&create, &entry, sizeof create);
        use_engine(path, create, o);
    }
    if (s.device)
        use_device(path, o);
    return s;
}

static int run_named(const subject *s, const char *name)
{
    const suite_part *const part = s->engine ? suite_find_part(name) : NULL;
    const device_part *const own = s->device ? device_find_part(devices_parts, name) : NULL;
    if (part)
        return suite_run_part(part);
    if (own)
        return own->run();
    fprintf(stderr, "tessera-conformance: \"%s\" is not a part of the suite of %s\n%s", name, s->name, usage);
    exit(2);
}

static int run_all(const subject *s)
{
    int failed = 0;
    for (const suite_part *part = suite_parts; s->engine && part->name; part++)
        failed += suite_run_part(part);
    for (const device_part *part = devices_parts; s->device && part->name; part++)
        failed += part->run();
    return failed;
}

int main(int count, char **arguments)
{
    options o = {.seconds = DEVICE_SECONDS};
    subject s = {.name = suite_engines[0].name, .engine = true};
    int failed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    read_options(count, arguments, &o);
    if (optind == count) {
        fputs(usage, stderr);
        return 2;
    }
    if (strcmp(arguments[optind], suite_engines[0].name) == 0)
        suite_engine = &suite_engines[0];
    else
        s = open_object(arguments[optind], &o);
    for (char **name = arguments + optind + 1; *name; name++)
        failed += run_named(&s, *name);
    if (optind + 1 == count)
        failed = run_all(&s);
    if (failed > 0)
        fprintf(stderr, "tessera-conformance: %d of the tests of %s failed\n", failed, s.name);
    return failed > 0;
}
