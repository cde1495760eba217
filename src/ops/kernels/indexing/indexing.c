#include "ops/kernels/indexing/indexing.h"

#include "ops/kernels/indexing/ids.h"
#include "ops/kernels/pointwise.h"

#include <tessera/sys/status.h>

#include <string.h>

/* The most elements that are converted at a time. */
#define CHUNK 512

/* Where an op's table and ids are, by code. */
static const struct place {
    int ids, table, other; /* operands; table -1: the result, other -1: the result */
    const char *name;      /* of the ids */
} places[] = {[TSR_EMBEDDING] = {1, 0, -1, "ids"},      [TSR_EMBEDDING_GRADIENT] = {2, -1, 0, "ids"},
              [TSR_INDEX_SELECT] = {1, 0, -1, "index"}, [TSR_INDEX_SELECT_GRADIENT] = {2, -1, 0, "index"},
              [TSR_GATHER] = {1, 0, -1, "index"},       [TSR_GATHER_GRADIENT] = {2, -1, 0, "index"},
              [TSR_SCATTER_ADD] = {1, -1, 2, "index"}};

/* A call. */
typedef struct indexing {
    const tsr_kernel_call *call;
    const tsr_pointwise_kernels *kernels;
    const tsr_tensor *table, *other; /* other: what is read from the table, or added to it */
    const tsr_layout *table_layout;
    tsr_ids ids;
    int dim; /* of the table */
    tsr_dtype computed;
    int64_t bytes, count;             /* of an element, and of ids */
    int64_t *positions[TSR_MAX_DIMS]; /* NULL, or of each element of a dim its index in the table */
    char *sums;                       /* a table without gaps, of `computed` */
    bool gathers;                     /* the sums are not the table's own memory */
} indexing;

int tsr_indexing_dim(int code, const tsr_attribute *attributes, int ndim)
{
    if (code == TSR_EMBEDDING || code == TSR_EMBEDDING_GRADIENT)
        return 0;
    const int64_t named = attributes[0].integer == -1 ? ndim - 1 : attributes[0].integer;
    return named >= 0 && named < ndim ? (int)named : -1;
}

static int64_t product(const tsr_tensor *tensor, int first, int count)
{
    int64_t elements = 1;
    for (int dim = first; dim < first + count; dim++)
        elements *= tensor->shape[dim];
    return elements;
}

static bool has_gaps(const tsr_tensor *tensor)
{
    int64_t wanted = 1;
    for (int dim = tensor->ndim - 1; dim >= 0; dim--) {
        if (tensor->shape[dim] > 1 && tensor->strides[dim] != wanted)
            return true;
        wanted *= tensor->shape[dim];
    }
    return false;
}

