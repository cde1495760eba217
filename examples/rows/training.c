#include "training.h"

#include "batch.h"
#include "checkpoint.h"
#include "model.h"
#include "table.h"

#include <tessera/mesh.h>
#include <tessera/sys/status.h>
#include <tessera/values.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One rank's part. */
typedef struct training {
    const training_options *options;
    tsr_comm *comm;
    tsr_mesh *mesh;
    table table;
    model model;
    int64_t *labelled, *others; /* nodes to train by, and to test by; all ranks have the same */
    int64_t labelled_count, other_count;
    int64_t *order;                                /* the labelled ones as an epoch has them */
    tsr_dtensor *rows, *d_rows, *targets, *losses; /* of a batch: S(0), each rank has its blocks */
    int64_t first, count;                          /* its first place in a batch, and how many */
    int64_t *ids;                                  /* the trees of these */
    int64_t right;
} training;

/* What an epoch came to, of all ranks. */
typedef struct score {
    double loss;
    int64_t right;
} score;

static tsr_status list_nodes(training *t)
{
    const graph *const g = &t->options->graph;
    t->labelled = malloc((size_t)g->nodes * sizeof *t->labelled);
    t->others = malloc((size_t)g->nodes * sizeof *t->others);
    t->order = malloc((size_t)g->nodes * sizeof *t->order);
    if (!t->labelled || !t->others || !t->order)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the numbers of %lld nodes", (long long)g->nodes);
    for (int64_t node = 0; node < g->nodes; node++) {
        if (graph_is_labelled(g, node))
            t->labelled[t->labelled_count++] = node;
        else
            t->others[t->other_count++] = node;
    }
    if (t->labelled_count == 0 || t->other_count == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "--nodes %lld: %lld of them have labels, but nodes of both kinds are needed",
                              (long long)g->nodes, (long long)t->labelled_count);
    return TSR_OK;
}

/* Makes the tensor of an input or output of the program, and fills it with zeros. */
static tsr_status make_tensor(const tsr_layout *layout, tsr_dtensor **out)
{
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), out));
    return tsr_dtensor_fill(*out, 0, NULL);
}

static tsr_status make_tensors(training *t)
{
    const tsr_layout *const targets = tsr_executable_input_layout(t->model.train, 1);
    int64_t shape[2], offset[2];
    TSR_TRY(make_tensor(tsr_executable_input_layout(t->model.train, 0), &t->rows));
    TSR_TRY(make_tensor(tsr_executable_input_layout(t->model.train, 0), &t->d_rows));
    TSR_TRY(make_tensor(targets, &t->targets));
    TSR_TRY(make_tensor(tsr_executable_output_layout(t->model.train, 0), &t->losses));
    TSR_TRY(tsr_layout_local(targets, NULL, shape, offset));
    t->first = offset[0] * BLOCK_NODES;
    t->count = shape[0] * BLOCK_NODES;
    t->ids = malloc((size_t)(t->count * TREE + 1) * sizeof *t->ids);
    return t->ids ? TSR_OK : tsr_status_set(TSR_ERROR_MEMORY, "no memory for the ids of a batch");
}

static tsr_status make(training *t)
{
    const training_options *const o = t->options;
    const int64_t ranks = tsr_comm_size(t->comm);
    static const char *const dims[] = {"dp"};
    TSR_TRY(tsr_mesh_create(t->comm, 1, &ranks, dims, NULL, &t->mesh));
    TSR_TRY(list_nodes(t));
    TSR_TRY(model_create(t->mesh, o->graph.communities, o->seed, o->rate, &t->model));
    TSR_TRY(make_tensors(t));
    return table_create(t->mesh, &o->graph, o->seed, o->rate, t->count * TREE, &t->table);
}

static void destroy(training *t)
{
    table_destroy(&t->table);
    free(t->ids);
    tsr_dtensor_destroy(t->losses);
    tsr_dtensor_destroy(t->targets);
    tsr_dtensor_destroy(t->d_rows);
    tsr_dtensor_destroy(t->rows);
    model_destroy(&t->model);
    free(t->order);
    free(t->others);
    free(t->labelled);
    tsr_mesh_destroy(t->mesh);
}

/* Fills in the ids and targets of this rank's part of the batch that begins at nodes[begin].
 * Returns the number of its nodes: the last batch of an epoch may have fewer. */
static int64_t fill(training *t, const int64_t *nodes, int64_t count, int64_t begin, uint64_t epoch)
{
    const graph *const g = &t->options->graph;
    int64_t *const targets = tsr_dtensor_to_local(t->targets).data, filled = 0;
    for (int64_t i = 0; i < t->count; i++) {
        const int64_t place = begin + t->first + i;
        targets[i] = place < count ? graph_community(g, nodes[place]) : -1;
        if (place < count)
            batch_tree(g, nodes[place], batch_draw(t->options->seed, epoch, place), t->ids + TREE * filled++);
    }
    return filled;
}

