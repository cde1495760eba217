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
    tsr_npy **inputs;   /* by input */
    tsr_npy **bound;    /* by parameter and state; NULL: not needed */
    size_t *state_file; /* by parameter and state: its file among `files`; SIZE_MAX: it is not written */
    size_t input_count, bound_count;
    wholes_job files;
} job;

/* One rank's side. */
typedef struct side {
    const job *j;
    tsr_comm *comm;
    tsr_mesh *mesh;
    tsr_executable *x;
    tsr_dtensor **given, **made; /* by input, by output */
    tsr_dtensor **bound;         /* by parameter and state */
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
    TSR_TRY(wholes_mesh(s->comm, NULL, s->j->request->mesh, &s->mesh));
    TSR_TRY(tsr_compile(s->j->request->program, &options, &s->x));
    const size_t inputs = tsr_executable_input_count(s->x), outputs = tsr_executable_output_count(s->x);
    TSR_TRY(allocate(inputs, sizeof *s->given, &memory));
    s->given = memory;
    TSR_TRY(allocate(outputs, sizeof *s->made, &memory));
    s->made = memory;
    TSR_TRY(allocate(tsr_executable_binding_count(s->x), sizeof *s->bound, &memory));
    s->bound = memory;
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
    for (size_t i = 0; s->bound && i < tsr_executable_binding_count(s->x); i++)
        tsr_dtensor_destroy(s->bound[i]);
    void *const memory[] = {s->given, s->made, s->bound, s->inputs, s->outputs, s->workspace};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        free(memory[i]);
    tsr_executable_destroy(s->x);
    tsr_mesh_destroy(s->mesh);
}

/* Gives the inputs, which go by order, and binds parameters and states. */
static tsr_status give_values(side *s)
{
    const job *const j = s->j;
    for (size_t i = 0; i < tsr_executable_input_count(s->x); i++) {
        TSR_TRY(wholes_read(j->inputs[i], s->mesh, tsr_executable_input_layout(s->x, i), &s->given[i]));
        s->inputs[i] = tsr_dtensor_to_local(s->given[i]);
    }
    for (size_t i = 0; i < tsr_executable_binding_count(s->x); i++) {
        tsr_executable_binding b;
        TSR_TRY(tsr_executable_binding_at(s->x, i, &b));
        if (!j->bound[i])
            continue;
        TSR_TRY(wholes_read(j->bound[i], s->mesh, b.layout, &s->bound[i]));
        TSR_TRY(tsr_executable_bind(s->x, b.name, s->bound[i]));
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
    for (size_t i = 0; i < tsr_executable_binding_count(s->x); i++)
        if (s->j->state_file[i] != SIZE_MAX)
            TSR_TRY(wholes_write(&s->j->files, s->j->state_file[i], s->bound[i]));
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

static int open_file(const char *directory, const char *name, const tsr_layout *layout, tsr_npy **out)
{
    char *path;
    if (asprintf(&path, "%s/%s.npy", directory, name) < 0)
        return complain(EXIT_REFUSED, "there is no memory for the path of %s", name);
    const int status = wholes_open(path, layout, out);
    free(path);
    return status;
}

/* Opens DIR/NAME.npy for each input, and each parameter and state that is needed. */
static int open_inputs(const char *directory, const tsr_executable *x, job *j)
{
    int status = EXIT_DONE;
    for (size_t i = 0; i < j->input_count && status == EXIT_DONE; i++)
        status =
            open_file(directory, tsr_executable_input_name(x, i), tsr_executable_input_layout(x, i), &j->inputs[i]);
    for (size_t i = 0; i < j->bound_count && status == EXIT_DONE; i++) {
        tsr_executable_binding b;
        if (tsr_executable_binding_at(x, i, &b) == TSR_OK && b.is_needed)
            status = open_file(directory, b.name, b.layout, &j->bound[i]);
    }
    return status;
}

static bool is_output(const tsr_executable *x, const char *name)
{
    size_t i = 0;
    while (i < tsr_executable_output_count(x) && strcmp(tsr_executable_output_name(x, i), name) != 0)
        i++;
    return i < tsr_executable_output_count(x);
}

static int name_file(job *j, char **names, const char *name)
{
    if (asprintf(&names[j->files.count], "%s.npy", name) >= 0) {
        j->files.count++;
        return EXIT_DONE;
    }
    names[j->files.count] = NULL;
    return complain(EXIT_REFUSED, "there is no memory for the names of files");
}

/* Names the files of the outputs, and of states of other names; `names` has room for them. */
static int name_files(const tsr_executable *x, job *j, char **names)
{
    int status = EXIT_DONE;
    for (size_t i = 0; i < tsr_executable_output_count(x) && status == EXIT_DONE; i++)
        status = name_file(j, names, tsr_executable_output_name(x, i));
    for (size_t i = 0; i < j->bound_count && status == EXIT_DONE; i++) {
        tsr_executable_binding b;
        j->state_file[i] = SIZE_MAX;
        if (tsr_executable_binding_at(x, i, &b) != TSR_OK || !b.is_state || !b.is_needed || is_output(x, b.name))
            continue;
        j->state_file[i] = j->files.count;
        status = name_file(j, names, b.name);
    }
    return status;
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

static void close_files(tsr_npy **files, size_t count)
{
    for (size_t i = 0; files && i < count; i++)
        tsr_npy_destroy(files[i]);
    free(files);
}

int program_run(const tool_arguments *given, const program_count *c)
{
    job j = {.request = c->request,
             .input_count = tsr_executable_input_count(c->first),
             .bound_count = tsr_executable_binding_count(c->first),
             .files = {.directory = given->value[OPT_OUTPUT], .body = run_rank}};
    const size_t most = tsr_executable_output_count(c->first) + j.bound_count;
    char **const names = calloc(most + 1, sizeof *names);
    j.inputs = calloc(j.input_count + 1, sizeof *j.inputs);
    j.bound = calloc(j.bound_count + 1, sizeof *j.bound);
    j.state_file = calloc(j.bound_count + 1, sizeof *j.state_file);
    int status = names && j.inputs && j.bound && j.state_file
                     ? open_inputs(given->value[OPT_INPUTS], c->first, &j)
                     : complain(EXIT_REFUSED, "there is no memory for the names of files");
    if (status == EXIT_DONE)
        status = name_files(c->first, &j, names);
    j.files.names = (const char *const *)names;
    j.files.arg = &j;
    if (status == EXIT_DONE)
        status = run_job(&j, given);
    close_files(j.inputs, j.input_count);
    close_files(j.bound, j.bound_count);
    for (size_t i = 0; names && i < most; i++)
        free(names[i]);
    free(names);
    free(j.state_file);
    return status;
}
