#include "program/request.h"

#include "files/file.h"

#include <tessera/status.h>

#include <stdlib.h>
#include <string.h>

/* The most bytes of a program's text. */
#define MOST_BYTES ((size_t)64 << 20)

static int read_context(const tool_arguments *given, program_request *r)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    const int status = parse_policy(given->value[OPT_POLICY], &options.policy);
    if (status != EXIT_DONE)
        return status;
    if (options.policy == TSR_POLICY_WARN)
        options.log_level = TSR_LOG_WARN;
    return tsr_context_create(&options, &r->context) == TSR_OK ? EXIT_DONE : complain_status(EXIT_REFUSED);
}

static int read_rank(const tool_arguments *given, program_request *r)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside = 0;
    if (!given->value[OPT_RANK])
        return EXIT_DONE;
    r->one_rank = true;
    const int status = parse_index("--rank", given->value[OPT_RANK], &r->rank);
    if (status != EXIT_DONE)
        return status;
    if (tsr_mesh_coordinate_of(r->mesh, r->rank, coordinate, &inside) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    return inside ? EXIT_DONE
                  : complain(EXIT_REFUSED, "--rank %lld is not a rank of mesh %s", (long long)r->rank,
                             given->value[OPT_MESH]);
}

/* Text that is no program does not parse; one that layouts and rules refuse is understood. */
static int read_program(program_request *r)
{
    char *text;
    const int status = file_read_text("the program", r->path, MOST_BYTES, &text);
    if (status != EXIT_DONE)
        return status;
    const tsr_status parsed = tsr_program_parse(r->path, text, strlen(text), r->mesh, &r->program);
    free(text);
    return parsed == TSR_OK ? EXIT_DONE : complain_status(parsed == TSR_ERROR_IO ? EXIT_USAGE : EXIT_REFUSED);
}

int program_request_read(const tool_arguments *given, program_request *out)
{
    *out = (program_request){.path = given->operand[0]};
    int status = read_context(given, out);
    if (status == EXIT_DONE)
        status = parse_mesh_in(out->context, "--mesh", given->value[OPT_MESH], &out->mesh);
    if (status == EXIT_DONE)
        status = read_rank(given, out);
    return status == EXIT_DONE ? read_program(out) : status;
}

void program_request_finish(program_request *r)
{
    tsr_program_destroy(r->program);
    tsr_mesh_destroy(r->mesh);
    tsr_context_destroy(r->context);
}

void print_value(const tsr_program *program, tsr_value value, char text[VALUE_NAME_BYTES])
{
    const char *const label = tsr_value_label(program, value);
    if (label)
        snprintf(text, VALUE_NAME_BYTES, "%s", label);
    else
        snprintf(text, VALUE_NAME_BYTES, "%%%d", value);
}

bool is_varying(const tsr_program *program, tsr_value value)
{
    return tsr_value_varying(program, value) != 0;
}
