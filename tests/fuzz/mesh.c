/* Fuzzes meshes: text is refused with a message, or gives a mesh whose printed text gives an equal
 * mesh. */
#include "fuzz.h"

#include <tessera/mesh.h>

static void check(const tsr_mesh *mesh)
{
    const size_t length = tsr_mesh_print(mesh, NULL, 0);
    char *text = fuzz_memory(length + 1);
    tsr_mesh *again = NULL;
    FUZZ_REQUIRE(tsr_mesh_print(mesh, text, length + 1) == length);
    FUZZ_REQUIRE(tsr_mesh_parse(NULL, NULL, text, &again) == TSR_OK);
    FUZZ_REQUIRE(tsr_mesh_equal(mesh, again));
    FUZZ_REQUIRE(tsr_mesh_count(mesh) == tsr_mesh_count(again));

    int64_t coordinate[TSR_MAX_DIMS] = {0}, rank = -1, back[TSR_MAX_DIMS];
    int inside = 0;
    FUZZ_REQUIRE(tsr_mesh_rank_at(mesh, coordinate, &rank) == TSR_OK);
    FUZZ_REQUIRE(tsr_mesh_coordinate_of(mesh, rank, back, &inside) == TSR_OK && inside);
    FUZZ_REQUIRE(memcmp(coordinate, back, (size_t)tsr_mesh_ndim(mesh) * sizeof *back) == 0);
    tsr_mesh_destroy(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    tsr_mesh *mesh = NULL;
    if (tsr_mesh_parse(NULL, NULL, text, &mesh) == TSR_OK) {
        check(mesh);
        tsr_mesh_destroy(mesh);
    } else {
        FUZZ_REQUIRE(!mesh);
        FUZZ_REQUIRE(tsr_status_message()[0] != '\0');
    }
    free(text);
    return 0;
}
