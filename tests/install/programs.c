/* A program outside the tree that links libtessera-programs: it reads a program, and compiles it
 * for one rank of many. */
#include <tessera/executable.h>
#include <tessera/program_json.h>
#include <tessera/tessera.h>

#include <stdio.h>
#include <string.h>

static const char text[] = "{\"values\": [{\"name\": \"x\", \"kind\": \"input\", \"shape\": [64, 8], \"dtype\": "
                           "\"f32\", \"placements\": [\"S(0)\"]}],"
                           "\"ops\": [{\"op\": \"relu\", \"inputs\": [\"x\"], \"outputs\": [\"y\"]}],"
                           "\"outputs\": [{\"name\": \"y\"}]}";

int main(void)
{
    tsr_mesh *mesh = NULL;
    tsr_program *program = NULL;
    tsr_executable *executable = NULL;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    tsr_status status = tsr_mesh_parse(NULL, NULL, "64", &mesh);
    options.rank = 63;
    if (status == TSR_OK)
        status = tsr_program_parse("text", text, strlen(text), mesh, &program);
    if (status == TSR_OK)
        status = tsr_compile(program, &options, &executable);
    if (status == TSR_OK)
        printf("a program of %d step, tessera %s\n", (int)tsr_executable_step_count(executable), tsr_version());
    else
        fprintf(stderr, "%s\n", tsr_status_message());
    tsr_executable_destroy(executable);
    tsr_program_destroy(program);
    tsr_mesh_destroy(mesh);
    return status != TSR_OK;
}
