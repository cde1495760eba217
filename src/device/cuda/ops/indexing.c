/* Ops that index a table: finds what of the table this rank has, makes an entry for each id, and
 * launches what reads or adds by entries. */
#include "device/cuda/ops/indexing.h"

#include "device/cuda/batch.h"
#include "device/cuda/launch.h"
#include "device/cuda/ops/storage.h"

#include <tessera/layout.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/ops.h>

#include <string.h>

/* Intervals that need no memory of their own. */
#define FEW 16

static const char *const names[] = {
#define ROW(name, row, ids) [TSR_CUDA_INDEX_##name] = row,
    TSR_CUDA_INDEXING(ROW)
#undef ROW
};

/* Per op: which operands are its ids, its table and the other tensor; -1: the result. */
static const struct operands {
    int ids, table, other;
} operands[TSR_CUDA_INDEX_END] = {
    [TSR_CUDA_INDEX_EMBEDDING] = {1, 0, -1},    [TSR_CUDA_INDEX_EMBEDDING_GRADIENT] = {2, -1, 0},
    [TSR_CUDA_INDEX_INDEX_SELECT] = {1, 0, -1}, [TSR_CUDA_INDEX_INDEX_SELECT_GRADIENT] = {2, -1, 0},
    [TSR_CUDA_INDEX_GATHER] = {1, 0, -1},       [TSR_CUDA_INDEX_GATHER_GRADIENT] = {2, -1, 0},
    [TSR_CUDA_INDEX_SCATTER_ADD] = {1, -1, 2}};

/* A call. */
typedef struct indexing {
    tsr_cuda *cuda;
    int index;
    const tsr_kernel_call *call;
    tsr_stream stream;
    int code;
    bool adds, is_elementwise;
    const tsr_tensor *ids, *table, *other;
    const tsr_layout *ids_layout, *table_layout;
    int dim;       /* of the table, which is indexed */
    int64_t count; /* of ids, up to TSR_CUDA_UNITS + 1 */
    uint32_t blocks;
    tsr_cuda_entry *entries;
    uint32_t *firsts;
    tsr_cuda_links links; /* of entries, where the op adds */
    int64_t last_count;   /* of links.last */
} indexing;

static int find_code(const char *op)
{
    for (int code = 0; code < TSR_CUDA_INDEX_END; code++)
        if (strcmp(names[code], op) == 0)
            return code;
    return -1;
}

bool tsr_cuda_indexes(const struct tsr_kernel_call *call)
{
    return find_code(call->op) >= 0;
}

/* The product of the first `count` sizes, or a little more than TSR_CUDA_UNITS. */
static int64_t product(const int64_t *sizes, int count)
{
    int64_t elements = 1;
    for (int k = 0; k < count; k++)
        if (sizes[k] == 0)
            return 0;
    for (int k = 0; k < count; k++)
        elements = elements > TSR_CUDA_UNITS ? elements : elements * sizes[k];
    return elements;
}

static int dim_of(const tsr_kernel_call *call, int code, int ndim)
{
    if (code == TSR_CUDA_INDEX_EMBEDDING || code == TSR_CUDA_INDEX_EMBEDDING_GRADIENT)
        return 0;
    return call->attributes[0].integer == -1 ? ndim - 1 : (int)call->attributes[0].integer;
}

static void begin(indexing *x, const tsr_kernel_call *call)
{
    const int code = find_code(call->op);
    const struct operands *const own = &operands[code];
    *x = (indexing){.call = call, .code = code, .adds = own->table < 0};
    x->is_elementwise = code >= TSR_CUDA_INDEX_GATHER;
    x->ids = &call->inputs[own->ids];
    x->ids_layout = call->layouts[own->ids];
    x->table = x->adds ? &call->outputs[0] : &call->inputs[own->table];
    x->table_layout = x->adds ? call->result_layouts[0] : call->layouts[own->table];
    x->other = x->adds ? &call->inputs[own->other] : &call->outputs[0];
    x->dim = dim_of(call, code, x->table->ndim);
    x->count = product(x->ids->shape, x->ids->ndim);
    x->blocks = (uint32_t)((x->count + TSR_CUDA_THREADS - 1) / TSR_CUDA_THREADS);
}

/* Ids of one place are linked within lines: those of a whole tensor of ids or, where ops go by
 * elements, those along the dim that is indexed. */
