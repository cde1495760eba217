/*
 * tessera-conformance [--threads] [--direct] [--watches] ENGINE [PART..]: runs the conformance
 * suite over the engine of a shared object, or over rank threads.
 */
#include "comm_suite.h"
#include "plugged.h"

#include <tessera/version.h>

#include <dlfcn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] = "usage: tessera-conformance [--threads] [--direct] [--watches] ENGINE [PART..]\n"
                            "\n"
                            "Tests a communicator's engine. ENGINE is the path of a shared object, which exports "
                            "tessera_conformance() (tessera/sys/comm.h),\n"
                            "or \"threads\" for Tessera's own rank threads. PART is collectives, departure, "
                            "disagreement, halves or split; all of them by "
                            "default.\n"
                            "\n"
                            "  --threads   ranks are threads of this process; by default they are processes\n"
                            "  --direct    the engine's table has `direct`\n"
                            "  --watches   the engine names ranks that return, abort or are late to their peers, and "
                            "sizes of messages that do not fit\n"
                            "  --help, --version\n";

const comm_engine suite_engines[] = {{"threads", tsr_threads_run, true, true}, {0}};

static comm_engine plugged = {"", plugged_run_processes, false, false, true, NULL};

typedef struct options {
    int threads, direct, watches;
} options;

static void read_options(int count, char **arguments, options *o)
{
    const struct option known[] = {{"threads", no_argument, &o->threads, 1}, {"direct", no_argument, &o->direct, 1},
                                   {"watches", no_argument, &o->watches, 1}, {"help", no_argument, NULL, 'h'},
                                   {"version", no_argument, NULL, 'v'},      {NULL, 0, NULL, 0}};
    for (int found; (found = getopt_long(count, arguments, "", known, NULL)) >= 0;) {
        if (found == 'v')
            printf("tessera-conformance %s\n", tsr_version());
        else if (found != 0)
            fputs(usage, found == 'h' ? stdout : stderr);
        if (found != 0)
            exit(found == '?' ? 2 : 0);
    }
}

static void open_engine(const char *path, const options *o)
{
    void *const object = dlopen(path, RTLD_NOW);
    void *const entry = object ? dlsym(object, "tessera_conformance") : NULL;
    tsr_comm_conformance *create;
    if (!entry) {
        fprintf(stderr, "tessera-conformance: %s\n", dlerror());
        exit(2);
    }
    memcpy(&create, &entry, sizeof create);
    plugged_use(create);
    plugged.name = path;
    plugged.direct = o->direct;
    plugged.watches = o->watches;
    plugged.apart = !o->threads;
    plugged.run = o->threads ? plugged_run_threads : plugged_run_processes;
    suite_engine = &plugged;
}

static int run_named(char **names)
{
    int failed = 0;
    for (; *names; names++) {
        const suite_part *const part = suite_find_part(*names);
        if (!part) {
            fprintf(stderr, "tessera-conformance: \"%s\" is not a part of the suite\n%s", *names, usage);
            exit(2);
        }
        failed += suite_run_part(part);
    }
    return failed;
}

static int run_all(void)
{
    int failed = 0;
    for (const suite_part *part = suite_parts; part->name; part++)
        failed += suite_run_part(part);
    return failed;
}

int main(int count, char **arguments)
{
    options o = {0, 0, 0};
    read_options(count, arguments, &o);
    if (optind == count) {
        fputs(usage, stderr);
        return 2;
    }
    if (strcmp(arguments[optind], suite_engines[0].name) == 0)
        suite_engine = &suite_engines[0];
    else
        open_engine(arguments[optind], &o);
    const int failed = optind + 1 < count ? run_named(arguments + optind + 1) : run_all();
    if (failed > 0)
        fprintf(stderr, "tessera-conformance: %d of the tests of %s failed\n", failed, suite_engine->name);
    return failed > 0;
}
