#include "cli/report.h"
#include "draw/picture.h"
#include "shards/owned.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

/* Upper bound of the intervals of a dim that the table shows. */
#define SHOWN_INTERVALS 4

/* One rank's part of the answer. Its intervals, which may be millions, are read while they are
 * printed. */
typedef struct part {
    int64_t rank;
    int64_t coordinate[TSR_MAX_DIMS];
    int64_t shape[TSR_MAX_DIMS], offset[TSR_MAX_DIMS];
} part;

static tsr_status read_part(const tsr_layout *layout, const int64_t *coordinate, part *p)
{
    memcpy(p->coordinate, coordinate, sizeof p->coordinate);
    TSR_TRY(tsr_mesh_rank_at(tsr_layout_mesh(layout), coordinate, &p->rank));
    return tsr_layout_local(layout, coordinate, p->shape, p->offset);
}

/* Calls `use` for every rank in mesh order, until it fails. */
static tsr_status for_each_part(const tsr_layout *layout, tsr_status (*use)(const tsr_layout *, const part *))
{
    part p = {0};
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    tsr_status status;
    do {
        status = read_part(layout, coordinate, &p);
        if (status == TSR_OK)
            status = use(layout, &p);
    } while (status == TSR_OK && next_coordinate(tsr_layout_mesh(layout), coordinate));
    return status;
}

static json_t *part_to_json(const tsr_layout *layout, const part *p)
{
    const int ndim = tsr_layout_ndim(layout);
    return json_pack("{sI so so so}", "rank", (json_int_t)p->rank, "coordinate",
                     sizes_to_json(p->coordinate, tsr_mesh_ndim(tsr_layout_mesh(layout))), "local_shape",
                     sizes_to_json(p->shape, ndim), "global_offset", sizes_to_json(p->offset, ndim));
}

static bool is_first(const tsr_layout *layout, const part *p)
{
    for (int d = 0; d < tsr_mesh_ndim(tsr_layout_mesh(layout)); d++)
        if (p->coordinate[d] != 0)
            return false;
    return true;
}

/* The text of an object without its last brace, so that fields can follow; the caller frees it.
 * NULL if there is no memory. */
static char *open_object(json_t *json)
{
    char *const text = json_take_text(json);
    if (text)
        text[strlen(text) - 1] = '\0';
    return text;
}

/* Prints the intervals one by one, since as JSON values they would take many times their
 * memory. */
static tsr_status print_intervals_json(const tsr_layout *layout, const int64_t *coordinate)
{
    owned has = {0};
    tsr_status status = TSR_OK;
    for (int d = 0; d < tsr_layout_ndim(layout) && status == TSR_OK; d++) {
        status = owned_read(layout, coordinate, d, &has);
        say_text(d > 0 ? ", [" : "[");
        for (size_t i = 0; i < has.count && status == TSR_OK; i++)
            say("%s[%lld, %lld]", i > 0 ? ", " : "", (long long)has.at[i].begin, (long long)has.at[i].end);
        say_text("]");
    }
    free(has.at);
    return status;
}

static tsr_status print_part_json(const tsr_layout *layout, const part *p)
{
    char *const text = open_object(part_to_json(layout, p));
    if (!text)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for rank %lld's part of the answer",
                              (long long)p->rank);
    say("%s%s, \"intervals\": [", is_first(layout, p) ? "" : ", ", text);
    free(text);
    TSR_TRY(print_intervals_json(layout, p->coordinate));
    say_text("]}");
    return TSR_OK;
}

/* Refuses a layout with more intervals than the context lists, before anything is printed. Rank 0
 * is checked, since no rank has many more intervals. With `all` its intervals are listed, else only
 * counted. */
static tsr_status check_intervals(const tsr_layout *layout, bool all)
{
    const int64_t origin[TSR_MAX_DIMS] = {0};
    owned has = {0};
    tsr_status status = TSR_OK;
    for (int d = 0; d < tsr_layout_ndim(layout) && status == TSR_OK; d++)
        status =
            all ? owned_read(layout, origin, d, &has) : tsr_layout_intervals(layout, origin, d, NULL, 0, &has.count);
    free(has.at);
    return status;
}

/* Prints one object, rank by rank, since a mesh may have millions of ranks. */
static tsr_status print_layout_json(const tsr_layout *layout)
{
    const int ndim = tsr_layout_ndim(layout);
    json_t *const head = json_pack("{so so ss so}", "mesh", mesh_to_json(tsr_layout_mesh(layout)), "shape",
                                   sizes_to_json(tsr_layout_shape(layout), ndim), "dtype",
                                   tsr_dtype_name(tsr_layout_dtype(layout)), "placements", placements_to_json(layout));
    char *const text = open_object(head);
    if (!text)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the answer");
    say("%s, \"ranks\": [", text);
    free(text);
    TSR_TRY(for_each_part(layout, print_part_json));
    say("]}\n");
    return TSR_OK;
}

