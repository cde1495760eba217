#include "cli/report.h"
#include "cli/words.h"
#include "draw/svg_layout.h"
#include "draw/svg_traffic.h"
#include "plan/answer.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

#define WIDTH  1180.0
#define MARGIN 28.0
#define INSIDE (WIDTH - 2 * MARGIN)
#define SPACE  26.0

/* Where add_transfer() adds the transfers of a rank. */
typedef struct tally {
    traffic *t;
    size_t rank; /* index of the rank in traffic.ranks */
    bool sends;
} tally;

static tsr_status add_transfer(const tsr_plan_transfer *transfer, void *user)
{
    const tally *const n = user;
    const size_t peer = traffic_place(n->t, transfer->peer);
    *traffic_at(n->t, transfer->step, n->sends ? n->rank : peer, n->sends ? peer : n->rank) += transfer->bytes;
    return TSR_OK;
}

static tsr_status add_receives(const plan_request *r, int64_t rank, traffic *t)
{
    tsr_plan_options options = r->options;
    tsr_plan *plan;
    options.rank = rank;
    TSR_TRY(tsr_plan_create(r->from, r->to, &options, &plan));
    tally n = {t, traffic_place(t, rank), false};
    const tsr_status status = tsr_plan_visit_receives(plan, add_transfer, &n);
    tsr_plan_destroy(plan);
    return status;
}

/* Adds what --rank receives and sends; without it, what every rank receives. */
static tsr_status fill_traffic(const plan_answer *a, traffic *t)
{
    if (!a->one_rank) {
        for (size_t i = 0; i < t->count; i++)
            TSR_TRY(add_receives(a->request, t->ranks[i], t));
        return TSR_OK;
    }
    tally n = {t, traffic_place(t, a->request->options.rank), false};
    TSR_TRY(tsr_plan_visit_receives(a->plan, add_transfer, &n));
    n.sends = true;
    return tsr_plan_visit_sends(a->plan, add_transfer, &n);
}

static tsr_status draw_steps(svg *s, const plan_answer *a, const traffic *t, double *y)
{
    for (size_t i = 0; i < t->steps; i++) {
        char *const text = plan_step_text(a, i), *heading;
        const int length =
            text ? asprintf(&heading, "Step %zu, %s: %s", i + 1, tsr_step_op_name(a->figures.steps[i].op), text) : -1;
        free(text);
        if (length < 0)
            return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the text of a step");
        *y += SPACE + svg_traffic(s, t, i, heading, MARGIN, *y, INSIDE);
        free(heading);
    }
    return TSR_OK;
}

static tsr_status draw_traffic(svg *s, const plan_answer *a, double *y)
{
    const plan_request *const r = a->request;
    if (!traffic_possible(r->from, r->to)) {
        *y = svg_paragraph(s, MARGIN, *y, INSIDE, 11,
                           "Not drawn: who sends what to whom is drawn for meshes of at most 64 ranks.") +
             SPACE;
        return TSR_OK;
    }
    traffic t;
    TSR_TRY(traffic_create(r->from, r->to, a->figures.step_count, &t));
    tsr_status status = fill_traffic(a, &t);
    if (status == TSR_OK)
        status = draw_steps(s, a, &t, y);
    traffic_finish(&t);
    return status;
}

/* A layout as "From S(0),R on mesh 2x2", which the caller frees. */
static tsr_status name_layout(const char *which, const tsr_layout *layout, char **out)
{
    char *const mesh = mesh_text(tsr_layout_mesh(layout)), *const placements = layout_text(layout);
    char *text = NULL;
    if (mesh && placements && asprintf(&text, "%s %s on mesh %s", which, placements, mesh) < 0)
        text = NULL;
    free(mesh);
    free(placements);
    *out = text;
    return text ? TSR_OK : tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the text of a layout");
}

static tsr_status draw_layouts(svg *s, const plan_request *r, double *y)
{
    char *from = NULL, *to = NULL;
    tsr_status status = name_layout("From", r->from, &from);
    if (status == TSR_OK)
        status = name_layout("To", r->to, &to);
    if (status == TSR_OK)
        status = svg_layouts(s, (const tsr_layout *const[2]){r->from, r->to}, (const char *const[2]){from, to},
                             (svg_rect){MARGIN, *y, INSIDE, 0}, y);
    *y += SPACE;
    free(from);
    free(to);
    return status;
}

static void draw_figures(svg *s, const plan_answer *a, double *y)
{
    const tsr_plan_survey *const f = &a->figures;
    char most[BYTES_TEXT], total[BYTES_TEXT], least[BYTES_TEXT], line[4 * BYTES_TEXT + 128];
    print_bytes(f->bytes_received.max, most);
    print_bytes(f->bytes_received.total, total);
    print_bytes(f->lower_bound.total, least);
    if (a->one_rank)
        snprintf(line, sizeof line, "Rank %lld alone: it receives %s.", (long long)a->request->options.rank, total);
    else
        snprintf(line, sizeof line, "A rank receives at most %s, all together %s; the least possible is %s.", most,
                 total, least);
    *y = svg_paragraph(s, MARGIN, *y, INSIDE, 12, line) + SPACE / 2;
}

static tsr_status draw(svg *s, const plan_answer *a, const char *title, double *y)
{
    svg_text(s, MARGIN, *y, (svg_style){18, "start", INSIDE, 1}, "%s", title);
    *y += SPACE / 2;
    draw_figures(s, a, y);
    TSR_TRY(draw_layouts(s, a->request, y));
    return draw_traffic(s, a, y);
}

static tsr_status draw_page(const plan_answer *a, const char *title, char **text, size_t *bytes)
{
    svg s;
    double y = MARGIN + 14;
    svg_begin(&s);
    const tsr_status status = draw(&s, a, title, &y);
    svg_end(&s, WIDTH, y, title, text, bytes);
    if (status == TSR_OK && !*text)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the picture");
    if (status != TSR_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}

int plan_draw(const plan_answer *a, char **text, size_t *bytes)
{
    const plan_request *const r = a->request;
    char shape[SHAPE_TEXT_BYTES], title[SHAPE_TEXT_BYTES + 64];
    print_shape(tsr_layout_ndim(r->from), tsr_layout_shape(r->from), shape);
    snprintf(title, sizeof title, "How a tensor moves: %s %s", shape, tsr_dtype_name(tsr_layout_dtype(r->from)));
    return draw_page(a, title, text, bytes) == TSR_OK ? EXIT_DONE : complain_status(EXIT_REFUSED);
}
