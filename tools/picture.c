#include "picture.h"

#include "owned.h"
#include "parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tessera/sys/status.h>

/** Beyond these a picture is no help. */
#define MOST_RANKS   64
#define MOST_ROWS    32
#define MOST_COLUMNS 16

/** Room for the ranks in a block. */
#define CELL_BYTES 28

/** The pieces into which all ranks' cuts divide a dim: piece i is [at[i], at[i + 1]). */
typedef struct pieces {
    int64_t *at;
    size_t count, capacity;
} pieces;

/** One rank, with what it owns along both of the picture's dims. */
typedef struct owner {
    int64_t rank;
    int64_t coordinate[TSR_MAX_DIMS];
    owned dim[2];
} owner;

typedef struct picture {
    const tsr_layout *layout;
    int ndim;
    owner owners[MOST_RANKS];
    size_t owner_count;
    pieces cuts[2];
} picture;

static tsr_status add_cut(pieces *p, int64_t cut)
{
    if (p->count == p->capacity) {
        const size_t capacity = 2 * p->capacity + 16;
        int64_t *const more = realloc(p->at, capacity * sizeof *more);
        if (more == NULL)
            return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu cuts", capacity);
        p->at = more;
        p->capacity = capacity;
    }
    p->at[p->count++] = cut;
    return TSR_OK;
}

static int compare_cuts(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/** Sorts the cuts and leaves one of each. */
static void order_cuts(pieces *p)
{
    if (p->count == 0)
        return;
    qsort(p->at, p->count, sizeof *p->at, compare_cuts);
    size_t kept = 0;
    for (size_t i = 0; i < p->count; i++)
        if (kept == 0 || p->at[kept - 1] != p->at[i])
            p->at[kept++] = p->at[i];
    p->count = kept - 1;
}

/** A scalar, or the rows of a tensor of one dim, are one piece. */
static tsr_status gather_cuts(picture *p, int dim)
{
    const int tensor_dim = p->ndim - 2 + dim;
    pieces *const cuts = &p->cuts[dim];
    if (tensor_dim < 0) {
        TSR_TRY(add_cut(cuts, 0));
        TSR_TRY(add_cut(cuts, 1));
        cuts->count = 1;
        return TSR_OK;
    }
    for (size_t i = 0; i < p->owner_count; i++) {
        owned *const has = &p->owners[i].dim[dim];
        TSR_TRY(owned_read(p->layout, p->owners[i].coordinate, tensor_dim, has));
        for (size_t j = 0; j < has->count; j++) {
            TSR_TRY(add_cut(cuts, has->at[j].begin));
            TSR_TRY(add_cut(cuts, has->at[j].end));
        }
    }
    order_cuts(cuts);
    return TSR_OK;
}

static tsr_status gather_owners(picture *p)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(p->layout);
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    do {
        owner *const o = &p->owners[p->owner_count++];
        memcpy(o->coordinate, coordinate, sizeof coordinate);
        TSR_TRY(tsr_mesh_rank_at(mesh, coordinate, &o->rank));
    } while (next_coordinate(mesh, coordinate));
    TSR_TRY(gather_cuts(p, 0));
    return gather_cuts(p, 1);
}

static bool owns_along(const picture *p, const owner *o, int dim, size_t piece)
{
    if (p->ndim - 2 + dim < 0)
        return true;
    const int64_t index = p->cuts[dim].at[piece];
    for (size_t i = 0; i < o->dim[dim].count; i++)
        if (o->dim[dim].at[i].begin <= index && index < o->dim[dim].at[i].end)
            return true;
    return false;
}

/** Ranks whose terms combine to one value: their coordinates differ in Partial dims alone. */
static bool share_terms(const picture *p, const owner *a, const owner *b)
{
    const tsr_placement *const placements = tsr_layout_placements(p->layout);
    for (int d = 0; d < tsr_mesh_ndim(tsr_layout_mesh(p->layout)); d++)
        if (placements[d].kind != TSR_PARTIAL && a->coordinate[d] != b->coordinate[d])
            return false;
    return true;
}

/** Copies a list of ranks; one that is too long for a cell loses its middle. */
static void shorten(const char *list, size_t length, char text[CELL_BYTES])
{
    size_t last = length, first = 0;
    while (last > 0 && strchr(" +", list[last - 1]) == NULL)
        last--;
    for (size_t i = 0; i < CELL_BYTES / 2 && i < length; i++)
        if (strchr(" +", list[i]) != NULL)
            first = i;
    if (length < CELL_BYTES)
        memcpy(text, list, length + 1);
    else
        snprintf(text, CELL_BYTES, "%.*s .. %.10s", (int)first, list, list + last);
}