static void describe_links(indexing *x)
{
    x->links = (tsr_cuda_links){.length = (uint32_t)x->count, .inner = 1, .places = x->table->shape[x->dim]};
    if (x->is_elementwise) {
        x->links.length = (uint32_t)x->ids->shape[x->dim];
        x->links.inner = (uint32_t)product(x->ids->shape + x->dim + 1, x->ids->ndim - x->dim - 1);
    }
    if (x->adds && x->links.length > TSR_CUDA_THREADS)
        x->last_count = x->count / x->links.length * x->links.places;
}

/* Divides the workspace; returns its bytes. */
static int64_t place_memory(indexing *x)
{
    const int64_t entries = x->count * (int64_t)sizeof *x->entries, firsts = (int64_t)(x->blocks * sizeof *x->firsts);
    unsigned char *const memory = x->call->workspace;
    if (memory) {
        x->entries = x->links.entries = (tsr_cuda_entry *)memory;
        x->firsts = (uint32_t *)(memory + entries);
        x->links.last = x->last_count > 0 ? (int32_t *)(memory + entries + firsts) : NULL;
    }
    return entries + firsts + x->last_count * (int64_t)sizeof *x->links.last;
}

static bool is_aligned(const tsr_tensor *tensor)
{
    return (uintptr_t)tensor->data % tsr_dtype_bytes(tensor->dtype) == 0;
}

/* True if a result that is written element by element does not lie where other elements of an
 * operand are still to be read. */
static bool is_apart(const indexing *x)
{
    return !x->table->data || x->table->data != x->other->data;
}

int64_t tsr_cuda_indexing_bytes(const struct tsr_kernel_call *call)
{
    indexing x;
    begin(&x, call);
    const bool known = !x.adds || tsr_cuda_storage_of(x.table->dtype) >= 0;
    if (!known || !is_aligned(x.ids) || !is_aligned(x.table) || !is_aligned(x.other) || !is_apart(&x) ||
        x.count > TSR_CUDA_UNITS)
        return -1;
    describe_links(&x);
    return place_memory(&x);
}

/* The intervals that this rank has of a dim. */
typedef struct intervals {
    tsr_interval few[FEW];
    const tsr_interval *all;
    size_t count, next; /* next: of the first that was not taken */
    int64_t local;      /* where it lies in this rank's memory */
    void *memory;
} intervals;

static tsr_status list_intervals(const indexing *x, const tsr_layout *layout, int dim, intervals *list)
{
    const int64_t *const coordinate = x->call->coordinate;
    list->memory = NULL;
    list->all = list->few;
    list->next = 0;
    list->local = 0;
    TSR_TRY(tsr_layout_intervals(layout, coordinate, dim, list->few, FEW, &list->count));
    if (list->count <= FEW)
        return TSR_OK;
    TSR_TRY(tsr_allocate(x->cuda->context, list->count * sizeof *list->all, &list->memory));
    list->all = list->memory;
    const tsr_status status = tsr_layout_intervals(layout, coordinate, dim, list->memory, list->count, &list->count);
    if (status != TSR_OK)
        tsr_release(x->cuda->context, list->memory);
    return status;
}

static void drop_intervals(const indexing *x, intervals *list)
{
    tsr_release(x->cuda->context, list->memory);
}

static int64_t length_of(const tsr_interval *interval)
{
    return interval->end - interval->begin;
}

/* Takes the next intervals that are equally long and equally far apart. */
static tsr_cuda_run take_run(intervals *list)
{
    const tsr_interval *const all = list->all + list->next;
    const size_t left = list->count - list->next;
    tsr_cuda_run run = {.begin = all->begin, .length = length_of(all), .count = 1, .local = list->local};
    run.period = left > 1 ? all[1].begin - all->begin : run.length;
    while ((size_t)run.count < left && length_of(&all[run.count]) == run.length &&
           all[run.count].begin == run.begin + run.count * run.period)
        run.count++;
    list->next += (size_t)run.count;
    list->local += run.count * run.length;
    return run;
}

static tsr_cuda_view view_of(const tsr_tensor *tensor)
{
    tsr_cuda_view view = {.data = tensor->data, .storage = tsr_cuda_storage_of(tensor->dtype)};
    for (int d = 0; d < tensor->ndim; d++)
        view.strides[d] = tensor->strides[tensor->ndim - 1 - d] * (int64_t)tsr_dtype_bytes(tensor->dtype);
    return view;
}