/* Runs a batch, and trains by it if `train` is true. */
static tsr_status run_batch(training *t, int64_t filled, bool train, score *add)
{
    const int64_t count = filled * TREE, shape[] = {count, WIDTH};
    const tsr_tensor ids = tsr_tensor_contiguous(t->ids, TSR_I64, 1, &count);
    const model_run run = {.rows = tsr_dtensor_to_local(t->rows),
                           .targets = tsr_dtensor_to_local(t->targets),
                           .losses = tsr_dtensor_to_local(t->losses),
                           .right = tsr_tensor_contiguous(&t->right, TSR_I64, 0, NULL),
                           .d_rows = tsr_dtensor_to_local(t->d_rows)};
    const tsr_tensor rows = tsr_tensor_contiguous(run.rows.data, TSR_F32, 2, shape);
    const tsr_tensor d_rows = tsr_tensor_contiguous(run.d_rows.data, TSR_F32, 2, shape);
    double loss;
    TSR_TRY(table_gather(&t->table, &ids, &rows));
    TSR_TRY(train ? model_train(&t->model, &run) : model_test(&t->model, &run));
    if (train)
        TSR_TRY(table_change(&t->table, &ids, &d_rows));
    TSR_TRY(tsr_dtensor_sum(t->losses, &loss)); /* exact, so the same on any number of ranks */
    add->loss += loss;
    add->right += t->right;
    return TSR_OK;
}

static tsr_status run_epoch(training *t, const int64_t *nodes, int64_t count, uint64_t epoch, bool train, score *out)
{
    *out = (score){0};
    for (int64_t begin = 0; begin < count; begin += BATCH_NODES)
        TSR_TRY(run_batch(t, fill(t, nodes, count, begin, epoch), train, out));
    return TSR_OK;
}

/* The part of the nodes without labels that a vote of the neighbours drawn for them finds. */
static double vote(const training *t)
{
    const graph *const g = &t->options->graph;
    int64_t right = 0, ids[TREE];
    for (int64_t i = 0; i < t->other_count; i++) {
        batch_tree(g, t->others[i], batch_draw(t->options->seed, 0, i), ids);
        right += batch_vote(g, ids) == graph_community(g, t->others[i]);
    }
    return (double)right / (double)t->other_count;
}

static tsr_status train_epoch(training *t, int64_t epoch)
{
    score trained, tested;
    memcpy(t->order, t->labelled, (size_t)t->labelled_count * sizeof *t->order);
    batch_shuffle(t->order, t->labelled_count, t->options->seed, (uint64_t)epoch);
    TSR_TRY(run_epoch(t, t->order, t->labelled_count, (uint64_t)epoch, true, &trained));
    TSR_TRY(run_epoch(t, t->others, t->other_count, 0, false, &tested));
    if (tsr_comm_rank(t->comm) == 0) {
        printf("epoch %lld: loss %.9f, accuracy %.6f of nodes without labels\n", (long long)epoch,
               trained.loss / (double)t->labelled_count, (double)tested.right / (double)t->other_count);
        fflush(stdout);
    }
    return TSR_OK;
}

/* Tells which part of the table each rank has. */
static void print_sizes(const training *t)
{
    const tsr_placement *const rows = tsr_layout_placements(tsr_dtensor_layout(t->table.rows));
    fprintf(stderr, "rows of the table that ranks have:");
    for (size_t r = 0; r < rows->size_count; r++)
        fprintf(stderr, " %lld", (long long)rows->sizes[r]);
    fprintf(stderr, "\n");
}

static tsr_status train(training *t)
{
    const training_options *const o = t->options;
    int64_t done = 0;
    if (o->load)
        TSR_TRY(checkpoint_load(o->load, &o->graph, &t->table, &t->model, &done));
    if (tsr_comm_rank(t->comm) == 0) {
        print_sizes(t);
        printf("%lld of %lld nodes have labels; a vote of the neighbours drawn finds %.6f of the others\n",
               (long long)t->labelled_count, (long long)o->graph.nodes, vote(t));
    }
    for (int64_t epoch = done + 1; epoch <= o->epochs; epoch++, done++)
        TSR_TRY(train_epoch(t, epoch));
    return o->save ? checkpoint_save(o->save, &o->graph, &t->table, &t->model, done) : TSR_OK;
}

tsr_status training_run(tsr_comm *comm, void *arg)
{
    training t = {.options = arg, .comm = comm};
    tsr_status status = make(&t);
    if (status == TSR_OK)
        status = train(&t);
    destroy(&t);
    return status;
}
