/* The text of a mesh: `2x4` or `dp=2,tp=4`, then optionally `@8` or `@[3,1,0,2]`. */
#include "base/checked.h"
#include "base/context.h"
#include "base/memory/memory.h"
#include "base/text/scan.h"
#include "base/text/text.h"
#include "mesh/build.h"

#include <tessera/mesh.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* A mesh's text as it is read; names are kept as places in the text. */
typedef struct parsed {
    tsr_scan scan;
    int64_t limit;
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    int64_t count; /* ranks: the product of `shape` */
    bool named;
    size_t names[TSR_MAX_DIMS]; /* index in the text where each name begins */
    size_t lengths[TSR_MAX_DIMS];
    int64_t first;
    size_t list; /* index in the text of the first rank of a list; 0: no list */
} parsed;

static tsr_status too_many_ranks(parsed *p, size_t at, int64_t wanted)
{
    char reason[128];
    snprintf(reason, sizeof reason, "up to here the mesh has ranks up to %lld, but only 0 to %lld are possible",
             (long long)wanted - 1, (long long)p->limit - 1);
    return tsr_scan_refuse(&p->scan, at, reason);
}

static tsr_status read_size(parsed *p)
{
    const size_t at = p->scan.at;
    int64_t size = 0, count = 0;
    char expected[64];
    snprintf(expected, sizeof expected, "a number of ranks (1 to %lld)", (long long)TSR_GRID_RANKS);
    TSR_TRY(tsr_scan_number(&p->scan, 1, TSR_GRID_RANKS, expected, &size));
    if (!tsr_multiply(p->count, size, &count) || count > p->limit)
        return too_many_ranks(p, at, p->count <= INT64_MAX / size ? p->count * size : INT64_MAX);
    if (p->ndim == TSR_MAX_DIMS)
        return tsr_scan_refuse(&p->scan, at, "this dim is one too many for a mesh");
    p->count = count;
    p->shape[p->ndim++] = size;
    return TSR_OK;
}

static tsr_status read_named_dim(parsed *p)
{
    const char *text = p->scan.text;
    const size_t at = p->scan.at, length = tsr_mesh_name_length(text + at);
    if (length == 0)
        return tsr_scan_expected(&p->scan, at, "a name (letters, digits and _, no digit first)");
    for (int d = 0; d < p->ndim; d++)
        if (p->lengths[d] == length && memcmp(text + p->names[d], text + at, length) == 0)
            return tsr_scan_refuse(&p->scan, at, "this name was used before");
    p->scan.at += length;
    if (!tsr_scan_accept(&p->scan, "="))
        return tsr_scan_expected(&p->scan, p->scan.at, "\"=\"");
    const int dim = p->ndim;
    TSR_TRY(read_size(p));
    p->names[dim] = at;
    p->lengths[dim] = length;
    return TSR_OK;
}

static tsr_status read_dims(parsed *p)
{
    p->named = p->scan.text[0] < '0' || p->scan.text[0] > '9';
    if (!p->named) {
        do
            TSR_TRY(read_size(p));
        while (tsr_scan_accept(&p->scan, "x"));
        return TSR_OK;
    }
    do
        TSR_TRY(read_named_dim(p));
    while (tsr_scan_comma(&p->scan));
    return TSR_OK;
}

static tsr_status read_rank(parsed *p, int64_t *rank)
{
    char expected[64];
    snprintf(expected, sizeof expected, "a rank (0 to %lld)", (long long)p->limit - 1);
    return tsr_scan_number(&p->scan, 0, p->limit - 1, expected, rank);
}

/* Reads a list of ranks. `ranks` is NULL in the first pass, which only checks the text before
 * memory is allocated. */
static tsr_status read_list(parsed *p, int64_t *ranks)
{
    char expected[64];
    snprintf(expected, sizeof expected, "\",\" (a list has %lld ranks)", (long long)p->count);
    p->scan.at = p->list;
    for (int64_t i = 0; i < p->count; i++) {
        int64_t rank = 0;
        if (i > 0 && !tsr_scan_comma(&p->scan))
            return tsr_scan_expected(&p->scan, p->scan.at, expected);
        TSR_TRY(read_rank(p, &rank));
        if (ranks)
            ranks[i] = rank;
    }
    if (!tsr_scan_accept(&p->scan, "]"))
        return tsr_scan_expected(&p->scan, p->scan.at, "\"]\"");
    return TSR_OK;
}