/** "0 1" are replicas, "0+1" terms. */
static void name_owners(const picture *p, size_t row, size_t column, char text[CELL_BYTES])
{
    char full[MOST_RANKS * 12] = "";
    size_t used = 0;
    bool done[MOST_RANKS] = {false};
    for (size_t i = 0; i < p->owner_count; i++) {
        const char *joint = used > 0 ? " " : "";
        for (size_t j = i; j < p->owner_count; j++) {
            const owner *const o = &p->owners[j];
            if (done[j] || !owns_along(p, o, 0, row) || !owns_along(p, o, 1, column) || !share_terms(p, &p->owners[i], o))
                continue;
            done[j] = true;
            used += (size_t)snprintf(full + used, sizeof full - used, "%s%lld", joint, (long long)o->rank);
            joint = "+";
        }
    }
    shorten(full, used, text);
}

static int digits(int64_t number)
{
    return snprintf(NULL, 0, "%lld", (long long)number);
}

static void print_rule(const picture *p, int margin, const int *widths)
{
    printf("%*s", margin, "");
    for (size_t c = 0; c < p->cuts[1].count; c++) {
        putchar('+');
        for (int i = 0; i < widths[c] + 2; i++)
            putchar('-');
    }
    printf("+\n");
}

/** The column's first index over its left edge, and the tensor's size over the last edge. */
static void print_column_heads(const picture *p, int margin, const int *widths)
{
    printf("%*s", margin, "");
    for (size_t c = 0; c < p->cuts[1].count; c++)
        printf("%-*lld", widths[c] + 3, (long long)p->cuts[1].at[c]);
    printf("%lld\n", (long long)p->cuts[1].at[p->cuts[1].count]);
}

static void draw(const picture *p, char (*cells)[MOST_COLUMNS][CELL_BYTES])
{
    int widths[MOST_COLUMNS];
    for (size_t c = 0; c < p->cuts[1].count; c++) {
        widths[c] = digits(p->cuts[1].at[c]) - 2 > 1 ? digits(p->cuts[1].at[c]) - 2 : 1;
        for (size_t r = 0; r < p->cuts[0].count; r++)
            widths[c] = (int)strlen(cells[r][c]) > widths[c] ? (int)strlen(cells[r][c]) : widths[c];
    }
    const bool numbered = p->ndim == 2;
    const int margin = 2 + (numbered ? digits(p->cuts[0].at[p->cuts[0].count]) + 1 : 0);
    if (p->ndim > 0)
        print_column_heads(p, margin, widths);
    for (size_t r = 0; r < p->cuts[0].count; r++) {
        print_rule(p, margin, widths);
        if (numbered)
            printf("%*lld ", margin - 1, (long long)p->cuts[0].at[r]);
        else
            printf("%*s", margin, "");
        for (size_t c = 0; c < p->cuts[1].count; c++)
            printf("| %-*s ", widths[c], cells[r][c]);
        printf("|\n");
    }
    print_rule(p, margin, widths);
    if (numbered)
        printf("%*lld\n", margin - 1, (long long)p->cuts[0].at[p->cuts[0].count]);
}

static tsr_status draw_pieces(const picture *p)
{
    if (p->cuts[0].count == 0 || p->cuts[1].count == 0) {
        printf("no picture: the tensor is empty\n");
        return TSR_OK;
    }
    if (p->cuts[0].count > MOST_ROWS || p->cuts[1].count > MOST_COLUMNS) {
        printf("no picture: %zu x %zu blocks are more than %d x %d\n", p->cuts[0].count, p->cuts[1].count, MOST_ROWS, MOST_COLUMNS);
        return TSR_OK;
    }
    char(*const cells)[MOST_COLUMNS][CELL_BYTES] = calloc(MOST_ROWS, sizeof *cells);
    if (cells == NULL)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the picture");
    for (size_t r = 0; r < p->cuts[0].count; r++)
        for (size_t c = 0; c < p->cuts[1].count; c++)
            name_owners(p, r, c, cells[r][c]);
    draw(p, cells);
    free(cells);
    return TSR_OK;
}

static void picture_finish(picture *p)
{
    for (size_t i = 0; i < p->owner_count; i++) {
        free(p->owners[i].dim[0].at);
        free(p->owners[i].dim[1].at);
    }
    free(p->cuts[0].at);
    free(p->cuts[1].at);
}

tsr_status picture_print(const tsr_layout *layout)
{
    picture p = {.layout = layout, .ndim = tsr_layout_ndim(layout)};
    if (p.ndim > 2 || tsr_mesh_count(tsr_layout_mesh(layout)) > MOST_RANKS) {
        printf("no picture: that is for tensors of at most 2 dims on at most %d ranks\n", MOST_RANKS);
        return TSR_OK;
    }
    tsr_status status = gather_owners(&p);
    if (status == TSR_OK)
        status = draw_pieces(&p);
    picture_finish(&p);
    return status;
}
