#include "hosts/tvm/moves.h"

#include "hosts/tvm/object.h"
#include "hosts/tvm/ranks.h"
#include "hosts/tvm/tensors.h"

#include <tessera/plan.h>
#include <tessera/saved.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>

/* One rank's part of a move. */
typedef struct part {
    tsr_plan *plan;
    void *workspace;
    size_t bytes;
} part;

typedef struct move {
    tsr_tvm_ranks *ranks;
    int count;
    part parts[];
} move;

/* The plans of a move: between two layouts, or a saved one. */
typedef struct recipe {
    const tsr_layout *source, *destination;
    TVMFFIByteArray saved;
} recipe;

static void destroy_move(void *content)
{
    move *const m = content;
    for (int r = 0; r < m->count; r++) {
        tsr_plan_destroy(m->parts[r].plan);
        free(m->parts[r].workspace);
    }
    tsr_tvm_ranks_destroy(m->ranks);
    free(m);
}

static tsr_status plan_rank(const recipe *from, int rank, tsr_plan **out)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    if (from->saved.data)
        return tsr_plan_load(NULL, from->saved.data, from->saved.size, rank, out);
    options.rank = rank;
    return tsr_plan_create(from->source, from->destination, &options, out);
}

static tsr_status make_part(const tsr_tvm_call *call, const recipe *from, int rank, part *out)
{
    enum { LINE = 64 };
    TSR_TRY(plan_rank(from, rank, &out->plan));
    out->bytes = (tsr_plan_workspace_bytes(out->plan) + LINE - 1) / LINE * LINE;
    if (out->bytes == 0)
        return TSR_OK;
    out->workspace = aligned_alloc(LINE, out->bytes);
    if (out->workspace)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_MEMORY, "%s: no memory for %zu bytes of rank %d's workspace", call->name,
                          out->bytes, rank);
}

static tsr_status prepare(tsr_comm *comm, void *arg)
{
    const move *const m = arg;
    return tsr_plan_prepare(m->parts[tsr_comm_rank(comm)].plan, comm);
}

/* Every rank of the layouts' meshes must be one of `ranks`. */
static tsr_status check_mesh(const tsr_tvm_call *call, const tsr_plan *plan, int ranks)
{
    const tsr_layout *const layouts[] = {tsr_plan_source(plan), tsr_plan_destination(plan)};
    for (int i = 0; i < 2; i++) {
        const tsr_mesh *const mesh = tsr_layout_mesh(layouts[i]);
        int64_t inside = 0;
        for (int64_t r = 0; r < ranks; r++) {
            int64_t coordinate[TSR_MAX_DIMS];
            int found = 0;
            TSR_TRY(tsr_mesh_coordinate_of(mesh, r, coordinate, &found));
            inside += found;
        }
        if (inside != tsr_mesh_count(mesh))
            return tsr_status_set(
                TSR_ERROR_ARGUMENT, "%s: the %s's mesh has %lld ranks, of which %lld are among the %d", call->name,
                i == 0 ? "source" : "destination", (long long)tsr_mesh_count(mesh), (long long)inside, ranks);
    }
    return TSR_OK;
}

static tsr_status make_move(const tsr_tvm_call *call, tsr_tvm_ranks *ranks, const recipe *from, move **out)
{
    const int count = tsr_tvm_ranks_count(ranks);
    move *const m = calloc(1, sizeof *m + (size_t)count * sizeof *m->parts);
    if (!m)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: no memory for a move of %d ranks", call->name, count);
    m->ranks = tsr_tvm_ranks_retain(ranks);
    m->count = count;
    tsr_status status = TSR_OK;
    for (int r = 0; r < count && status == TSR_OK; r++)
        status = make_part(call, from, r, &m->parts[r]);
    if (status == TSR_OK)
        status = check_mesh(call, m->parts[0].plan, count);
    if (status == TSR_OK)
        status = tsr_tvm_ranks_run(ranks, prepare, m);
    if (status == TSR_OK)
        *out = m;
    else
        destroy_move(m);
    return status;
}

