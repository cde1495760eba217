#include "ops/answer.h"
#include "place/wholes.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <string.h>

/* Room for the name of a file. */
#define NAME 32

/* What the ranks share. */
typedef struct job {
    const ops_case *c;
    wholes_job files;
    size_t result_file[TSR_OP_MOST_RESULTS], gradient_file[TSR_OP_MOST_OPERANDS]; /* in `files` */
    tsr_npy *inputs[TSR_OP_MOST_OPERANDS];                                        /* NULL: left out */
    tsr_npy *gradient; /* of the first result; NULL: there is none */
} job;

/* The tensors of one rank. */
typedef struct tensors {
    tsr_dtensor *operands[TSR_OP_MOST_OPERANDS], *results[TSR_OP_MOST_RESULTS], *dout;
    tsr_dtensor *gradients[TSR_OP_MOST_OPERANDS];
} tensors;

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
        TSR_TRY(wholes_read(j->inputs[i], mesh, j->c->operands[i], &t->operands[i]));
        TSR_TRY(move_to(j->c->fitted[i], &t->operands[i]));
    }
    return TSR_OK;
}

static tsr_status run_backward(const job *j, const tsr_mesh *mesh, tensors *t)
{
    tsr_layout *layout;
    tsr_dtensor **wanted[TSR_OP_MOST_OPERANDS] = {NULL};
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS];
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        layouts[i] = j->c->fitted[i];
    TSR_TRY(tsr_op_gradient_layout(j->c->op, (size_t)j->c->attribute_count, j->c->attributes, layouts, &layout));
    const tsr_status status = wholes_read(j->gradient, mesh, layout, &t->dout);
    tsr_layout_destroy(layout);
    TSR_TRY(status);
    for (int i = 0; i < j->c->operand_count; i++)
        wanted[i] = j->c->gradients[i] ? &t->gradients[i] : NULL;
    TSR_TRY(tsr_op_backward(j->c->op, (size_t)j->c->attribute_count, j->c->attributes,
                            (const tsr_dtensor *const *)t->operands, t->dout, wanted));
    for (int i = 0; i < j->c->operand_count; i++) {
        if (t->gradients[i])
            TSR_TRY(wholes_write(&j->files, j->gradient_file[i], t->gradients[i]));
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
        TSR_TRY(wholes_write(&j->files, j->result_file[i], t->results[i]));
    return TSR_OK;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    const job *const j = arg;
    tensors t = {{NULL}};
    tsr_mesh *mesh;
    TSR_TRY(wholes_mesh(comm, NULL, j->c->mesh, &mesh));
    tsr_status status = run_forward(j, mesh, &t);
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
                               ? wholes_open(path, j->c->operands[operand], &j->inputs[operand])
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
    return path ? wholes_open(path, j->c->results[0], &j->gradient) : EXIT_DONE;
}

/* Names a file of the job: KIND-N.npy. */
static size_t add_file(job *j, const char *kind, int number, char name[NAME])
{
    snprintf(name, NAME, "%s-%d.npy", kind, number);
    return j->files.count++;
}

static int run_ranks(job *j, place *here, int ranks)
{
    enum { MOST = TSR_OP_MOST_OPERANDS + TSR_OP_MOST_RESULTS };
    char names[MOST][NAME];
    const char *list[MOST];
    for (int i = 0; i < MOST; i++)
        list[i] = names[i];
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        if (j->c->results[i])
            j->result_file[i] = add_file(j, "result", i, names[j->files.count]);
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        if (j->gradient && j->c->gradients[i])
            j->gradient_file[i] = add_file(j, "gradient", i, names[j->files.count]);
    j->files.names = list;
    return wholes_run(here, ranks, &j->files);
}

int ops_run(const tool_arguments *given, const ops_case *c)
{
    job j = {.c = c, .files = {.directory = given->value[OPT_OUTPUT], .body = run_rank}};
    place *here = NULL;
    j.files.arg = &j;
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
