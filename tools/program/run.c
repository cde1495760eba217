#include "program/run.h"

#include "place/wholes.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

/* Inputs and parameters lie at addresses that are a multiple of so many bytes. */
#define ALIGNMENT 64

/* What the ranks share. */
typedef struct job {
    const program_request *request;
    tsr_npy **inputs; /* by the program's value; NULL: it is no input or parameter */
    size_t value_count;
    wholes_job files;
} job;

/* One rank's side. */
typedef struct side {
    const job *j;
    tsr_comm *comm;
    tsr_mesh *mesh;
    tsr_executable *x;
    tsr_dtensor **given, **made; /* by input, by output */
    tsr_tensor *inputs, *outputs;
    void *workspace;
} side;

static tsr_status allocate(size_t count, size_t bytes, void **out)
{
    *out = calloc(count + 1, bytes);
    return *out ? TSR_OK : tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the tensors of the program");
}

static tsr_status make_side(side *s)
{
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    void *memory;
    options.rank = tsr_comm_rank(s->comm);
    TSR_TRY(wholes_mesh(s->comm, s->j->request->mesh, &s->mesh));
    TSR_TRY(tsr_compile(s->j->request->program, &options, &s->x));
    const size_t inputs = tsr_executable_input_count(s->x), outputs = tsr_executable_output_count(s->x);
    TSR_TRY(allocate(inputs, sizeof *s->given, &memory));
    s->given = memory;
    TSR_TRY(allocate(outputs, sizeof *s->made, &memory));
    s->made = memory;
    TSR_TRY(allocate(inputs, sizeof *s->inputs, &memory));
    s->inputs = memory;
    TSR_TRY(allocate(outputs, sizeof *s->outputs, &memory));
    s->outputs = memory;
    return TSR_OK;
}

static void finish_side(side *s)
{
    for (size_t i = 0; s->given && i < tsr_executable_input_count(s->x); i++)
        tsr_dtensor_destroy(s->given[i]);
    for (size_t i = 0; s->made && i < tsr_executable_output_count(s->x); i++)
        tsr_dtensor_destroy(s->made[i]);
    void *const memory[] = {s->given, s->made, s->inputs, s->outputs, s->workspace};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        free(memory[i]);
    tsr_executable_destroy(s->x);
    tsr_mesh_destroy(s->mesh);
}

/* Gives the executable a value: inputs go by order, parameters by name. */
static tsr_status give_value(side *s, const char *name, tsr_dtensor *x, size_t *input)
{
    if (*input < tsr_executable_input_count(s->x) && strcmp(tsr_executable_input_name(s->x, *input), name) == 0) {
        s->inputs[*input] = tsr_dtensor_to_local(x);
        s->given[(*input)++] = x;
        return TSR_OK;
    }
    const tsr_status status = tsr_executable_bind(s->x, name, x);
    tsr_dtensor_destroy(x);
    return status;
}

static tsr_status give_values(side *s)
{
    size_t input = 0;
    const tsr_program *const program = s->j->request->program;
    for (size_t i = 0; i < s->j->value_count; i++) {
        tsr_dtensor *x;
        if (!s->j->inputs[i])
            continue;
        TSR_TRY(wholes_read(s->j->inputs[i], s->mesh, tsr_value_layout(program, (tsr_value)i), &x));
        TSR_TRY(give_value(s, tsr_value_name(program, (tsr_value)i), x, &input));
    }
    return TSR_OK;
}

static tsr_status make_outputs(side *s)
{
    for (size_t i = 0; i < tsr_executable_output_count(s->x); i++) {
        tsr_layout *layout;
        TSR_TRY(wholes_layout(s->mesh, tsr_executable_output_layout(s->x, i), &layout));
        const tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), &s->made[i]);
        tsr_layout_destroy(layout);
        TSR_TRY(status);
        s->outputs[i] = tsr_dtensor_to_local(s->made[i]);
    }
    return TSR_OK;
}

static tsr_status run_side(side *s)
{
    TSR_TRY(give_values(s));
    TSR_TRY(make_outputs(s));
    TSR_TRY(tsr_executable_prepare(s->x, s->comm));
    const size_t bytes = tsr_executable_workspace_bytes(s->x);
    s->workspace = aligned_alloc(ALIGNMENT, (bytes / ALIGNMENT + 1) * ALIGNMENT);
    if (!s->workspace)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for a workspace of %zu bytes", bytes);
    TSR_TRY(tsr_executable_run(s->x, s->comm, s->inputs, s->outputs, s->workspace, bytes, NULL));
    for (size_t i = 0; i < tsr_executable_output_count(s->x); i++)
        TSR_TRY(wholes_write(&s->j->files, i, s->made[i]));
    return TSR_OK;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    side s = {.j = arg, .comm = comm};
    tsr_status status = make_side(&s);
    if (status == TSR_OK)
        status = run_side(&s);
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    finish_side(&s);
    return status == TSR_OK ? TSR_OK : tsr_status_restore(&kept, status);
}

/* Opens DIR/NAME.npy for each input and parameter. */
static int open_inputs(const char *directory, job *j)
{
    const tsr_program *const program = j->request->program;
    while (tsr_value_layout(program, (tsr_value)j->value_count))
        j->value_count++;
    j->inputs = calloc(j->value_count + 1, sizeof *j->inputs);
    if (!j->inputs)
        return complain(EXIT_REFUSED, "there is no memory for the inputs of the program");
    int status = EXIT_DONE;
    for (size_t i = 0; i < j->value_count && status == EXIT_DONE; i++) {
        const char *const name = tsr_value_name(program, (tsr_value)i);
        char *path;
        if (!name)
            continue;
        if (asprintf(&path, "%s/%s.npy", directory, name) < 0)
            return complain(EXIT_REFUSED, "there is no memory for the path of %s", name);
        status = wholes_open(path, tsr_value_layout(program, (tsr_value)i), &j->inputs[i]);
        free(path);
    }
    return status;
}

/* Names the files of the outputs; `names` has room for them. */
static int name_outputs(const tsr_executable *x, char **names)
{
    for (size_t i = 0; i < tsr_executable_output_count(x); i++) {
        if (asprintf(&names[i], "%s.npy", tsr_executable_output_name(x, i)) < 0) {
            names[i] = NULL;
            return complain(EXIT_REFUSED, "there is no memory for the names of files");
        }
    }
    return EXIT_DONE;
}

static int run_job(job *j, const tool_arguments *given)
{
    place *here = NULL;
    int ranks, status = place_open(given, &here);
    if (status == EXIT_DONE)
        status = place_count_ranks(here, j->request->mesh, NULL, &ranks);
    if (status == EXIT_DONE)
        status = wholes_run(here, ranks, &j->files);
    place_close(here);
    return status;
}

int program_run(const tool_arguments *given, const program_count *c)
{
    job j = {.request = c->request};
    const size_t count = tsr_executable_output_count(c->first);
    char **const names = calloc(count + 1, sizeof *names);
    int status = names ? open_inputs(given->value[OPT_INPUTS], &j)
                       : complain(EXIT_REFUSED, "there is no memory for the names of files");
    if (status == EXIT_DONE)
        status = name_outputs(c->first, names);
    j.files = (wholes_job){.directory = given->value[OPT_OUTPUT],
                           .names = (const char *const *)names,
                           .count = count,
                           .body = run_rank,
                           .arg = &j};
    if (status == EXIT_DONE)
        status = run_job(&j, given);
    for (size_t i = 0; j.inputs && i < j.value_count; i++)
        tsr_npy_destroy(j.inputs[i]);
    for (size_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
    free(j.inputs);
    return status;
}