/* True if an index dim is shorter than its table's, whose whole positions it then needs. */
static bool is_shorter(const indexing *x, int dim)
{
    return (x->call->code == TSR_GATHER || x->call->code == TSR_GATHER_GRADIENT || x->call->code == TSR_SCATTER_ADD) &&
           dim != x->dim && tsr_layout_shape(x->ids.layout)[dim] != tsr_layout_shape(x->table_layout)[dim];
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Divides the workspace; returns its bytes. */
static int64_t place_memory(indexing *x)
{
    int64_t used = 0;
    char *const memory = x->call->workspace;
    for (int dim = 0; dim < x->ids.tensor->ndim; dim++) {
        if (!is_shorter(x, dim))
            continue;
        x->positions[dim] = memory ? (int64_t *)(memory + used) : NULL;
        used += aligned(x->ids.tensor->shape[dim] * (int64_t)sizeof(int64_t));
    }
    x->sums = x->gathers && memory ? memory + used : x->table->data;
    const int64_t bytes = product(x->table, 0, x->table->ndim) * (int64_t)tsr_dtype_bytes(x->computed);
    return used + (x->gathers ? aligned(bytes) : 0);
}

static int64_t begin(const tsr_kernel_call *call, indexing *x)
{
    const struct place *const p = &places[call->code];
    const bool adds = p->table < 0;
    *x = (indexing){.call = call,
                    .kernels = tsr_pointwise_kernels_for(call->kernels),
                    .table = adds ? &call->outputs[0] : &call->inputs[p->table],
                    .other = p->other < 0 ? &call->outputs[0] : &call->inputs[p->other],
                    .table_layout = adds ? call->result_layouts[0] : call->layouts[p->table]};
    x->dim = tsr_indexing_dim(call->code, call->attributes, x->table->ndim);
    x->ids = tsr_ids_of_table(call, p->ids, p->name, x->table_layout, x->dim);
    x->computed = tsr_pointwise_computes_in(x->table->dtype);
    x->bytes = (int64_t)tsr_dtype_bytes(x->table->dtype);
    x->count = tsr_ids_count(&x->ids);
    x->gathers = adds && (x->computed != x->table->dtype || has_gaps(x->table));
    return place_memory(x);
}

int64_t tsr_indexing_workspace_bytes(const tsr_kernel_call *call)
{
    indexing x;
    tsr_kernel_call unplaced = *call;
    unplaced.workspace = NULL;
    return begin(&unplaced, &x);
}

static int64_t chunk_of(int64_t all, int64_t done, int64_t most)
{
    return all - done < most ? all - done : most;
}

/* The offset of element `at`, in row-major order of `count` dims from `first` on. */
static int64_t offset_of(const tsr_tensor *tensor, int first, int count, int64_t at)
{
    int64_t offset = 0;
    for (int dim = first + count - 1; dim >= first; dim--) {
        offset += at % tensor->shape[dim] * tensor->strides[dim];
        at /= tensor->shape[dim];
    }
    return offset;
}

/* The slices of a table and those of the other tensor, as runs along their last dim. The other
 * tensor has the dims of the ids where the table has the one that is indexed. */
typedef struct slices {
    int before, id_dims, behind; /* numbers of dims; behind: but for the last */
    int64_t before_count, behind_count, run;
    int64_t table_stride, other_stride;
} slices;

static slices slices_of(const indexing *x)
{
    const int behind = x->table->ndim - x->dim - 1;
    slices s = {.before = x->dim, .id_dims = x->ids.tensor->ndim, .behind = behind > 0 ? behind - 1 : 0, .run = 1};
    s.before_count = product(x->table, 0, s.before);
    s.behind_count = product(x->table, x->dim + 1, s.behind);
    if (behind > 0) {
        s.run = x->table->shape[x->table->ndim - 1];
        s.table_stride = x->table->strides[x->table->ndim - 1];
        s.other_stride = x->other->strides[x->other->ndim - 1];
    }
    return s;
}

/* The offset, in the other tensor, of a run. */
static int64_t other_run(const indexing *x, const slices *s, int64_t before, int64_t id, int64_t behind)
{
    return offset_of(x->other, 0, s->before, before) + offset_of(x->other, s->before, s->id_dims, id) +
           offset_of(x->other, s->before + s->id_dims, s->behind, behind);
}

static int64_t table_run(const indexing *x, const slices *s, int64_t before, int64_t place, int64_t behind)
{
    return offset_of(x->table, 0, s->before, before) + place * x->table->strides[x->dim] +
           offset_of(x->table, x->dim + 1, s->behind, behind);
}

/* The element that adds nothing: -0, 0 of integers. */
static void make_nothing(tsr_dtype dtype, char element[16])
{
    const tsr_dtype_info *const info = tsr_dtype_get(dtype);
    const bool is_complex = info->kind == TSR_CLASS_COMPLEX;
    memset(element, 0, 16);
    if (info->kind != TSR_CLASS_FLOAT && !is_complex)
        return;
    const size_t part = is_complex ? info->bytes / 2 : info->bytes;
    /* The sign is in the last byte of a number, as in memory files and messages. */
    for (size_t end = part; end <= info->bytes; end += part)
        element[end - 1] = (char)0x80;
}

/* Copies n elements; strides in elements. */
static void copy_run(int64_t bytes, char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n)
{
    if (n <= 1 || (to_stride == 1 && from_stride == 1)) {
        if (n > 0)
            memcpy(to, from, (size_t)(n * bytes));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * to_stride * bytes, from + i * from_stride * bytes, (size_t)bytes);
}

/* Reads the slice of one id. */
static void read_slice(const indexing *x, const slices *s, int64_t id, int64_t place, const char *nothing)
{
    for (int64_t before = 0; before < s->before_count; before++) {
        for (int64_t behind = 0; behind < s->behind_count; behind++) {
            char *const to = (char *)x->other->data + other_run(x, s, before, id, behind) * x->bytes;
            if (place < 0)
                copy_run(x->bytes, to, s->other_stride, nothing, 0, s->run);
            else
                copy_run(x->bytes, to, s->other_stride,
                         (const char *)x->table->data + table_run(x, s, before, place, behind) * x->bytes,
                         s->table_stride, s->run);
        }
    }
}

tsr_status tsr_indexing_read_slices(const tsr_kernel_call *call)
{
    indexing x;
    int64_t found[TSR_IDS_CHUNK];
    char nothing[16];
    begin(call, &x);
    const slices s = slices_of(&x);
    make_nothing(x.table->dtype, nothing);
    for (int64_t done = 0; done < x.count; done += TSR_IDS_CHUNK) {
        const int64_t n = chunk_of(x.count, done, TSR_IDS_CHUNK);
        TSR_TRY(tsr_ids_read(&x.ids, done, n, found));
        for (int64_t i = 0; i < n; i++)
            read_slice(&x, &s, done + i, found[i], nothing);
    }
    return TSR_OK;
}

/* Rows along a tensor's last dim; a number is a row of one. */
static int64_t row_length(const tsr_tensor *tensor)
{
    return tensor->ndim ? tensor->shape[tensor->ndim - 1] : 1;
}

static int64_t row_stride(const tsr_tensor *tensor)
{
    return tensor->ndim ? tensor->strides[tensor->ndim - 1] : 1;
}

static int64_t count_rows(const tsr_tensor *tensor)
{
    return tensor->ndim ? product(tensor, 0, tensor->ndim - 1) : 1;
}

static char *row_at(const tsr_tensor *tensor, int64_t row)
{
    const int64_t offset = tensor->ndim ? offset_of(tensor, 0, tensor->ndim - 1, row) : 0;
    return (char *)tensor->data + offset * (int64_t)tsr_dtype_bytes(tensor->dtype);
}

/* Begins sums: with the elements of `from`, or with 0 if it is NULL. */
static void begin_sums(const indexing *x, const tsr_tensor *from)
{
    const int64_t length = row_length(x->table), bytes = length * (int64_t)tsr_dtype_bytes(x->computed);
    for (int64_t row = 0; row < count_rows(x->table) && length > 0; row++) {
        char *const to = x->sums + row * bytes;
        if (!from)
            memset(to, 0, (size_t)bytes);
        else if (row_at(from, row) != to)
            x->kernels->gather[from->dtype](row_at(from, row), to, length, row_stride(from));
    }
}

static void finish_sums(const indexing *x)
{
    const int64_t length = row_length(x->table), bytes = length * (int64_t)tsr_dtype_bytes(x->computed);
    for (int64_t row = 0; row < count_rows(x->table) && x->gathers && length > 0; row++)
        x->kernels->scatter[x->table->dtype](x->sums + row * bytes, row_at(x->table, row), length,
                                             row_stride(x->table));
}

/* Adds n elements, `stride` apart, to sums. */
static void add_run(const indexing *x, char *sums, const char *from, int64_t stride, int64_t n)
{
    _Alignas(64) char terms[CHUNK * sizeof(double)];
    const int64_t bytes = (int64_t)tsr_dtype_bytes(x->computed);
    tsr_pointwise_loop *const add = x->kernels->loops[TSR_POINTWISE_ADD][x->computed];
    const bool direct = stride == 1 && x->computed == x->other->dtype;
    for (int64_t done = 0; done < n; done += CHUNK) {
        const int64_t count = chunk_of(n, done, CHUNK);
        const char *const at = from + done * stride * x->bytes;
        if (!direct)
            x->kernels->gather[x->other->dtype](at, terms, count, stride);
        add((const void *const[]){sums + done * bytes, direct ? at : terms, NULL}, sums + done * bytes, count, 0);
    }
}

/* Adds the slice of one id. */
static void add_slice(const indexing *x, const slices *s, int64_t id, int64_t place)
{
    const int64_t bytes = (int64_t)tsr_dtype_bytes(x->computed), size = x->table->shape[x->dim];
    for (int64_t before = 0; before < s->before_count; before++) {
        for (int64_t behind = 0; behind < s->behind_count; behind++)
            add_run(x, x->sums + ((before * size + place) * s->behind_count + behind) * s->run * bytes,
                    (const char *)x->other->data + other_run(x, s, before, id, behind) * x->bytes, s->other_stride,
                    s->run);
    }
}

/* Finds ids that are out of range before anything is written, as sums may begin in x's own
 * memory. */
static tsr_status check_ids(const indexing *x)
{
    int64_t found[TSR_IDS_CHUNK];
    for (int64_t done = 0; done < x->count; done += TSR_IDS_CHUNK)
        TSR_TRY(tsr_ids_read(&x->ids, done, chunk_of(x->count, done, TSR_IDS_CHUNK), found));
    return TSR_OK;
}

tsr_status tsr_indexing_add_slices(const tsr_kernel_call *call)
{
    indexing x;
    int64_t found[TSR_IDS_CHUNK];
    begin(call, &x);
    const slices s = slices_of(&x);
    TSR_TRY(check_ids(&x));
    begin_sums(&x, NULL);
    for (int64_t done = 0; done < x.count; done += TSR_IDS_CHUNK) {
        const int64_t n = chunk_of(x.count, done, TSR_IDS_CHUNK);
        TSR_TRY(tsr_ids_read(&x.ids, done, n, found));
        for (int64_t i = 0; i < n; i++) {
            if (found[i] >= 0)
                add_slice(&x, &s, done + i, found[i]);
        }
    }
    finish_sums(&x);
    return TSR_OK;
}

/* What each position of an index needs of the whole tensor. */
static tsr_status find_positions(const indexing *x)
{
    for (int dim = 0; dim < x->ids.tensor->ndim; dim++) {
        if (x->positions[dim])
            TSR_TRY(tsr_ids_positions(x->ids.layout, x->call->coordinate, dim, x->ids.tensor->shape[dim],
                                      x->positions[dim]));
    }
    return TSR_OK;
}

/* Elements of the table and of the other tensor that belong to one id: offsets, in elements. The
 * first is that of a table without gaps where `dense` is set. */
static void find_element(const indexing *x, int64_t id, int64_t place, bool dense, int64_t *table, int64_t *other)
{
    int64_t step = 1;
    *table = *other = 0;
    for (int dim = x->table->ndim - 1; dim >= 0; dim--) {
        const int64_t size = x->ids.tensor->shape[dim], own = id % size;
        const int64_t at = dim == x->dim ? place : x->positions[dim] ? x->positions[dim][own] : own;
        *table += at * (dense ? step : x->table->strides[dim]);
        *other += own * x->other->strides[dim];
        step *= x->table->shape[dim];
        id /= size;
    }
}

tsr_status tsr_indexing_read_elements(const tsr_kernel_call *call)
{
    indexing x;
    int64_t found[TSR_IDS_CHUNK], from, to;
    char nothing[16];
    begin(call, &x);
    make_nothing(x.table->dtype, nothing);
    TSR_TRY(find_positions(&x));
    for (int64_t done = 0; done < x.count; done += TSR_IDS_CHUNK) {
        const int64_t n = chunk_of(x.count, done, TSR_IDS_CHUNK);
        TSR_TRY(tsr_ids_read(&x.ids, done, n, found));
        for (int64_t i = 0; i < n; i++) {
            find_element(&x, done + i, found[i], false, &from, &to);
            memcpy((char *)x.other->data + to * x.bytes,
                   found[i] < 0 ? nothing : (const char *)x.table->data + from * x.bytes, (size_t)x.bytes);
        }
    }
    return TSR_OK;
}

tsr_status tsr_indexing_add_elements(const tsr_kernel_call *call)
{
    indexing x;
    int64_t found[TSR_IDS_CHUNK], to, from;
    begin(call, &x);
    const int64_t bytes = (int64_t)tsr_dtype_bytes(x.computed);
    TSR_TRY(check_ids(&x));
    begin_sums(&x, call->code == TSR_SCATTER_ADD ? &call->inputs[0] : NULL);
    TSR_TRY(find_positions(&x));
    for (int64_t done = 0; done < x.count; done += TSR_IDS_CHUNK) {
        const int64_t n = chunk_of(x.count, done, TSR_IDS_CHUNK);
        TSR_TRY(tsr_ids_read(&x.ids, done, n, found));
        for (int64_t i = 0; i < n; i++) {
            if (found[i] < 0)
                continue;
            find_element(&x, done + i, found[i], true, &to, &from);
            add_run(&x, x.sums + to * bytes, (const char *)x.other->data + from * x.bytes, 1, 1);
        }
    }
    finish_sums(&x);
    return TSR_OK;
}
