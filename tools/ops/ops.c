/* tessera ops: the table of ops, and one case of an op without data or with. */
#include "ops/answer.h"

static int check_options(const tool_arguments *given)
{
    if (given->operand_count != 1)
        return complain(EXIT_USAGE, "--mesh explains one op: give its name; 'tessera ops' lists them");
    if ((given->value[OPT_INPUT] != NULL) != (given->value[OPT_OUTPUT] != NULL))
        return complain(EXIT_USAGE, "ops runs with --input, for each operand, and --output, or without both");
    if (given->value[OPT_GRADIENT] && !given->value[OPT_INPUT])
        return complain(EXIT_USAGE, "--gradient needs --input");
    return EXIT_DONE;
}

static int run_ops(const tool_arguments *given)
{
    if (!given->value[OPT_MESH])
        return ops_list(given);
    int status = check_options(given);
    if (status != EXIT_DONE)
        return status;
    ops_case c;
    status = ops_case_make(given, &c);
    if (status == EXIT_DONE && given->value[OPT_OUTPUT])
        status = ops_run(given, &c);
    if (status == EXIT_DONE)
        status = ops_explain(given, &c);
    ops_case_finish(&c);
    return status == EXIT_DONE ? finish_stdout() : status;
}

const tool_command ops_command = {
    .name = "ops",
    .summary = "list the ops, explain what one does to layouts, or run it",
    .details =
        "Without --mesh: the rows of the table of ops, or those named, with their rules and attributes. With --mesh "
        "and "
        "an --operand for each operand, in order: the layouts of the results and of the gradients, what must move "
        "first (if --policy allows it), the bytes and the time by the cost model, and the rule as Shardy writes it. "
        "With an --input for each operand it also runs: whole tensors are distributed by the operands' placements, and "
        "result-N.npy is the whole result N; with the --gradient of the result, gradient-N.npy is that of operand N.",
    .examples = "  tessera ops softmax gelu\n"
                "  tessera ops add --mesh 4 --operand '8x6:f32:S(0)' --operand '6:f32:R'\n"
                "  tessera ops softmax --mesh 2x2 --operand '4x8:f32:S(0),S(1)' --attribute dim=1 --json\n"
                "  tessera ops mul --mesh 2 --operand '4x8:f32:S(0)' --operand '4x8:f32:S(1)' --policy allow "
                "--input x.npy --input y.npy --output out\n",
    .operands = "[NAME ..]",
    .optional_operands = 64,
    .output = "a folder, made if need be, for result-N.npy and gradient-N.npy",
    .takes = TAKES(MESH) | TAKES(OPERAND) | TAKES(ATTRIBUTE) | TAKES(RESULT) | TAKES(POLICY) | TAKES(GRADIENT) |
             TAKES(INPUT) | TAKES(OUTPUT) | TAKES(JSON),
    .repeats = TAKES(OPERAND) | TAKES(ATTRIBUTE) | TAKES(INPUT) | TAKES(GRADIENT),
    .run = run_ops,
};
