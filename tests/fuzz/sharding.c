/* Fuzzes sharding texts, from "FORMAT\nTEXT": a text is refused with a message, or its layout is
 * printed in every format as a text that gives a layout again, or refused. */
#include "fuzz.h"

#include <tessera/sharding.h>

#include <stdlib.h>

static const int64_t shape[] = {4, 6};

static void check_print(const tsr_mesh *mesh, const tsr_layout *layout, tsr_sharding_format format)
{
    static char text[4096];
    size_t length;
    tsr_layout *again = NULL;
    if (tsr_sharding_print(layout, format, text, sizeof text, &length) != TSR_OK) {
        FUZZ_REQUIRE(tsr_status_message()[0] != '\0');
        return;
    }
    FUZZ_REQUIRE(length == strlen(text));
    FUZZ_REQUIRE(tsr_sharding_parse(format, text, mesh, 2, shape, TSR_F32, &again) == TSR_OK);
    tsr_layout_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char *line = strchr(text, '\n');
    tsr_sharding_format format;
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    if (!line)
        goto free_text;
    *line = '\0';
    if (tsr_sharding_format_parse(text, &format) != TSR_OK)
        goto free_text;
    FUZZ_REQUIRE(tsr_mesh_parse(NULL, NULL, "a=2,b=2,c=3", &mesh) == TSR_OK);
    if (tsr_sharding_parse(format, line + 1, mesh, 2, shape, TSR_F32, &layout) != TSR_OK)
        FUZZ_REQUIRE(tsr_status_message()[0] != '\0');
    for (int f = 0; layout && f < TSR_SHARDING_END; f++)
        check_print(mesh, layout, (tsr_sharding_format)f);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
free_text:
    free(text);
    return 0;
}
