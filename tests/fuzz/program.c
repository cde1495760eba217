/* Fuzzes programs as JSON: a text is refused with a sentence, or is a program whose values have
 * layouts. */
#include "fuzz.h"

#include <tessera/program_json.h>

static void check(const tsr_program *program)
{
    const char *sentence = "";
    FUZZ_REQUIRE(tsr_program_status(program, &sentence) == TSR_OK && !sentence);
    for (tsr_value v = 0; tsr_value_layout(program, v); v++)
        FUZZ_REQUIRE(tsr_value_varying(program, v) < 1u << 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *const text = fuzz_copy(data, size);
    tsr_mesh *mesh;
    tsr_program *program = NULL;
    FUZZ_REQUIRE(tsr_mesh_parse(NULL, NULL, "dp=2,tp=3", &mesh) == TSR_OK);
    if (tsr_program_parse("program.json", text, size, mesh, &program) == TSR_OK)
        check(program);
    else {
        FUZZ_REQUIRE(!program);
        FUZZ_REQUIRE(strncmp(tsr_status_message(), "program.json: ", 14) == 0);
    }
    tsr_program_destroy(program);
    tsr_mesh_destroy(mesh);
    free(text);
    return 0;
}
