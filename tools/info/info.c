#include "cli/report.h"
#include "info/info_kernels.h"
#include "place/blas.h"
#include "place/engines.h"

#include <tessera/context.h>
#include <tessera/sys/device.h>
#include <tessera/version.h>

#include <stdlib.h>

/* What the command prints, gathered before it is printed as JSON or text. */
typedef struct facts {
    tsr_context *context;
    int host_count;
    const char *host_reason;
    kernel_facts kernels;
    blas_facts blas;
    cuda_facts cuda;
} facts;

/* If a GPU cannot be described none is reported, with the reason: it could not be used either. */
static void gather_cuda(cuda_facts *cuda)
{
    cuda_gather(cuda);
    const tsr_status status = cuda_describe_gpus(cuda);
    if (status == TSR_OK)
        return;
    if (status == TSR_ERROR_MEMORY)
        say_memory_is_short();
    cuda_release(cuda);
    snprintf(cuda->reason, sizeof cuda->reason, "%s", tsr_status_message());
}

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
    if (blas_gather(f->context, &f->blas) != TSR_OK) {
        tsr_context_destroy(f->context);
        return complain_status(EXIT_REFUSED);
    }
    gather_cuda(&f->cuda);
    kernel_facts_gather(f->context, &f->kernels);
    return EXIT_DONE;
}

static json_t *engines_to_json(const facts *f)
{
    json_t *array = json_array();
    for (int i = 0; engine_get(i) != NULL; i++) {
        const engine *const row = engine_get(i);
        const char *const reason = row->missing(&f->cuda);
        array = json_with_item(array, json_pack("{ss sb ss? ss?}", "name", row->name, "available", !reason, "reason",
                                                reason, "version", row->version(&f->cuda)));
    }
    return array;
}

static json_t *host_to_json(const facts *f)
{
    return json_pack("{ss si ss? ss ss ss so}", "name", "host", "count", f->host_count, "reason",
                     f->host_count == 0 ? f->host_reason : NULL, "kernels", tsr_context_kernels(f->context), "ways",
                     tsr_context_kernel_way(f->context), "ways_reason", f->kernels.reason, "choices",
                     kernel_facts_to_json(&f->kernels));
}

/* `of_machine` is null if unknown. */
static json_t *blas_to_json(const blas_facts *found)
{
    json_t *array = json_array();
    for (int i = 0; i < found->count; i++) {
        const tsr_blas_table *const table = found->by[i].table;
        const double share = found->of_machine[i];
        array = json_with_item(
            array, json_pack("{ss ss ss ss ss? so ss?}", "name", table->name, "source", found->by[i].source, "version",
                             table->version, "core", table->core, "kernels", table->kernels, "of_machine",
                             share > 0 ? json_real(share) : json_null(), "warning", found->by[i].warning));
    }
    return array;
}

static json_t *gpu_to_json(const cuda_facts *cuda, int index)
{
    const tsr_cuda_device_info *const info = &cuda->gpus[index].info;
    char capability[32];
    json_t *reaches = json_array();
    for (int owner = 0; owner < cuda->count; owner++)
        if (cuda->gpus[index].reaches[owner])
            reaches = json_with_item(reaches, json_integer(owner));
    snprintf(capability, sizeof capability, "%d.%d", info->major, info->minor);
    return json_pack("{ss ss sI si so}", "name", info->name, "compute_capability", capability, "memory_bytes",
                     (json_int_t)info->memory_bytes, "multiprocessors", info->multiprocessors, "reaches", reaches);
}

static const char *or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

/* "kernels" is null: CUDA's runtime chooses the kernels. */
static json_t *cuda_to_json(const cuda_facts *cuda)
{
    json_t *gpus = json_array();
    for (int index = 0; index < cuda->count; index++)
        gpus = json_with_item(gpus, gpu_to_json(cuda, index));
    return json_pack("{ss si ss? sn ss? ss? ss? so}", "name", "cuda", "count", cuda->count, "reason",
                     or_null(cuda->reason), "kernels", "runtime", or_null(cuda->runtime), "driver",
                     or_null(cuda->driver_version), "cublaslt", or_null(cuda->cublaslt), "gpus", gpus);
}

static json_t *devices_to_json(const facts *f)
{
    json_t *array = json_array();
    array = json_with_item(array, host_to_json(f));
    array = json_with_item(array, cuda_to_json(&f->cuda));
    return array;
}

