/* Fuzzes layouts, from "MESH\nPLACEMENTS\nROWS COLUMNS": a layout is refused with a message, or
 * every rank's intervals agree with its local shape and offset, and the ranks together own every
 * element. */
#include "fuzz.h"

#include <tessera/layout.h>

#include <inttypes.h>
#include <stdio.h>

#define MOST_RANKS 64
#define LONGEST    4096

/* Checks that the intervals ascend without touching, lie inside the dim, sum to the local length
 * and begin at the offset. */
static void check_dim(const tsr_layout *layout, const int64_t *coordinate, int dim, int64_t local, int64_t offset,
                      unsigned char *owned)
{
    static tsr_interval intervals[LONGEST];
    const int64_t length = tsr_layout_shape(layout)[dim];
    size_t count = 0;
    FUZZ_REQUIRE(tsr_layout_intervals(layout, coordinate, dim, intervals, LONGEST, &count) == TSR_OK);
    FUZZ_REQUIRE(count <= LONGEST);
    FUZZ_REQUIRE(offset == (count > 0 ? intervals[0].begin : length));
    int64_t sum = 0, previous = -1;
    for (size_t i = 0; i < count; i++) {
        FUZZ_REQUIRE(previous < intervals[i].begin && intervals[i].begin < intervals[i].end &&
                     intervals[i].end <= length);
        sum += intervals[i].end - intervals[i].begin;
        previous = intervals[i].end;
        memset(owned + intervals[i].begin, 1, (size_t)(intervals[i].end - intervals[i].begin));
    }
    FUZZ_REQUIRE(sum == local);
}

static void check(const tsr_mesh *mesh, const tsr_layout *layout)
{
    static unsigned char owned[2][LONGEST];
    const int64_t *shape = tsr_layout_shape(layout);
    memset(owned, 0, sizeof owned);
    for (int64_t rank = 0; rank < tsr_mesh_count(mesh); rank++) {
        int64_t coordinate[TSR_MAX_DIMS], local[2], offset[2], rest = rank;
        for (int d = tsr_mesh_ndim(mesh) - 1; d >= 0; d--) {
            coordinate[d] = rest % tsr_mesh_size(mesh, d);
            rest /= tsr_mesh_size(mesh, d);
        }
        FUZZ_REQUIRE(tsr_layout_local(layout, coordinate, local, offset) == TSR_OK);
        for (int d = 0; d < 2; d++)
            check_dim(layout, coordinate, d, local[d], offset[d], owned[d]);
    }
    for (int d = 0; d < 2; d++)
        FUZZ_REQUIRE(!memchr(owned[d], 0, (size_t)shape[d]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char *placements = strchr(text, '\n');
    char *numbers = placements ? strchr(placements + 1, '\n') : NULL;
    int64_t shape[2] = {0, 0};
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    if (!numbers || sscanf(numbers + 1, "%5" SCNd64 " %5" SCNd64, &shape[0], &shape[1]) != 2 || shape[0] > LONGEST ||
        shape[1] > LONGEST)
        goto free_text;
    *placements++ = *numbers = '\0';
    if (tsr_mesh_parse(NULL, NULL, text, &mesh) != TSR_OK)
        goto free_text;
    if (tsr_mesh_count(mesh) > MOST_RANKS)
        goto destroy_mesh;
    if (tsr_layout_parse(mesh, placements, 2, shape, TSR_F32, &layout) == TSR_OK)
        check(mesh, layout);
    else
        FUZZ_REQUIRE(tsr_status_message()[0] != '\0');
    tsr_layout_destroy(layout);
destroy_mesh:
    tsr_mesh_destroy(mesh);
free_text:
    free(text);
    return 0;
}