static tsr_status read_layouts(tsr_tvm_call *call, tsr_tvm_ranks **ranks, recipe *from)
{
    void *content, *source, *destination;
    TSR_TRY(tsr_tvm_object(call, 0, "ranks", TSR_TVM_RANKS, &content));
    TSR_TRY(tsr_tvm_object(call, 1, "source", TSR_TVM_LAYOUT, &source));
    TSR_TRY(tsr_tvm_object(call, 2, "destination", TSR_TVM_LAYOUT, &destination));
    *ranks = content;
    *from = (recipe){.source = source, .destination = destination};
    return TSR_OK;
}

tsr_status tsr_tvm_move(tsr_tvm_call *call)
{
    tsr_tvm_ranks *ranks;
    recipe from;
    move *m;
    TSR_TRY(read_layouts(call, &ranks, &from));
    TSR_TRY(make_move(call, ranks, &from, &m));
    return tsr_tvm_return_object(call, TSR_TVM_MOVE, m, destroy_move);
}

tsr_status tsr_tvm_load_move(tsr_tvm_call *call)
{
    void *ranks;
    recipe from = {NULL, NULL, {NULL, 0}};
    move *m;
    TSR_TRY(tsr_tvm_object(call, 0, "ranks", TSR_TVM_RANKS, &ranks));
    TSR_TRY(tsr_tvm_bytes(call, 1, "bytes", &from.saved));
    TSR_TRY(make_move(call, ranks, &from, &m));
    return tsr_tvm_return_object(call, TSR_TVM_MOVE, m, destroy_move);
}

/* The tensors of a run; ranks without one have none to give. */
typedef struct side {
    bool given;
    tsr_tensor tensor;
} side;

typedef struct run {
    const move *move;
    const side *sources, *destinations;
} run;

static tsr_status execute_part(const part *p, tsr_comm *comm, const side *source, const side *destination)
{
    return tsr_plan_execute(p->plan, comm, source->given ? &source->tensor : NULL,
                            destination->given ? &destination->tensor : NULL, p->workspace, p->bytes, NULL);
}

static tsr_status execute(tsr_comm *comm, void *arg)
{
    const run *const r = arg;
    const int rank = tsr_comm_rank(comm);
    return execute_part(&r->move->parts[rank], comm, &r->sources[rank], &r->destinations[rank]);
}

static tsr_status read_sides(tsr_tvm_call *call, int32_t index, const char *what, int count, side *out)
{
    const TVMFFIAny *values;
    int64_t given;
    TSR_TRY(tsr_tvm_list(call, index, what, &values, &given));
    if (given != count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %lld %s: there must be one for each of %d ranks", call->name,
                              (long long)given, what, count);
    for (int r = 0; r < count; r++) {
        char name[48];
        snprintf(name, sizeof name, "%s[%d]", what, r);
        TSR_TRY(tsr_tvm_tensor_of(call, &values[r], name, &out[r].given, &out[r].tensor));
    }
    return TSR_OK;
}

/* Runs a move with the tensors of arguments `first` and `first` + 1. */
static tsr_status run_move(tsr_tvm_call *call, const move *m, int32_t first)
{
    side *const sides = calloc((size_t)m->count, 2 * sizeof *sides);
    if (!sides)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: no memory for the tensors of %d ranks", call->name, m->count);
    run r = {m, sides, sides + m->count};
    tsr_status status = read_sides(call, first, "sources", m->count, sides);
    if (status == TSR_OK)
        status = read_sides(call, first + 1, "destinations", m->count, sides + m->count);
    if (status == TSR_OK)
        status = tsr_tvm_ranks_run(m->ranks, execute, &r);
    free(sides);
    return status;
}

tsr_status tsr_tvm_run(tsr_tvm_call *call)
{
    void *m;
    TSR_TRY(tsr_tvm_object(call, 0, "move", TSR_TVM_MOVE, &m));
    return run_move(call, m, 1);
}

/* Lets the peers of a rank hear that its tensors are refused: it takes part with tensors that no
 * call accepts. */
