#include "told.h"

#include "layouts.h"
#include "support.h"
#include "told_elements.h"
#include "told_story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void told_wrong(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fail_msg("%s\ntessera plan %s", text, test_case_text());
    abort();
}

static void equal(const char *what, int64_t rank, int64_t value, int64_t wanted)
{
    if (value != wanted)
        told_wrong("%s of rank %lld is %lld, not %lld", what, (long long)rank, (long long)value, (long long)wanted);
}

static void name_case(const told_case *c)
{
    char shape[128], src_mesh[256], dst_mesh[256], from[512], to[512], nodes[16 * ORACLE_MAX_RANKS] = "";
    size_t length = 0;
    for (int64_t r = 0; c->nodes && r < c->world; r++)
        length += (size_t)snprintf(nodes + length, sizeof nodes - length, "%s%lld", r ? "," : " --nodes [",
                                   (long long)c->node[r]);
    test_case("--mesh %s --to-mesh %s --shape %s --dtype %s --from '%s' --to '%s' --mode %s --objective %s%s%s",
              oracle_print_mesh(&c->src.mesh, src_mesh, sizeof src_mesh),
              oracle_print_mesh(&c->dst.mesh, dst_mesh, sizeof dst_mesh),
              oracle_print_shape(c->src.ndim, c->src.shape, shape, sizeof(shape)), oracle_dtype_name(c->src.dtype),
              oracle_print_placements(c->src.placements, c->src.mesh.ndim, from, sizeof from),
              oracle_print_placements(c->dst.placements, c->dst.mesh.ndim, to, sizeof to),
              c->mode == TSR_MODE_MESSAGE ? "message" : "direct", c->objective == TSR_OBJECTIVE_TIME ? "time" : "bytes",
              nodes, c->nodes ? "]" : "");
}

/* The source's mesh dims in which the coordinates of two ranks differ, as bits; none for a move
 * between two meshes. */
static unsigned differing(const story *s, int64_t a, int64_t b)
{
    const oracle_mesh *mesh = &s->c->src.mesh;
    int64_t x[TSR_MAX_DIMS], y[TSR_MAX_DIMS];
    unsigned dims = 0;
    if (!s->move.same_mesh)
        return 0;
    oracle_mesh_coordinate(mesh, oracle_mesh_position(mesh, a), x);
    oracle_mesh_coordinate(mesh, oracle_mesh_position(mesh, b), y);
    for (int m = 0; m < mesh->ndim; m++)
        dims |= x[m] != y[m] ? 1U << m : 0;
    return dims;
}

typedef struct step_sum {
    int64_t bytes, messages;
    unsigned mesh_dims;
} step_sum;

static step_sum sum_step(const story *s, int64_t rank, const boxes *list, size_t step)
{
    step_sum sum = {0};
    int64_t last = -1;
    for (size_t i = 0; i < list->count; i++) {
        const tsr_plan_transfer *t = &list->at[i];
        if (t->step != step)
            continue;
        sum.bytes += t->bytes;
        sum.messages += t->peer != last;
        sum.mesh_dims |= differing(s, rank, t->peer);
        last = t->peer;
    }
    return sum;
}

static void check_steps(const story *s, int64_t rank)
{
    const tsr_plan *plan = s->plans[rank];
    equal("the number of steps", rank, (int64_t)tsr_plan_step_count(plan), (int64_t)s->survey.step_count);
    for (size_t i = 0; i < s->survey.step_count; i++) {
        tsr_plan_step step;
        expect_ok(tsr_plan_step_at(plan, i, &step));
        const step_sum in = sum_step(s, rank, &s->receives[rank], i), out = sum_step(s, rank, &s->sends[rank], i);
        equal("the op", rank, step.op, s->survey.steps[i].op);
        equal("bytes_received of a step", rank, step.bytes_received, in.bytes);
        equal("bytes_sent of a step", rank, step.bytes_sent, out.bytes);
        equal("messages_received of a step", rank, step.messages_received, in.messages);
        equal("messages_sent of a step", rank, step.messages_sent, out.messages);
        equal("mesh_dims of a step", rank, step.mesh_dims, in.mesh_dims | out.mesh_dims);
        if ((step.op == TSR_STEP_COPY || step.op == TSR_STEP_FILL) && step.bytes_received + step.bytes_sent > 0)
            told_wrong("rank %lld receives in a %s", (long long)rank, tsr_step_op_name(step.op));
    }
}

/* Bytes of gathering and slicing: a ring's all-reduce of each source Partial dim, and every element
 * that is not the rank's own. */
static int64_t gather_and_slice(const story *s, int64_t rank)
{
    const oracle_layout *src = &s->c->src;
    const int64_t bytes = (int64_t)oracle_bytes(src->dtype);
    int64_t total = bytes * s->elements;
    if (oracle_mesh_position(&s->c->dst.mesh, rank) < 0)
        return 0;
    if (oracle_mesh_position(&src->mesh, rank) < 0)
        return total;
    oracle_shard shard;
    oracle_shard_create(src, rank, &shard);
    const int64_t local = shard.count * bytes;
    oracle_shard_destroy(&shard);
    for (int m = 0; m < src->mesh.ndim; m++)
        if (src->placements[m].kind == TSR_PARTIAL)
            total += 2 * (src->mesh.shape[m] - 1) * local / src->mesh.shape[m];
    return total - local;
}

