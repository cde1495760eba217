/* tessera program: what a program does and costs, and its run. */
#include "cli/report.h"
#include "files/file.h"
#include "program/draw.h"
#include "program/run.h"

#include <stdlib.h>

/* What the command prints, and the picture. */
typedef struct products {
    char *answer, *picture;
    size_t picture_bytes;
    tsr_new_file *file;
} products;

static int make_products(const tool_arguments *given, const program_count *c, products *p)
{
    text_buffer text = {0};
    int status = given->value[OPT_JSON] ? program_to_json(c, &text) : program_to_text(c, &text);
    p->answer = text_buffer_take(&text, NULL);
    if (status == EXIT_DONE && given->value[OPT_SVG])
        status = program_draw(c, &p->picture, &p->picture_bytes);
    return status;
}

/* Writes the picture under another name, then standard output, then renames the picture. */
static int write_products(const char *path, products *p)
{
    int status = path ? file_prepare("--svg", path, p->picture, p->picture_bytes, &p->file) : EXIT_DONE;
    if (status == EXIT_DONE) {
        say_text(p->answer);
        status = finish_stdout();
    }
    if (status == EXIT_DONE && path) {
        tsr_new_file *const file = p->file;
        p->file = NULL;
        status = file_publish("--svg", path, file);
    }
    return status;
}

static int answer(const tool_arguments *given, const program_count *c)
{
    products p = {.answer = NULL};
    int status = make_products(given, c, &p);
    if (status == EXIT_DONE)
        status = write_products(given->value[OPT_SVG], &p);
    tsr_new_file_discard(p.file);
    free(p.answer);
    free(p.picture);
    return status;
}

static int check_options(const tool_arguments *given)
{
    if ((given->value[OPT_INPUTS] != NULL) != (given->value[OPT_OUTPUT] != NULL))
        return complain(EXIT_USAGE, "program runs with --inputs and --output, or without both");
    if (given->value[OPT_INPUTS] && given->value[OPT_RANK])
        return complain(EXIT_USAGE, "--rank tells of one rank, but --inputs runs all; give one of them");
    return given->value[OPT_SVG] ? file_check_output("--svg", given->value[OPT_SVG]) : EXIT_DONE;
}

static int run_program(const tool_arguments *given)
{
    program_count c = {.count = 0};
    program_request r = {.path = NULL};
    int status = check_options(given);
    if (status == EXIT_DONE)
        status = program_request_read(given, &r);
    if (status == EXIT_DONE)
        status = program_count_make(&r, &c);
    if (status == EXIT_DONE && given->value[OPT_INPUTS])
        status = program_run(given, &c);
    if (status == EXIT_DONE)
        status = answer(given, &c);
    program_count_finish(&c);
    program_request_finish(&r);
    return status;
}

const tool_command program_command = {
    .name = "program",
    .summary = "what a program of ops does to layouts and costs, or its run",
    .details =
        "Reads a program as JSON: values, ops in order, outputs, gradients. Says for each op the layouts of its "
        "results, and what is redistributed, for which op, with the bytes that ranks receive and the time by the cost "
        "model; and memory. --policy says what the program may put in by itself. Nothing is run: the mesh may have any "
        "size. Without --rank all ranks are counted, one after the other; the first alone where there are more than "
        "4096.\n\nWith --inputs it also runs: the whole tensors NAME.npy of inputs, parameters and states are "
        "distributed by their placements, and the whole outputs and states are written to --output as NAME.npy. "
        "--svg draws ops from top to bottom, with layouts, and what moves.",
    .examples = "  tessera program mlp.json --mesh dp=2,tp=2\n"
                "  tessera program mlp.json --mesh 128x8192 --rank 77 --json\n"
                "  tessera program mlp.json --mesh 2 --inputs tensors --output results\n",
    .operands = "FILE.json",
    .operand_count = 1,
    .output = "a folder, made if need be, for NAME.npy, each whole output",
    .takes = TAKES(MESH) | TAKES(INPUTS) | TAKES(OUTPUT) | TAKES(POLICY) | TAKES(RANK) | TAKES(SVG) | TAKES(JSON),
    .requires_all = TAKES(MESH),
    .run = run_program,
};
