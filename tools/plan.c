/* What a redistribution would do, told before it is done: steps, bytes, how far from the least possible; for all ranks, or one of a
 * million. */
#include "file.h"
#include "plan_answer.h"

#include <stdlib.h>
#include <string.h>
#include <tessera/saved.h>

/** A file that the command writes, ready before the first byte of any is written. */
typedef struct product {
    const char *option, *path;
    char *data;
    size_t bytes;
} product;

static int save(const plan_answer *a, product *p)
{
    if (tsr_plan_save(a->plan, NULL, 0, &p->bytes) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    p->data = malloc(p->bytes);
    if (p->data == NULL)
        return complain(EXIT_REFUSED, "there is no memory for a saved plan of %zu bytes", p->bytes);
    return tsr_plan_save(a->plan, p->data, p->bytes, &p->bytes) == TSR_OK ? EXIT_DONE : complain_status(EXIT_REFUSED);
}

static int make_products(const plan_answer *a, product *plan, product *picture)
{
    int status = plan->path != NULL ? save(a, plan) : EXIT_DONE;
    if (status == EXIT_DONE && picture->path != NULL)
        status = plan_draw(a, &picture->data, &picture->bytes);
    if (status == EXIT_DONE && plan->path != NULL)
        status = file_replace(plan->option, plan->path, plan->data, plan->bytes);
    if (status == EXIT_DONE && picture->path != NULL)
        status = file_replace(picture->option, picture->path, picture->data, picture->bytes);
    free(plan->data);
    free(picture->data);
    return status;
}

static int check_products(const product *plan, const product *picture)
{
    if (plan->path != NULL && picture->path != NULL && strcmp(plan->path, picture->path) == 0)
        return complain(EXIT_REFUSED, "--save and --svg are both %s", plan->path);
    const int status = plan->path != NULL ? file_check_output(plan->option, plan->path) : EXIT_DONE;
    return status == EXIT_DONE && picture->path != NULL ? file_check_output(picture->option, picture->path) : status;
}

static int answer(const tool_arguments *given, const plan_request *request)
{
    product plan = {"--save", given->value[OPT_SAVE], NULL, 0}, picture = {"--svg", given->value[OPT_SVG], NULL, 0};
    plan_answer a = {0};
    int status = check_products(&plan, &picture);
    if (status == EXIT_DONE)
        status = plan_answer_make(request, &a);
    if (status == EXIT_DONE)
        status = make_products(&a, &plan, &picture);
    if (status == EXIT_DONE)
        status = given->value[OPT_JSON] != NULL ? plan_print_json(&a) : plan_print_text(&a);
    plan_answer_finish(&a);
    return status;
}

static int run_plan(const tool_arguments *given)
{
    plan_request request;
    int status = plan_request_read(given, NULL, &request);
    if (status == EXIT_DONE)
        status = answer(given, &request);
    plan_request_finish(&request);
    return status;
}

const tool_command plan_command = {
    .name = "plan",
    .summary = "what a redistribution would do: steps, bytes, the least possible",
    .details =
        "Plans a move without making it: its steps; the bytes that ranks receive and send, beside the least possible and beside "
        "gathering the whole tensor and slicing it; messages, workspace, and the time by a model of the links. Nothing is run: the meshes "
        "may have any size. "
        "Without --rank all ranks are planned for, one after the other; --rank N plans for that rank alone, and lists its boxes with "
        "--json."
        "\n\nThe two meshes of --mesh and --to-mesh may be disjoint, overlap, or hold the same ranks in another order. --svg draws both "
        "layouts (tensors of at most 2 dims) and who sends what to whom (meshes of at most 64 ranks). --save writes the plan, without its "
        "schedule, for "
        "tsr_plan_load(). Files are replaced at once, or left as they were.",
    .examples = "  tessera plan --mesh 4x2 --shape 64x64 --from 'S(0),S(1)' --to 'S(1),S(0)'\n"
                "  tessera plan --mesh 6 --to-mesh 8 --shape 1000x64 --dtype bf16 --from 'S(0)' --to 'S(0)' --svg grow.svg\n"
                "  tessera plan --mesh 2x4 --shape 1024x1024 --from R,P --to 'R,S(0)' --mode message --ranks-per-node 4 --objective time\n"
                "  tessera plan --mesh 128x64x128 --shape 1048576x1048576 --from 'S(0),S(1),R' --to 'S(1),S(0),R' --rank 77 --json\n"
                "  tessera plan --mesh 4 --to-mesh '4@[3,2,1,0]' --shape 64 --from 'S(0)' --to 'S(0)' --relabel --save plan.tsr\n",
    .takes = TAKES(MESH) | TAKES(TO_MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO) | TAKES(MODE) | TAKES(OBJECTIVE) |
             TAKES(MAX_WORKSPACE) | TAKES(RANKS_PER_NODE) | TAKES(RANK) | TAKES(PROFILE) | TAKES(RELABEL) | TAKES(SAVE) | TAKES(SVG) |
             TAKES(JSON),
    .requires_all = TAKES(MESH) | TAKES(SHAPE) | TAKES(FROM) | TAKES(TO),
    .run = run_plan,
};