static void check_ratio(int64_t rank, double ratio, int64_t received, int64_t bound)
{
    const double wanted = bound > 0 ? (double)received / (double)bound : bound == 0 && received == 0 ? 1 : -1;
    if (ratio != wanted)
        told_wrong("ratio of rank %lld is %g, not %g", (long long)rank, ratio, wanted);
}

static void check_figures(const story *s, int64_t rank, bool exact, int64_t bound)
{
    const tsr_plan_figures *f = &s->figures[rank];
    step_sum in = {0}, out = {0};
    for (size_t i = 0; i < s->survey.step_count; i++) {
        const step_sum a = sum_step(s, rank, &s->receives[rank], i), b = sum_step(s, rank, &s->sends[rank], i);
        in.bytes += a.bytes;
        in.messages += a.messages;
        out.bytes += b.bytes;
        out.messages += b.messages;
    }
    equal("bytes_received", rank, f->bytes_received, in.bytes);
    equal("bytes_received", rank, tsr_plan_bytes_received(s->plans[rank]), in.bytes);
    equal("bytes_sent", rank, f->bytes_sent, out.bytes);
    equal("bytes_sent", rank, tsr_plan_bytes_sent(s->plans[rank]), out.bytes);
    equal("messages_received", rank, f->messages_received, in.messages);
    equal("messages_sent", rank, f->messages_sent, out.messages);
    equal("lower_bound", rank, f->lower_bound, exact ? bound : -1);
    if (exact)
        equal("bytes_received, the bound being that,", rank, f->bytes_received, bound);
    equal("workspace_bytes", rank, (int64_t)f->workspace_bytes, (int64_t)tsr_plan_workspace_bytes(s->plans[rank]));
    equal("gather_and_slice", rank, f->gather_and_slice, gather_and_slice(s, rank));
    check_ratio(rank, f->ratio, f->bytes_received, f->lower_bound);
}

static void check_sum(const char *what, const tsr_plan_sum *sum, const story *s, size_t offset)
{
    int64_t max = 0, total = 0;
    for (int64_t r = 0; r < s->c->world; r++) {
        int64_t value;
        memcpy(&value, (const char *)&s->figures[r] + offset, sizeof value);
        max = value > max ? value : max;
        total += value;
    }
    if (sum->max != max || sum->total != total)
        told_wrong("%s over ranks is %lld at most and %lld in all, not %lld and %lld", what, (long long)sum->max,
                   (long long)sum->total, (long long)max, (long long)total);
}

#define CHECK_SUM(s, field) check_sum(#field, &(s)->survey.field, s, offsetof(tsr_plan_figures, field))

static void check_survey(const story *s, bool exact, int64_t bound)
{
    int64_t ranks = 0, messages_in = 0, messages_out = 0, busiest = -1;
    size_t workspace = 0;
    for (int64_t r = 0; r < s->c->world; r++) {
        const tsr_plan_figures *f = &s->figures[r];
        ranks += oracle_mesh_position(&s->c->src.mesh, r) >= 0 || oracle_mesh_position(&s->c->dst.mesh, r) >= 0;
        messages_in = f->messages_received > messages_in ? f->messages_received : messages_in;
        messages_out = f->messages_sent > messages_out ? f->messages_sent : messages_out;
        workspace = f->workspace_bytes > workspace ? f->workspace_bytes : workspace;
        if (f->bytes_received > (busiest < 0 ? 0 : s->figures[busiest].bytes_received))
            busiest = r;
    }
    CHECK_SUM(s, bytes_received);
    CHECK_SUM(s, bytes_sent);
    CHECK_SUM(s, bytes_kept);
    CHECK_SUM(s, gather_and_slice);
    if (exact)
        CHECK_SUM(s, lower_bound);
    else
        equal("the largest lower_bound", -1, s->survey.lower_bound.max, -1);
    equal("the number", -1, s->survey.ranks, ranks);
    equal("the largest messages_received", -1, s->survey.messages_received, messages_in);
    equal("the largest messages_sent", -1, s->survey.messages_sent, messages_out);
    equal("busiest_rank", -1, s->survey.busiest_rank, busiest);
    equal("the largest workspace_bytes", -1, (int64_t)s->survey.workspace_bytes, (int64_t)workspace);
    equal("the total lower_bound", -1, s->survey.lower_bound.total, bound);
    equal("the total sent", -1, s->survey.bytes_sent.total, s->survey.bytes_received.total);
    check_ratio(-1, s->survey.ratio, s->survey.bytes_received.total, bound);
    if (s->c->objective == TSR_OBJECTIVE_BYTES && s->survey.bytes_received.total != bound)
        told_wrong("%lld bytes are received, and the bound is %lld", (long long)s->survey.bytes_received.total,
                   (long long)bound);
}

