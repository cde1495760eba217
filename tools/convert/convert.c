#include "cli/parse.h"
#include "cli/report.h"

#include <tessera/sharding.h>

#include <stdlib.h>

static int parse_format(const char *option, const char *text, tsr_sharding_format *out)
{
    if (tsr_sharding_format_parse(text, out) == TSR_OK)
        return EXIT_DONE;
    return complain(EXIT_USAGE, "%s: %s", option, tsr_status_message());
}

/* Text that does not parse is told apart from text that is understood but refused. */
static int refuse(tsr_status status)
{
    return complain_status(status == TSR_ERROR_ARGUMENT ? EXIT_USAGE : EXIT_REFUSED);
}

static int print_converted(const tsr_layout *layout, tsr_sharding_format to)
{
    size_t length;
    tsr_status status = tsr_sharding_print(layout, to, NULL, 0, &length);
    if (status != TSR_OK)
        return refuse(status);
    char *const text = malloc(length + 1);
    if (!text)
        return complain(EXIT_REFUSED, "there is no memory for the text");
    status = tsr_sharding_print(layout, to, text, length + 1, &length);
    if (status == TSR_OK)
        say("%s\n", text);
    free(text);
    return status == TSR_OK ? EXIT_DONE : refuse(status);
}

static int convert(const tool_arguments *given, const tsr_mesh *mesh, const tensor_shape *shape, tsr_dtype dtype)
{
    tsr_sharding_format from, to;
    tsr_layout *layout;
    int status = parse_format("--from", given->value[OPT_FROM], &from);
    if (status == EXIT_DONE)
        status = parse_format("--to", given->value[OPT_TO], &to);
    if (status != EXIT_DONE)
        return status;
    const tsr_status read = tsr_sharding_parse(from, given->operand[0], mesh, shape->ndim, shape->size, dtype, &layout);
    if (read != TSR_OK)
        return refuse(read);
    status = print_converted(layout, to);
    tsr_layout_destroy(layout);
    return status;
}

static int run_convert(const tool_arguments *given)
{
    tensor_shape shape;
    tsr_dtype dtype;
    tsr_mesh *mesh = NULL;
    int status = parse_shape(given->value[OPT_SHAPE], &shape);
    if (status == EXIT_DONE)
        status = parse_dtype(given->value[OPT_DTYPE], &dtype);
    if (status == EXIT_DONE)
        status = parse_mesh(given->value[OPT_MESH], &mesh);
    if (status == EXIT_DONE)
        status = convert(given, mesh, &shape, dtype);
    tsr_mesh_destroy(mesh);
    return status;
}

const tool_command convert_command = {
    .name = "convert",
    .summary = "a sharding's text in the words of another framework",
    .details = "Reads TEXT, in the format --from, as a layout of a tensor on the mesh, and prints it in the format "
               "--to. Formats: tessera (placements), hlo1, hlo and hlo3 (XLA's HLO shardings of versions 1, 2 and 3), "
               "sdy (Shardy), jax (PartitionSpec), torch (DTensor's placements), sbp (OneFlow), tf (TensorFlow's "
               "DTensor) and mlir (the shard dialect). What a format cannot say is refused.",
    .examples = "  tessera convert --mesh a=2,b=4 --shape 8x8 --from jax --to hlo \"PartitionSpec('b', 'a')\"\n"
                "  tessera convert --mesh a=2,b=2 --shape 8x8 --from hlo --to sdy '{devices=[2,2]<=[2,2]T(1,0)}'\n"
                "  tessera convert --mesh 2x2 --shape 9x6 --from torch --to tessera '(Shard(0), Shard(0))'\n",
    .takes = TAKES(MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO),
    .requires_all = TAKES(MESH) | TAKES(SHAPE) | TAKES(FROM) | TAKES(TO),
    .operands = "TEXT",
    .operand_count = 1,
    .run = run_convert,
};
