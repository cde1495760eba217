#include "cli/report.h"
#include "files/output.h"
#include "ops/answer.h"
#include "place/place.h"

#include <tessera/npy.h>
#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Room for the path of a file. */
#define PATH 4096

/* What the ranks share. */
typedef struct job {
    const ops_case *c;
    const char *output;
    tsr_npy *inputs[TSR_OP_MOST_OPERANDS]; /* NULL: left out */
    tsr_npy *gradient;                     /* of the first result; NULL: there is none */
} job;

/* The tensors of one rank. */
typedef struct tensors {
    tsr_dtensor *operands[TSR_OP_MOST_OPERANDS], *results[TSR_OP_MOST_RESULTS], *dout;
    tsr_dtensor *gradients[TSR_OP_MOST_OPERANDS];
} tensors;

/* The layout of the case on the mesh of this rank. */
static tsr_status place_layout(const tsr_mesh *mesh, const tsr_layout *like, tsr_layout **out)
{
    return tsr_layout_create(mesh, tsr_layout_placements(like), tsr_layout_ndim(like), tsr_layout_shape(like),
                             tsr_layout_dtype(like), out);
}

static tsr_status read_file(const tsr_npy *file, const tsr_mesh *mesh, const tsr_layout *like, tsr_dtensor **out)
{
    tsr_layout *layout;
    TSR_TRY(place_layout(mesh, like, &layout));
    const tsr_status status = tsr_npy_read(file, layout, NULL, out);
    tsr_layout_destroy(layout);
    return status;
}

/* Moves a tensor, in place of `*x`, to the layout that is wanted of it. */
static tsr_status move_to(const tsr_layout *wanted, tsr_dtensor **x)
{
    tsr_dtensor *moved;
    if (tsr_layout_equal(tsr_dtensor_layout(*x), wanted))
        return TSR_OK;
    TSR_TRY(tsr_redistribute(*x, tsr_layout_placements(wanted), &moved));
    tsr_dtensor_destroy(*x);
    *x = moved;
    return TSR_OK;
}

static tsr_status read_operands(const job *j, const tsr_mesh *mesh, tensors *t)
{
    for (int i = 0; i < j->c->operand_count; i++) {
        if (!j->c->operands[i])
            continue;
        TSR_TRY(read_file(j->inputs[i], mesh, j->c->operands[i], &t->operands[i]));
        TSR_TRY(move_to(j->c->fitted[i], &t->operands[i]));
    }
    return TSR_OK;
}

/* DIR/KIND-N.npy */
static void print_path(const job *j, const char *kind, int number, char path[PATH])
{
    snprintf(path, PATH, "%s/%s-%d.npy", j->output, kind, number);
}

/* Writes a whole tensor. */
static tsr_status write_file(const job *j, const char *kind, int number, const tsr_dtensor *x)
{
    char path[PATH];
    print_path(j, kind, number, path);
    return tsr_npy_write(x, path, TSR_DTYPE_NONE);
}

static tsr_status run_backward(const job *j, const tsr_mesh *mesh, tensors *t)
{
    tsr_layout *layout;
    tsr_dtensor **wanted[TSR_OP_MOST_OPERANDS] = {NULL};
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS];
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        layouts[i] = j->c->fitted[i];
    TSR_TRY(tsr_op_gradient_layout(j->c->op, (size_t)j->c->attribute_count, j->c->attributes, layouts, &layout));
    const tsr_status status = read_file(j->gradient, mesh, layout, &t->dout);
    tsr_layout_destroy(layout);
    TSR_TRY(status);
    for (int i = 0; i < j->c->operand_count; i++)
        wanted[i] = j->c->gradients[i] ? &t->gradients[i] : NULL;
    TSR_TRY(tsr_op_backward(j->c->op, (size_t)j->c->attribute_count, j->c->attributes,
                            (const tsr_dtensor *const *)t->operands, t->dout, wanted));
    for (int i = 0; i < j->c->operand_count; i++) {
        if (t->gradients[i])
            TSR_TRY(write_file(j, "gradient", i, t->gradients[i]));
    }
    return TSR_OK;
}