static tsr_status read_ranks(parsed *p)
{
    if (tsr_scan_accept(&p->scan, "[")) {
        p->list = p->scan.at;
        return read_list(p, NULL);
    }
    const size_t at = p->scan.at;
    TSR_TRY(read_rank(p, &p->first));
    return p->first + p->count > p->limit ? too_many_ranks(p, at, p->first + p->count) : TSR_OK;
}

static tsr_status read_mesh(parsed *p)
{
    TSR_TRY(read_dims(p));
    const char *expected = p->named ? "\",\", \"@\" or the end" : "\"x\", \"@\" or the end";
    if (tsr_scan_accept(&p->scan, "@")) {
        TSR_TRY(read_ranks(p));
        expected = "the end";
    }
    return p->scan.text[p->scan.at] ? tsr_scan_expected(&p->scan, p->scan.at, expected) : TSR_OK;
}

/* The error points at the `index`-th rank of the list. */
static tsr_status refuse_repeated(parsed *p, int64_t index)
{
    p->scan.at = p->list;
    for (int64_t i = 0; i < index; i++) {
        p->scan.at += strspn(p->scan.text + p->scan.at, "0123456789");
        tsr_scan_comma(&p->scan);
    }
    return tsr_scan_refuse(&p->scan, p->scan.at, "this rank was listed before");
}

/* `names` has room for the whole text; `ranks` has room for the list, or is NULL if there is no
 * list. */
static tsr_status build_parsed(parsed *p, tsr_context *context, tsr_comm *comm, char *names, int64_t *ranks,
                               tsr_mesh **out)
{
    tsr_mesh_description description;
    const char *ends[TSR_MAX_DIMS] = {0};
    for (int d = 0; p->named && d < p->ndim; d++) {
        memcpy(names, p->scan.text + p->names[d], p->lengths[d]);
        names[p->lengths[d]] = '\0';
        ends[d] = names;
        names += p->lengths[d] + 1;
    }
    if (ranks)
        TSR_TRY(read_list(p, ranks));
    int64_t repeated = -1;
    TSR_TRY(tsr_mesh_describe("tsr_mesh_parse", context, comm, p->ndim, p->shape, p->named ? ends : NULL, ranks,
                              &description));
    description.grid.first = p->first;
    description.repeated = &repeated;
    const tsr_status status = tsr_mesh_build(&description, out);
    return repeated >= 0 ? refuse_repeated(p, repeated) : status;
}

static tsr_status parse_in(tsr_context *context, tsr_comm *comm, const char *text, tsr_mesh **out)
{
    parsed p = {.scan = {"mesh", text, 0}, .limit = tsr_mesh_limit(comm), .count = 1};
    TSR_TRY(read_mesh(&p));
    void *names, *ranks = NULL;
    TSR_TRY(tsr_allocate(context, strlen(text) + 1, &names));
    tsr_status status = p.list ? tsr_allocate(context, (size_t)p.count * sizeof(int64_t), &ranks) : TSR_OK;
    if (status == TSR_OK)
        status = build_parsed(&p, context, comm, names, ranks, out);
    tsr_release(context, ranks);
    tsr_release(context, names);
    return status;
}

tsr_status tsr_mesh_parse(tsr_comm *comm, tsr_context *context, const char *text, tsr_mesh **out)
{
    if (!text || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_mesh_parse: %s is NULL", text ? "out" : "text");
    tsr_context *resolved = NULL;
    TSR_TRY(tsr_context_resolve(comm ? tsr_comm_context(comm) : context, &resolved));
    const tsr_status status = parse_in(resolved, comm, text, out);
    tsr_context_destroy(resolved);
    return status;
}

static void print_list(const tsr_grid *grid, tsr_text *text)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    const char *before = "@[";
    do {
        tsr_text_append(text, "%s%lld", before, (long long)tsr_grid_rank(grid, coordinate));
        before = ",";
    } while (tsr_grid_next(grid, coordinate));
    tsr_text_append(text, "]");
}

size_t tsr_mesh_print(const tsr_mesh *mesh, char *buffer, size_t capacity)
{
    tsr_text text = {buffer, capacity, 0};
    const tsr_grid *grid = &mesh->grid;
    for (int d = 0; d < grid->ndim; d++) {
        if (mesh->names[d])
            tsr_text_append(&text, "%s%s=%lld", d ? "," : "", mesh->names[d], (long long)grid->shape[d]);
        else
            tsr_text_append(&text, "%s%lld", d ? "x" : "", (long long)grid->shape[d]);
    }
    if (!tsr_grid_is_numbered(grid))
        print_list(grid, &text);
    else if (grid->first != 0)
        tsr_text_append(&text, "@%lld", (long long)grid->first);
    return text.length;
}
