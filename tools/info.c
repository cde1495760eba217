#include "blas.h"
#include "engines.h"
#include "report.h"

#include <stdlib.h>
#include <tessera/context.h>
#include <tessera/sys/device.h>
#include <tessera/version.h>

/** What there is to know, gathered once for both ways of printing it. */
typedef struct facts {
    tsr_context *context;
    int host_count;
    const char *host_reason;
    char blas[BLAS_TEXT_BYTES];
} facts;

static int gather(facts *f)
{
    void *self;
    const tsr_device_table *const host = tsr_device_driver_table(NULL, &self);
    if (tsr_context_create(NULL, &f->context) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    if (host->count(self, &f->host_count, &f->host_reason) != TSR_OK) {
        tsr_context_destroy(f->context);
        return complain_status(EXIT_REFUSED);
    }
    blas_describe(f->blas);
    return EXIT_DONE;
}

/** How many devices of a row there are, which kernels they run, and why there is none. */
static int count_devices(const facts *f, const backend *device, const char **kernels, const char **reason)
{
    *kernels = device->reason == NULL ? tsr_context_kernels(f->context) : NULL;
    *reason = device->reason != NULL ? device->reason : f->host_count == 0 ? f->host_reason : NULL;
    return device->reason == NULL ? f->host_count : 0;
}

static json_t *engines_to_json(void)
{
    json_t *const array = json_array();
    for (int i = 0; engine_get(i) != NULL; i++) {
        const backend *const engine = engine_get(i);
        json_array_append_new(array, json_pack("{ss sb ss? so}", "name", engine->name, "available", engine->reason == NULL, "reason",
                                               engine->reason, "version", json_null()));
    }
    return array;
}

static json_t *devices_to_json(const facts *f)
{
    json_t *const array = json_array();
    for (int i = 0; device_get(i) != NULL; i++) {
        const char *kernels, *reason;
        const int count = count_devices(f, device_get(i), &kernels, &reason);
        json_array_append_new(
            array, json_pack("{ss si ss? ss?}", "name", device_get(i)->name, "count", count, "reason", reason, "kernels", kernels));
    }
    return array;
}

static json_t *environment_to_json(void)
{
    json_t *const object = json_object();
    for (size_t i = 0; tsr_environment_get(i) != NULL; i++) {
        const char *const name = tsr_environment_get(i)->name, *const value = getenv(name);
        json_object_set_new(object, name, value != NULL ? json_string(value) : json_null());
    }
    return object;
}

static void print_facts(const facts *f)
{
    printf("tessera %s\n\nengines\n", tsr_version());
    for (int i = 0; engine_get(i) != NULL; i++)
        printf("  %-8s %s\n", engine_get(i)->name,
               engine_get(i)->reason != NULL ? engine_get(i)->reason : "ranks are threads of one process");
    printf("\ndevices\n");
    for (int i = 0; device_get(i) != NULL; i++) {
        const char *kernels, *reason;
        const int count = count_devices(f, device_get(i), &kernels, &reason);
        if (reason != NULL)
            printf("  %-8s %s\n", device_get(i)->name, reason);
        else
            printf("  %-8s %d, kernels %s\n", device_get(i)->name, count, kernels);
    }
    printf("\nblas\n  %s\n\nenvironment\n", f->blas);
    for (size_t i = 0; tsr_environment_get(i) != NULL; i++) {
        const tsr_environment_variable *const variable = tsr_environment_get(i);
        const char *const value = getenv(variable->name);
        printf("  %s%s%s\n      %s\n", variable->name, value != NULL ? "=" : " is not set", value != NULL ? value : "", variable->help);
    }
}

static int run_info(const tool_arguments *given)
{
    facts f = {0};
    int status = gather(&f);
    if (status != EXIT_DONE)
        return status;
    if (given->value[OPT_JSON] != NULL)
        status = print_json(json_pack("{ss so so ss so}", "version", tsr_version(), "engines", engines_to_json(), "devices",
                                      devices_to_json(&f), "blas", f.blas, "environment", environment_to_json()));
    else
        print_facts(&f);
    tsr_context_destroy(f.context);
    return status;
}

const tool_command info_command = {
    .name = "info",
    .summary = "what this build and this machine have",
    .details =
        "Prints the version, the engines and devices and why others cannot be used, the BLAS, and the environment variables that the "
        "library reads.",
    .examples = "  tessera info\n  tessera info --json | jq .engines\n",
    .takes = TAKES(JSON),
    .run = run_info,
};