static tsr_status run_forward(const job *j, const tsr_mesh *mesh, tensors *t)
{
    TSR_TRY(read_operands(j, mesh, t));
    TSR_TRY(tsr_op_call(j->c->op, (size_t)j->c->attribute_count, j->c->attributes,
                        (const tsr_dtensor *const *)t->operands, t->results));
    if (j->c->wanted)
        TSR_TRY(move_to(j->c->wanted, &t->results[0]));
    for (int i = 0; j->c->results[i]; i++)
        TSR_TRY(write_file(j, "result", i, t->results[i]));
    return TSR_OK;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    const job *const j = arg;
    tensors t = {{NULL}};
    tsr_mesh *mesh;
    char *const text = mesh_text(j->c->mesh);
    tsr_status status = text ? tsr_mesh_parse(comm, NULL, text, &mesh)
                             : tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for a mesh");
    free(text);
    TSR_TRY(status);
    status = run_forward(j, mesh, &t);
    if (status == TSR_OK && j->gradient)
        status = run_backward(j, mesh, &t);
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        tsr_dtensor_destroy(t.operands[i]);
        tsr_dtensor_destroy(t.gradients[i]);
    }
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        tsr_dtensor_destroy(t.results[i]);
    tsr_dtensor_destroy(t.dout);
    tsr_mesh_destroy(mesh);
    return status;
}

static int open_file(const char *path, const tsr_layout *layout, tsr_npy **out)
{
    tsr_tensor loaded;
    if (tsr_npy_open(path, tsr_layout_dtype(layout), out) != TSR_OK || tsr_npy_load(*out, &loaded) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    return EXIT_DONE;
}

/* Opens the files of --input, in the order of the operands; "none" for one that is left out. */
static int open_inputs(const tool_arguments *given, job *j)
{
    int operand = 0;
    for (int i = 0; i < given->given_count; i++) {
        if (given->given[i].option != OPT_INPUT)
            continue;
        const char *const path = given->given[i].value;
        if (operand == j->c->operand_count)
            return complain(EXIT_USAGE, "%s has %d operands, but --input is given more often", j->c->info.name,
                            j->c->operand_count);
        const bool none = strcmp(path, "none") == 0;
        const int status = none ? EXIT_DONE
                           : j->c->operands[operand]
                               ? open_file(path, j->c->operands[operand], &j->inputs[operand])
                               : complain(EXIT_USAGE, "--input %s is for %s, whose --operand is left out", path,
                                          j->c->info.operands[operand]);
        if (status != EXIT_DONE)
            return status;
        operand++;
    }
    for (int i = 0; i < j->c->operand_count; i++) {
        if (j->c->operands[i] && !j->inputs[i])
            return complain(EXIT_USAGE, "%s needs --input X.npy for each operand; %s has none", j->c->info.name,
                            j->c->info.operands[i]);
    }
    return EXIT_DONE;
}

static int open_gradient(const tool_arguments *given, job *j)
{
    const char *const path = given->value[OPT_GRADIENT];
    return path ? open_file(path, j->c->results[0], &j->gradient) : EXIT_DONE;
}

/* Adds the files that the ranks have written, so that they stay or go together. */
static int add_files(const job *j, output *files)
{
    char path[PATH];
    int status = EXIT_DONE;
    for (int i = 0; i < TSR_OP_MOST_OPERANDS + TSR_OP_MOST_RESULTS && status == EXIT_DONE; i++) {
        const bool result = i < TSR_OP_MOST_RESULTS;
        print_path(j, result ? "result" : "gradient", result ? i : i - TSR_OP_MOST_RESULTS, path);
        const bool made =
            result ? j->c->results[i] != NULL : j->gradient && j->c->gradients[i - TSR_OP_MOST_RESULTS] != NULL;
        if (made && access(path, F_OK) == 0)
            status = output_add_complete(files, path + strlen(j->output) + 1);
    }
    return status;
}

/* Runs the op on all ranks; after a failure no file is left. */
static int run_ranks(job *j, place *here, int ranks)
{
    output files;
    int status = output_check(j->output);
    if (status == EXIT_DONE)
        status = output_begin(j->output, &files);
    if (status != EXIT_DONE)
        return status;
    if (place_run(here, ranks, run_rank, j) != TSR_OK)
        status = complain_status(EXIT_REFUSED);
    const int added = add_files(j, &files);
    status = status == EXIT_DONE ? added : status;
    if (status == EXIT_DONE)
        output_finish(&files);
    else
        output_cancel(&files);
    return status;
}

int ops_run(const tool_arguments *given, const ops_case *c)
{
    job j = {.c = c, .output = given->value[OPT_OUTPUT]};
    place *here = NULL;
    int ranks, status = open_inputs(given, &j);
    if (status == EXIT_DONE)
        status = open_gradient(given, &j);
    if (status == EXIT_DONE)
        status = place_open(given, &here);
    if (status == EXIT_DONE)
        status = place_count_ranks(here, c->mesh, NULL, &ranks);
    if (status == EXIT_DONE)
        status = run_ranks(&j, here, ranks);
    place_close(here);
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        tsr_npy_destroy(j.inputs[i]);
    tsr_npy_destroy(j.gradient);
    return status;
}