/* A walk over sizes whose innermost is the first; none is 0. */
static tsr_cuda_walk walk_of(const int64_t *sizes, int ndim)
{
    tsr_cuda_walk walk = {.ndim = ndim, .count = (uint32_t)product(sizes, ndim)};
    for (int d = 0; d < ndim; d++)
        walk.by[d] = tsr_cuda_make_divisor((uint32_t)sizes[d]);
    return walk;
}

static tsr_cuda_walk walk_over(const tsr_tensor *tensor)
{
    int64_t sizes[TSR_CUDA_OP_DIMS];
    for (int d = 0; d < tensor->ndim; d++)
        sizes[d] = tensor->shape[tensor->ndim - 1 - d];
    return walk_of(sizes, tensor->ndim);
}

static tsr_status launch(const indexing *x, tsr_cuda_kernel kernel, int64_t threads, void *given)
{
    void *arguments[] = {given};
    return tsr_cuda_launch(x->cuda, kernel, (uint32_t)((threads + TSR_CUDA_THREADS - 1) / TSR_CUDA_THREADS), arguments,
                           x->stream);
}

/* Makes the entries. A rank that has its part of the table in many runs needs several launches. */
static tsr_status find_ids(const indexing *x)
{
    intervals list;
    tsr_status status = TSR_OK;
    tsr_cuda_ids given = {.view = view_of(x->ids),
                          .walk = walk_over(x->ids),
                          .entries = x->entries,
                          .firsts = x->firsts,
                          .size = tsr_layout_shape(x->table_layout)[x->dim]};
    TSR_TRY(list_intervals(x, x->table_layout, x->dim, &list));
    do {
        given.run_count = 0;
        while (given.run_count < TSR_CUDA_RUNS && list.next < list.count)
            given.runs[given.run_count++] = take_run(&list);
        status = launch(x, TSR_CUDA_FIND_IDS, x->count, &given);
        given.is_later = 1;
    } while (status == TSR_OK && list.next < list.count);
    drop_intervals(x, &list);
    return status;
}

/* Where positions of this rank's ids are in the whole tensor; false: in too many runs to say. */
static tsr_status find_whole(const indexing *x, int dim, tsr_cuda_run runs[TSR_CUDA_INDEX_RUNS], int32_t *is_whole)
{
    intervals list;
    TSR_TRY(list_intervals(x, x->ids_layout, dim, &list));
    for (int i = 0; i < TSR_CUDA_INDEX_RUNS && list.next < list.count; i++)
        runs[i] = take_run(&list);
    *is_whole = *is_whole && list.next == list.count;
    drop_intervals(x, &list);
    return TSR_OK;
}

/* Tells the host of the first id that is out of range, if there is one. */
static tsr_status report_id(const indexing *x)
{
    tsr_cuda_report given = {.view = view_of(x->ids),
                             .walk = walk_over(x->ids),
                             .firsts = x->firsts,
                             .blocks = x->blocks,
                             .code = x->code,
                             .rank = tsr_comm_rank(tsr_mesh_comm(tsr_layout_mesh(x->ids_layout))),
                             .is_whole = 1,
                             .size = tsr_layout_shape(x->table_layout)[x->dim],
                             .fault = tsr_cuda_faults_of(&x->cuda->gpu[x->index].faults, &x->cuda->mutex, x->stream)};
    for (int d = 0; d < x->ids->ndim; d++)
        TSR_TRY(find_whole(x, x->ids->ndim - 1 - d, given.runs[d], &given.is_whole));
    return launch(x, TSR_CUDA_REPORT_ID, 1, &given);
}

static tsr_status link_ids(indexing *x)
{
    const tsr_box_fill none = {.dst = x->links.last,
                               .element_bytes = sizeof *x->links.last,
                               .value = {0xff, 0xff, 0xff, 0xff},
                               .ndim = 1,
                               .shape = {x->last_count},
                               .dst_strides = {1}};
    if (x->links.last)
        TSR_TRY(tsr_cuda_fill(x->cuda, x->index, &none, x->stream));
    return launch(x, TSR_CUDA_LINK_IDS, x->count / x->links.length * TSR_CUDA_THREADS, &x->links);
}

/* A walk over slices before it is cut: sizes, innermost dim first. */
typedef struct box {
    int64_t sizes[TSR_CUDA_OP_DIMS];
    tsr_cuda_slices given;
} box;