static json_t *environment_to_json(void)
{
    json_t *object = json_object();
    for (size_t i = 0; tsr_environment_get(i) != NULL; i++) {
        const char *const name = tsr_environment_get(i)->name, *const value = getenv(name);
        object = json_with_field(object, name, value ? json_string(value) : json_null());
    }
    return object;
}

static void print_cuda(const cuda_facts *cuda)
{
    if (cuda->count == 0)
        say("  %-8s %s\n", "cuda", cuda->reason);
    for (int index = 0; index < cuda->count; index++) {
        const tsr_cuda_device_info *const info = &cuda->gpus[index].info;
        say("  %-8s %d: %s, compute capability %d.%d, %lld MiB, reaches", index == 0 ? "cuda" : "", index, info->name,
            info->major, info->minor, (long long)(info->memory_bytes >> 20));
        for (int owner = 0; owner < cuda->count; owner++)
            if (cuda->gpus[index].reaches[owner])
                say(" %d", owner);
        say("\n");
    }
    if (cuda->runtime[0] != '\0')
        say("  %-8s CUDA runtime %s, %s%s, %s%s\n", "", cuda->runtime,
            cuda->cublaslt[0] != '\0' ? "cuBLASLt " : "no cuBLASLt", cuda->cublaslt,
            cuda->driver_version[0] != '\0' ? "driver for CUDA " : "no driver", cuda->driver_version);
}

static void print_blas(const blas_facts *found)
{
    say("\nblas\n");
    if (found->count == 0)
        say("  %s\n", found->text);
    for (int i = 0; i < found->count; i++) {
        const tsr_blas_table *const table = found->by[i].table;
        say("  %-16s %s, %s, kernels for %s", table->name, found->by[i].source, table->version, table->core);
        if (found->of_machine[i] > 0)
            say(": %.2f of the multiply-adds that a core can do", found->of_machine[i]);
        say("\n");
        if (found->by[i].warning)
            say("      %s\n", found->by[i].warning);
    }
}

static void print_engine(const engine *row, const cuda_facts *cuda)
{
    const char *const reason = row->missing(cuda), *const version = row->version(cuda);
    say("  %-8s %s%s%s\n", row->name, version ? version : "", version ? ": " : "", reason ? reason : row->ranks);
}

static void print_host(const facts *f)
{
    say("  %-8s %d, kernels %s, ways %s: %s\n", "host", f->host_count, tsr_context_kernels(f->context),
        tsr_context_kernel_way(f->context), f->kernels.reason);
    kernel_facts_print(&f->kernels);
}

static void print_facts(const facts *f)
{
    say("tessera %s\n\nengines\n", tsr_version());
    for (int i = 0; engine_get(i) != NULL; i++)
        print_engine(engine_get(i), &f->cuda);
    say("\ndevices\n");
    if (f->host_count > 0)
        print_host(f);
    else
        say("  %-8s %s\n", "host", f->host_reason);
    print_cuda(&f->cuda);
    print_blas(&f->blas);
    say("\nenvironment\n");
    for (size_t i = 0; tsr_environment_get(i) != NULL; i++) {
        const tsr_environment_variable *const variable = tsr_environment_get(i);
        const char *const value = getenv(variable->name);
        say("  %s%s%s\n      %s\n", variable->name, value ? "=" : " is not set", value ? value : "", variable->help);
    }
}

static int run_info(const tool_arguments *given)
{
    facts f = {0};
    int status = gather(&f);
    if (status != EXIT_DONE)
        return status;
    if (given->value[OPT_JSON])
        status = print_json(json_pack("{ss so so ss so so}", "version", tsr_version(), "engines", engines_to_json(&f),
                                      "devices", devices_to_json(&f), "blas", f.blas.text, "providers",
                                      blas_to_json(&f.blas), "environment", environment_to_json()));
    else
        print_facts(&f);
    cuda_release(&f.cuda);
    tsr_context_destroy(f.context);
    return status;
}

const tool_command info_command = {
    .name = "info",
    .summary = "what this build and this machine have",
    .details = "Prints the version, the engines and devices and why others cannot be used, the BLAS libraries, the "
               "first of which layers "
               "take, with the share of "
               "what a core can do, measured here, and the environment variables that the "
               "library reads.",
    .examples = "  tessera info\n  tessera info --json | jq .engines\n",
    .takes = TAKES(JSON),
    .run = run_info,
};