static tsr_status refuse_run(const part *p, tsr_comm *comm, tsr_status status)
{
    const side none = {true, {.ndim = -1}};
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    (void)execute_part(p, comm, &none, &none);
    return tsr_status_restore(&kept, status);
}

static tsr_status read_rank(tsr_tvm_call *call, int32_t index, int64_t *out)
{
    const int32_t type = index < call->count ? call->arguments[index].type_index : kTVMFFINone;
    tsr_tensor tensor;
    bool given;
    int64_t count;
    if (type != kTVMFFITensor && type != kTVMFFIDLTensorPtr)
        return tsr_tvm_integer(call, index, "rank", out);
    TSR_TRY(tsr_tvm_tensor(call, index, "rank", &given, &tensor));
    TSR_TRY(tsr_tensor_count(&tensor, &count));
    if (count != 1 || (tensor.dtype != TSR_I32 && tensor.dtype != TSR_I64))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: rank has %lld elements of %s: it must have one i32 or i64",
                              call->name, (long long)count, tsr_dtype_name(tensor.dtype));
    *out = tensor.dtype == TSR_I32 ? *(const int32_t *)tensor.data : *(const int64_t *)tensor.data;
    return TSR_OK;
}

tsr_status tsr_tvm_run_rank(tsr_tvm_call *call)
{
    void *content;
    int64_t rank;
    side source, destination;
    TSR_TRY(tsr_tvm_object(call, 0, "move", TSR_TVM_MOVE, &content));
    const move *const m = content;
    TSR_TRY(read_rank(call, 1, &rank));
    if (rank < 0 || rank >= m->count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: rank %lld: the move's are from 0 to %d", call->name,
                              (long long)rank, m->count - 1);
    tsr_comm *const comm = tsr_tvm_ranks_comm(m->ranks, (int)rank);
    tsr_status status = tsr_tvm_tensor(call, 2, "source", &source.given, &source.tensor);
    if (status == TSR_OK)
        status = tsr_tvm_tensor(call, 3, "destination", &destination.given, &destination.tensor);
    if (status != TSR_OK)
        return refuse_run(&m->parts[rank], comm, status);
    return execute_part(&m->parts[rank], comm, &source, &destination);
}

static int run_bound(void *self, const TVMFFIAny *arguments, int32_t count, TVMFFIAny *result)
{
    enum { BOUND = 3 };
    tsr_tvm_function refused = {"a bound move", BOUND, BOUND, NULL};
    tsr_tvm_function function = {"run_rank", BOUND + 1, BOUND + 1, tsr_tvm_run_rank};
    TVMFFIObject *const m = self;
    TVMFFIAny all[BOUND + 1] = {{.type_index = m->type_index}};
    if (count != BOUND)
        return tsr_tvm_enter(&refused, arguments, count, result);
    all[0].v_obj = m;
    for (int32_t i = 0; i < BOUND; i++)
        all[i + 1] = arguments[i];
    return tsr_tvm_enter(&function, all, BOUND + 1, result);
}

static void unbind(void *self)
{
    (void)TVMFFIObjectDecRef(self);
}

tsr_status tsr_tvm_bind(tsr_tvm_call *call)
{
    void *m;
    TVMFFIObjectHandle function;
    TSR_TRY(tsr_tvm_object(call, 0, "move", TSR_TVM_MOVE, &m));
    TVMFFIObject *const object = call->arguments[0].v_obj;
    (void)TVMFFIObjectIncRef(object);
    if (TVMFFIFunctionCreate(object, run_bound, unbind, &function) != 0) {
        unbind(object);
        return tsr_tvm_raised(call);
    }
    *call->result = (TVMFFIAny){.type_index = kTVMFFIFunction};
    call->result->v_obj = function;
    return TSR_OK;
}

tsr_status tsr_tvm_redistribute(tsr_tvm_call *call)
{
    tsr_tvm_ranks *ranks;
    recipe from;
    move *m;
    TSR_TRY(read_layouts(call, &ranks, &from));
    TSR_TRY(make_move(call, ranks, &from, &m));
    const tsr_status status = run_move(call, m, 3);
    destroy_move(m);
    return status;
}
