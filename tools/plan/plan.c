/* plan: what a move would do, without executing it: its steps and bytes, against the least
 * possible; for all ranks, or one of a million. */
#include "files/file.h"
#include "plan/answer.h"

#include <tessera/saved.h>

#include <stdlib.h>
#include <string.h>

/* An output of the command. All outputs are complete in memory before the first is written. */
typedef struct product {
    const char *option, *path; /* NULL for standard output, and for a file that is not asked for */
    char *data;
    size_t bytes;
    tsr_new_file *file; /* the file between file_prepare() and file_publish() */
} product;

typedef struct products {
    product plan, picture, answer;
} products;

static int make_plan(const plan_answer *a, product *p)
{
    if (tsr_plan_save(a->plan, NULL, 0, &p->bytes) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    p->data = malloc(p->bytes);
    if (!p->data)
        return complain(EXIT_REFUSED, "there is no memory for a saved plan of %zu bytes", p->bytes);
    return tsr_plan_save(a->plan, p->data, p->bytes, &p->bytes) == TSR_OK ? EXIT_DONE : complain_status(EXIT_REFUSED);
}

static int make_answer(const plan_answer *a, bool json, product *p)
{
    text_buffer text = {0};
    const int status = json ? plan_write_json(a, &text) : plan_write_text(a, &text);
    p->data = text_buffer_take(&text, &p->bytes);
    if (status == EXIT_DONE && !p->data)
        return complain(EXIT_REFUSED, "there is no memory for the answer");
    return status;
}

static int make_products(const plan_answer *a, bool json, products *p)
{
    int status = make_answer(a, json, &p->answer);
    if (status == EXIT_DONE && p->plan.path)
        status = make_plan(a, &p->plan);
    if (status == EXIT_DONE && p->picture.path)
        status = plan_draw(a, &p->picture.data, &p->picture.bytes);
    return status;
}

static int write_file(product *p)
{
    return p->path ? file_prepare(p->option, p->path, p->data, p->bytes, &p->file) : EXIT_DONE;
}

static int name_file(product *p)
{
    tsr_new_file *const file = p->file;
    p->file = NULL;
    return p->path ? file_publish(p->option, p->path, file) : EXIT_DONE;
}

/* Writes the files under temporary names, then standard output, then renames the files: a failure
 * to write a file leaves standard output empty, and any failure before the renames leaves no
 * file. */
static int write_products(products *p)
{
    int status = write_file(&p->plan);
    if (status == EXIT_DONE)
        status = write_file(&p->picture);
    if (status == EXIT_DONE) {
        say_text(p->answer.data);
        status = finish_stdout();
    }
    if (status == EXIT_DONE)
        status = name_file(&p->plan);
    return status == EXIT_DONE ? name_file(&p->picture) : status;
}

static void finish_product(product *p)
{
    tsr_new_file_discard(p->file);
    free(p->data);
}

static int check_file(const product *p)
{
    return p->path ? file_check_output(p->option, p->path) : EXIT_DONE;
}

static int check_products(const products *p)
{
    if (p->plan.path && p->picture.path && strcmp(p->plan.path, p->picture.path) == 0)
        return complain(EXIT_REFUSED, "--save and --svg are both %s", p->plan.path);
    const int status = check_file(&p->plan);
    return status == EXIT_DONE ? check_file(&p->picture) : status;
}

static int answer(const tool_arguments *given, const plan_request *request)
{
    products p = {.plan = {"--save", given->value[OPT_SAVE]}, .picture = {"--svg", given->value[OPT_SVG]}};
    plan_answer a = {0};
    int status = check_products(&p);
    if (status == EXIT_DONE)
        status = plan_answer_make(request, &a);
    if (status == EXIT_DONE)
        status = make_products(&a, given->value[OPT_JSON] != NULL, &p);
    if (status == EXIT_DONE)
        status = write_products(&p);
    finish_product(&p.plan);
    finish_product(&p.picture);
    finish_product(&p.answer);
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
    .details = "Plans a move without making it: its steps; the bytes that ranks receive and send, beside the least "
               "possible and beside "
               "gathering the whole tensor and slicing it; messages, workspace, and the time by a model of the links. "
               "Nothing is run: the meshes "
               "may have any size. "
               "Without --rank all ranks are planned for, one after the other; --rank N plans for that rank alone, and "
               "lists its boxes with "
               "--json."
               "\n\nThe two meshes of --mesh and --to-mesh may be disjoint, overlap, or hold the same ranks in another "
               "order. --svg draws both "
               "layouts (tensors of at most 2 dims) and who sends what to whom (meshes of at most 64 ranks). --save "
               "writes the plan, without its "
               "schedule, for "
               "tsr_plan_load(). Files are replaced at once, or left as they were.",
    .examples =
        "  tessera plan --mesh 4x2 --shape 64x64 --from 'S(0),S(1)' --to 'S(1),S(0)'\n"
        "  tessera plan --mesh 6 --to-mesh 8 --shape 1000x64 --dtype bf16 --from 'S(0)' --to 'S(0)' --svg grow.svg\n"
        "  tessera plan --mesh 2x4 --shape 1024x1024 --from R,P --to 'R,S(0)' --mode message --ranks-per-node 4 "
        "--objective time\n"
        "  tessera plan --mesh 15 --shape 840x1024 --from 'S(0)' --to R --nodes 7,8\n"
        "  tessera plan --mesh 128x64x128 --shape 1048576x1048576 --from 'S(0),S(1),R' --to 'S(1),S(0),R' --rank 77 "
        "--json\n"
        "  tessera plan --mesh 4 --to-mesh '4@[3,2,1,0]' --shape 64 --from 'S(0)' --to 'S(0)' --relabel --save "
        "plan.tsr\n",
    .takes = TAKES(MESH) | TAKES(TO_MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO) | TAKES(MODE) |
             TAKES(OBJECTIVE) | TAKES(MAX_WORKSPACE) | TAKES(RANKS_PER_NODE) | TAKES(NODES) | TAKES(RANK) |
             TAKES(PROFILE) | TAKES(RELABEL) | TAKES(SAVE) | TAKES(SVG) | TAKES(JSON),
    .requires_all = TAKES(MESH) | TAKES(SHAPE) | TAKES(FROM) | TAKES(TO),
    .run = run_plan,
};