/* Leaves `size` positions of a dim, from `from` on; in the table they begin at `at`. */
static void narrow(box *b, int dim, int64_t from, int64_t at, int64_t size)
{
    b->sizes[dim] = size;
    b->given.other += from * b->given.other_strides[dim];
    b->given.first += from * b->given.entry_strides[dim];
    b->given.table += at * b->given.table_strides[dim];
}

/* Launches a box, in halves where a kernel cannot number all of its elements. */
static tsr_status launch_box(const indexing *x, tsr_cuda_kernel kernel, const box *whole)
{
    box part = *whole;
    int longest = 0;
    const int64_t units = product(whole->sizes, whole->given.walk.ndim);
    for (int d = 0; d < whole->given.walk.ndim; d++)
        longest = whole->sizes[d] > whole->sizes[longest] ? d : longest;
    if (units > TSR_CUDA_UNITS) {
        const int64_t half = whole->sizes[longest] / 2;
        narrow(&part, longest, 0, 0, half);
        TSR_TRY(launch_box(x, kernel, &part));
        part = *whole;
        narrow(&part, longest, half, half, whole->sizes[longest] - half);
        return launch_box(x, kernel, &part);
    }
    if (units == 0)
        return TSR_OK;
    part.given.walk = walk_of(whole->sizes, whole->given.walk.ndim);
    return launch(x, kernel, units, &part.given);
}

/* True if a dim of the ids is shorter than the table's, so that its positions are those in the
 * whole table, of which this rank has all. */
static bool is_shorter(const indexing *x, int dim)
{
    return x->is_elementwise && dim != x->dim &&
           tsr_layout_shape(x->ids_layout)[dim] != tsr_layout_shape(x->table_layout)[dim];
}

/* Launches what lies in the intervals of dims from `dim` on, of those that are shorter. */
static tsr_status launch_intervals(const indexing *x, tsr_cuda_kernel kernel, const box *whole, int dim)
{
    intervals list;
    tsr_status status = TSR_OK;
    int64_t local = 0;
    while (dim < x->other->ndim && !is_shorter(x, dim))
        dim++;
    if (dim == x->other->ndim)
        return launch_box(x, kernel, whole);
    TSR_TRY(list_intervals(x, x->ids_layout, dim, &list));
    for (size_t i = 0; i < list.count && status == TSR_OK; i++) {
        box part = *whole;
        narrow(&part, x->other->ndim - 1 - dim, local, list.all[i].begin, length_of(&list.all[i]));
        local += length_of(&list.all[i]);
        status = launch_intervals(x, kernel, &part, dim + 1);
    }
    drop_intervals(x, &list);
    return status;
}

/* Describes dim `dim` of the other tensor: one of the ids in place of the table's that is indexed,
 * one of both, or one of the table. */
static void describe_dim(const indexing *x, box *b, int dim, int64_t *entries)
{
    const int d = x->other->ndim - 1 - dim, id = x->is_elementwise ? dim : dim - x->dim;
    const int64_t bytes = (int64_t)tsr_dtype_bytes(x->table->dtype);
    const bool of_ids = id >= 0 && id < x->ids->ndim;
    const int own = x->is_elementwise || dim < x->dim ? dim : dim - x->ids->ndim + 1;
    const bool of_table = x->is_elementwise ? dim != x->dim : !of_ids;
    b->sizes[d] = x->other->shape[dim];
    b->given.other_strides[d] = x->other->strides[dim] * bytes;
    b->given.table_strides[d] = of_table ? x->table->strides[own] * bytes : 0;
    if (!of_ids)
        return;
    b->given.entry_strides[d] = *entries;
    b->given.chain_strides[b->given.chain.ndim++] = b->given.other_strides[d];
    *entries *= x->other->shape[dim];
}

static box describe(const indexing *x)
{
    int64_t entries = 1;
    box b = {.given = {.table = x->table->data,
                       .other = x->other->data,
                       .entries = x->entries,
                       .step = x->table->strides[x->dim] * (int64_t)tsr_dtype_bytes(x->table->dtype),
                       .storage = tsr_cuda_storage_of(x->table->dtype)}};
    b.given.walk.ndim = x->other->ndim;
    for (int dim = x->other->ndim - 1; dim >= 0; dim--)
        describe_dim(x, &b, dim, &entries);
    b.given.chain = walk_over(x->ids);
    return b;
}