static void check_survey_steps(const story *s)
{
    for (size_t i = 0; i < s->survey.step_count; i++) {
        int64_t max = 0, total = 0;
        unsigned dims = 0;
        for (int64_t r = 0; r < s->c->world; r++) {
            const step_sum in = sum_step(s, r, &s->receives[r], i);
            max = in.bytes > max ? in.bytes : max;
            total += in.bytes;
            dims |= in.mesh_dims;
        }
        equal("bytes_received.max over ranks of a step", -1, s->survey.steps[i].bytes_received.max, max);
        equal("bytes_received.total over ranks of a step", -1, s->survey.steps[i].bytes_received.total, total);
        equal("mesh_dims over ranks of a step", -1, s->survey.steps[i].mesh_dims, dims);
    }
}

/* The load of one kind of link: the number of steps that use it, and bytes. */
typedef struct load {
    int steps;
    double bytes;
} load;

static double link_seconds(const tsr_link *link, load l)
{
    return l.steps > 0 ? l.steps * link->latency + l.bytes / link->bandwidth : 0;
}

static double model_seconds(const told_case *c, load inside, load between)
{
    const double near = link_seconds(&c->profile.inside, inside), far = link_seconds(&c->profile.between, between);
    return near > far ? near : far;
}

static int64_t node_of(const story *s, int64_t rank)
{
    return s->c->nodes ? s->c->node[rank] : 0;
}

/* Bytes that a rank receives in a step: from all peers, or, where `crossing`, from those on other
 * nodes. */
static double received(const story *s, int64_t rank, size_t step, bool crossing)
{
    double bytes = 0;
    for (size_t i = 0; i < s->receives[rank].count; i++) {
        const tsr_plan_transfer *t = &s->receives[rank].at[i];
        if (t->step == step && (!crossing || node_of(s, t->peer) != node_of(s, rank)))
            bytes += (double)t->bytes;
    }
    return bytes;
}

typedef bool chosen(const story *s, int64_t rank, int64_t like);

static bool any_rank(const story *s, int64_t rank, int64_t like)
{
    (void)s, (void)rank, (void)like;
    return true;
}

static bool same_rank(const story *s, int64_t rank, int64_t like)
{
    (void)s;
    return rank == like;
}

static bool same_node(const story *s, int64_t rank, int64_t like)
{
    return node_of(s, rank) == node_of(s, like);
}

/* The load of the chosen ranks together: the number of steps in which any of them receives, and
 * the bytes of all steps. */
static load load_of(const story *s, chosen *is_chosen, int64_t like, bool crossing)
{
    load all = {0, 0};
    for (size_t i = 0; i < s->survey.step_count; i++) {
        double bytes = 0;
        for (int64_t r = 0; r < s->c->world; r++)
            bytes += is_chosen(s, r, like) ? received(s, r, i, crossing) : 0;
        all.steps += bytes > 0;
        all.bytes += bytes;
    }
    return all;
}

static void close_to(const char *what, int64_t rank, double value, double wanted)
{
    /* Both sides do the same few additions and divisions, possibly in another order, each with a
     * relative rounding error of at most 2^-53. */
    if (value < wanted * (1 - 1e-14) || value > wanted * (1 + 1e-14))
        told_wrong("%s of rank %lld are %.17g, not %.17g", what, (long long)rank, value, wanted);
}

/* The number of steps of all ranks, with the bytes of the busiest rank or node. */
static load busiest(const story *s, chosen *is_chosen, bool crossing)
{
    load most = {load_of(s, any_rank, 0, crossing).steps, 0};
    for (int64_t r = 0; r < s->c->world; r++) {
        const double bytes = load_of(s, is_chosen, r, crossing).bytes;
        most.bytes = bytes > most.bytes ? bytes : most.bytes;
    }
    return most;
}

/* Checks `seconds` of plans without all-reduce steps, whose steps are all one phase. */
static void check_seconds(const story *s)
{
    for (size_t i = 0; i < s->survey.step_count; i++)
        if (s->survey.steps[i].op == TSR_STEP_ALL_REDUCE)
            return;
    close_to("seconds", -1, s->survey.seconds,
             model_seconds(s->c, busiest(s, same_rank, false), busiest(s, same_node, true)));
    for (int64_t r = 0; r < s->c->world; r++)
        close_to("seconds", r, s->figures[r].seconds,
                 model_seconds(s->c, load_of(s, same_rank, r, false), load_of(s, same_rank, r, true)));
}

void told_check(const told_case *c)
{
    int64_t bound, bounds[ORACLE_MAX_RANKS];
    story s;
    name_case(c);
    story_begin(&s, c);
    const bool exact = oracle_lower_bound(&s.move, c->world, &bound, bounds);
    for (int64_t r = 0; r < c->world; r++) {
        check_steps(&s, r);
        check_figures(&s, r, exact, bounds[r]);
    }
    check_survey(&s, exact, bound);
    check_survey_steps(&s);
    check_seconds(&s);
    elements_check(&s);
    story_end(&s);
}