static void print_numbers(const int64_t *numbers, int count, int width)
{
    char text[24 * TSR_MAX_DIMS] = "";
    size_t used = 0;
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", i > 0 ? "," : "", (long long)numbers[i]);
    say("  %-*s", width, count > 0 ? text : "-");
}

static tsr_status print_dim(const tsr_layout *layout, const int64_t *coordinate, int dim)
{
    tsr_interval at[SHOWN_INTERVALS];
    size_t count;
    TSR_TRY(tsr_layout_intervals(layout, coordinate, dim, at, SHOWN_INTERVALS, &count));
    if (count == 0)
        say("none");
    for (size_t i = 0; i < count && i < SHOWN_INTERVALS; i++)
        say("%s[%lld,%lld)", i > 0 ? "+" : "", (long long)at[i].begin, (long long)at[i].end);
    if (count > SHOWN_INTERVALS)
        say(" and %zu more", count - SHOWN_INTERVALS);
    return TSR_OK;
}

static tsr_status print_part(const tsr_layout *layout, const part *p)
{
    const int ndim = tsr_layout_ndim(layout);
    char shape[SHAPE_TEXT_BYTES];
    print_shape(ndim, p->shape, shape);
    say("%6lld", (long long)p->rank);
    print_numbers(p->coordinate, tsr_mesh_ndim(tsr_layout_mesh(layout)), 10);
    say("  %-14s", shape);
    print_numbers(p->offset, ndim, 14);
    say("  ");
    for (int d = 0; d < ndim; d++) {
        say_text(d > 0 ? " x " : "");
        TSR_TRY(print_dim(layout, p->coordinate, d));
    }
    say("%s\n", ndim == 0 ? "-" : "");
    return TSR_OK;
}

static tsr_status print_layout_text(const tsr_layout *layout)
{
    char shape[SHAPE_TEXT_BYTES];
    char *const mesh = mesh_text(tsr_layout_mesh(layout)), *const placements = layout_text(layout);
    print_shape(tsr_layout_ndim(layout), tsr_layout_shape(layout), shape);
    const bool whole = mesh && placements;
    if (whole)
        say("%s %s as %s on mesh %s\n\n", shape, tsr_dtype_name(tsr_layout_dtype(layout)), placements, mesh);
    free(mesh);
    free(placements);
    if (!whole)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the layout's text");
    say("%6s  %-10s  %-14s  %-14s  %s\n", "rank", "coordinate", "local shape", "global offset", "owns");
    TSR_TRY(for_each_part(layout, print_part));
    say_text("\n");
    return picture_print(layout);
}

static int print_layout(const tool_arguments *given, const tsr_layout *layout)
{
    const bool json = given->value[OPT_JSON] != NULL;
    tsr_status status = check_intervals(layout, json);
    if (status == TSR_OK)
        status = json ? print_layout_json(layout) : print_layout_text(layout);
    return status == TSR_OK ? EXIT_DONE : complain_status(EXIT_REFUSED);
}

static int run_layout(const tool_arguments *given)
{
    tensor_shape shape;
    tsr_dtype dtype;
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    int status = parse_shape(given->value[OPT_SHAPE], &shape);
    if (status == EXIT_DONE)
        status = parse_dtype(given->value[OPT_DTYPE], &dtype);
    if (status == EXIT_DONE)
        status = parse_mesh(given->value[OPT_MESH], &mesh);
    if (status == EXIT_DONE)
        status = parse_layout("--placements", given->value[OPT_PLACEMENTS], mesh, &shape, dtype, &layout);
    if (status == EXIT_DONE)
        status = print_layout(given, layout);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return status;
}

const tool_command layout_command = {
    .name = "layout",
    .summary = "which rank owns what of a tensor",
    .details = "For each rank of the mesh: its coordinate, the shape of its local tensor, the first index that it "
               "owns, and the half-open "
               "intervals that it owns along each dim. A tensor of at most two dims is drawn as well: ranks parted by "
               "spaces are replicas, "
               "ranks joined by + hold terms that are still to be reduced. Nothing is run: the mesh may have any size.",
    .examples = "  tessera layout --mesh dp=2,tp=2 --shape 9x6 --placements 'S(0),S(1)'\n"
                "  tessera layout --mesh 4 --shape 10 --placements 'S(0;balanced)'\n"
                "  tessera layout --mesh 2x2@[3,1,0,2] --shape 8x8 --dtype bf16 --placements 'P,S(1)' --json\n",
    .takes = TAKES(MESH) | TAKES(SHAPE) | TAKES(PLACEMENTS) | TAKES(DTYPE) | TAKES(JSON),
    .requires_all = TAKES(MESH) | TAKES(SHAPE) | TAKES(PLACEMENTS),
    .run = run_layout,
};