/* True if the innermost dim can be read in units twice as wide. */
static bool is_wider(const box *b, int64_t bytes)
{
    const tsr_cuda_slices *const given = &b->given;
    uint64_t bits = (uintptr_t)given->table | (uintptr_t)given->other | (uint64_t)given->step;
    for (int d = 1; d < given->walk.ndim; d++)
        bits |= (uint64_t)given->table_strides[d] | (uint64_t)given->other_strides[d];
    return given->walk.ndim > 0 && given->table_strides[0] == bytes && given->other_strides[0] == bytes &&
           given->entry_strides[0] == 0 && b->sizes[0] % 2 == 0 && bits % (uint64_t)(2 * bytes) == 0;
}

/* Sets the element that is read where an id is another rank's: -0, of integers 0. The sign is in
 * the last byte of a number. */
static void set_nothing(const indexing *x, tsr_cuda_pattern *nothing)
{
    const tsr_dtype_info *const info = tsr_dtype_get(x->table->dtype);
    const size_t part = info->kind == TSR_CLASS_COMPLEX ? info->bytes / 2 : info->bytes;
    memset(nothing, 0, sizeof *nothing);
    for (size_t end = part; end <= sizeof nothing->bytes; end += part)
        if (info->kind == TSR_CLASS_FLOAT || info->kind == TSR_CLASS_COMPLEX)
            nothing->bytes[end - 1] = 0x80;
}

static tsr_status read_slices(const indexing *x)
{
    box b = describe(x);
    int64_t bytes = (int64_t)tsr_dtype_bytes(x->table->dtype);
    while (bytes < 16 && is_wider(&b, bytes)) {
        bytes *= 2;
        b.sizes[0] /= 2;
        b.given.table_strides[0] = b.given.other_strides[0] = bytes;
    }
    while (INT64_C(1) << b.given.log_width < bytes)
        b.given.log_width++;
    set_nothing(x, &b.given.nothing);
    return launch_intervals(x, TSR_CUDA_READ_SLICES, &b, 0);
}

/* Begins sums: with 0, or with the first operand. */
static tsr_status begin_sums(const indexing *x)
{
    const tsr_tensor *const from = &x->call->inputs[0], *const out = x->table;
    tsr_box_fill zero = {.dst = out->data, .element_bytes = tsr_dtype_bytes(out->dtype), .ndim = out->ndim};
    tsr_box_copy copy = {.dst = out->data, .src = from->data, .element_bytes = zero.element_bytes, .ndim = out->ndim};
    memcpy(zero.shape, out->shape, sizeof zero.shape);
    memcpy(zero.dst_strides, out->strides, sizeof zero.dst_strides);
    memcpy(copy.shape, out->shape, sizeof copy.shape);
    memcpy(copy.dst_strides, out->strides, sizeof copy.dst_strides);
    memcpy(copy.src_strides, from->strides, sizeof copy.src_strides);
    if (x->code != TSR_CUDA_INDEX_SCATTER_ADD)
        return tsr_cuda_fill(x->cuda, x->index, &zero, x->stream);
    return from->data == out->data ? TSR_OK : tsr_cuda_copy_boxes(x->cuda, x->index, &copy, 1, x->stream);
}

static tsr_status add_slices(indexing *x)
{
    static const tsr_cuda_kernel kernels[TSR_CUDA_STORAGE_END] = {
        [TSR_CUDA_AS_F64] = TSR_CUDA_ADD_F64, [TSR_CUDA_AS_F32] = TSR_CUDA_ADD_F32,
        [TSR_CUDA_AS_F16] = TSR_CUDA_ADD_F32, [TSR_CUDA_AS_BF16] = TSR_CUDA_ADD_F32,
        [TSR_CUDA_AS_I64] = TSR_CUDA_ADD_I64, [TSR_CUDA_AS_I32] = TSR_CUDA_ADD_I32};
    TSR_TRY(begin_sums(x));
    if (x->count == 0)
        return TSR_OK;
    TSR_TRY(link_ids(x));
    const box b = describe(x);
    return launch_intervals(x, kernels[b.given.storage], &b, 0);
}

tsr_status tsr_cuda_index_table(tsr_cuda *cuda, int index, const struct tsr_kernel_call *call, tsr_stream stream)
{
    indexing x;
    begin(&x, call);
    x.cuda = cuda;
    x.index = index;
    x.stream = stream;
    describe_links(&x);
    place_memory(&x);
    if (x.count > 0) {
        TSR_TRY(find_ids(&x));
        TSR_TRY(report_id(&x));
    }
    return x.adds ? add_slices(&x) : x.count > 0 ? read_slices(&x) : TSR_OK;
}
