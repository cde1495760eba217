#include "plans.h"

#include <tessera/mesh.h>
#include <tessera/saved.h>
#include <tessera/sys/bytes.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What a compiler might find in two layers that run on 2 x 2 devices, data- and tensor-parallel. */
const move_text program_moves[] = {
    {"activations", "dp=2,tp=2", "S(0),R", "R,S(1)", {96, 65}},
    {"sums", "dp=2,tp=2", "S(0),P", "S(0),S(0)", {97, 64}},
    {"weights", "dp=2,tp=2", "S(1),S(0)", "R,R", {31, 50}},
    {NULL, NULL, NULL, NULL, {0, 0}},
};

/* The runtime's own frame around all plans: its magic and its version. Count this up whenever what
 * is inside changes. */
static const tsr_frame frame = {.what = "file of plans", .magic = "RUNPLANS", .oldest = 1, .newest = 1};

/* The plan of a move, on no rank: its bytes are those of every rank. */
static tsr_status make_plan(tsr_context *context, const move_text *move, tsr_plan **out)
{
    tsr_mesh *mesh = NULL;
    tsr_layout *from = NULL, *to = NULL;
    tsr_status status = tsr_mesh_parse(NULL, context, move->mesh, &mesh);
    if (status == TSR_OK)
        status = tsr_layout_parse(mesh, move->from, 2, move->shape, TSR_F32, &from);
    if (status == TSR_OK)
        status = tsr_layout_parse(mesh, move->to, 2, move->shape, TSR_F32, &to);
    if (status == TSR_OK)
        status = tsr_plan_create(from, to, NULL, out);
    tsr_layout_destroy(to);
    tsr_layout_destroy(from);
    tsr_mesh_destroy(mesh);
    return status;
}

/* A record: name, bytes, plan. */
static tsr_status write_move(tsr_context *context, const move_text *move, tsr_writer *writer)
{
    tsr_plan *plan;
    size_t size = 0;
    void *bytes = NULL;
    TSR_TRY(make_plan(context, move, &plan));
    tsr_status status = tsr_plan_save(plan, NULL, 0, &size);
    if (status == TSR_OK)
        status = tsr_allocate(context, size, &bytes);
    if (status == TSR_OK)
        status = tsr_plan_save(plan, bytes, size, &size);
    if (status == TSR_OK) {
        tsr_write_text(writer, move->name);
        tsr_write_u64(writer, size);
        tsr_write_bytes(writer, bytes, size);
    }
    tsr_release(context, bytes);
    tsr_plan_destroy(plan);
    return status;
}

/* Writes the whole file; `bytes` is its size, or 0 while it is counted. */
static tsr_status write_all(tsr_context *context, const move_text *moves, tsr_writer *writer, size_t bytes)
{
    uint32_t count = 0;
    while (moves[count].name)
        count++;
    tsr_write_frame(writer, &frame, frame.newest, bytes);
    tsr_write_u32(writer, count);
    for (uint32_t m = 0; m < count; m++)
        TSR_TRY(write_move(context, &moves[m], writer));
    tsr_write_frame_end(writer);
    return TSR_OK;
}

static tsr_status fail(const char *path)
{
    return tsr_status_set(TSR_ERROR_IO, "%s: %s", path, strerror(errno));
}

static tsr_status write_file(const char *path, const void *bytes, size_t size)
{
    FILE *const file = fopen(path, "wb");
    if (!file)
        return fail(path);
    const bool written = fwrite(bytes, 1, size, file) == size;
    return fclose(file) == 0 && written ? TSR_OK : fail(path);
}

tsr_status plans_write(tsr_context *context, const move_text *moves, const char *path)
{
    tsr_writer counted = {.buffer = NULL};
    void *bytes;
    TSR_TRY(write_all(context, moves, &counted, 0));
    TSR_TRY(tsr_allocate(context, counted.length, &bytes));
    tsr_writer writer = {.buffer = bytes, .capacity = counted.length};
    tsr_status status = write_all(context, moves, &writer, counted.length);
    if (status == TSR_OK)
        status = write_file(path, bytes, writer.length);
    tsr_release(context, bytes);
    return status;
}

static tsr_status read_open(FILE *file, tsr_context *context, const char *path, plans *p)
{
    if (fseek(file, 0, SEEK_END) != 0)
        return fail(path);
    const long size = ftell(file);
    if (size < 0 || fseek(file, 0, SEEK_SET) != 0)
        return fail(path);
    p->size = (size_t)size;
    TSR_TRY(tsr_allocate(context, p->size, &p->bytes));
    return fread(p->bytes, 1, p->size, file) == p->size ? TSR_OK : fail(path);
}

static tsr_status read_file(tsr_context *context, const char *path, plans *p)
{
    FILE *const file = fopen(path, "rb");
    if (!file)
        return fail(path);
    const tsr_status status = read_open(file, context, path, p);
    fclose(file);
    return status;
}

static tsr_status refuse(const char *name, const char *why)
{
    return tsr_status_set(TSR_ERROR_UNSUPPORTED, "move \"%s\" %s", name, why);
}

/* A rank's part must be one run of each dim, and a term only of a sum that the move adds up. */
static tsr_status check_placement(const char *name, const tsr_placement *p, bool last)
{
    char why[80] = "has ";
    if (p->kind == TSR_PARTIAL && last)
        return refuse(name, "leaves terms of a sum");
    if (p->kind == TSR_PARTIAL ? p->op == TSR_SUM : p->interleave <= 1 && !p->blocks)
        return TSR_OK;
    tsr_placements_print(p, 1, why + strlen(why), sizeof why - strlen(why));
    return refuse(name, why);
}

/* The runtime knows matrices of f32 on ranks 0, 1, .. */
static tsr_status check_layout(const char *name, const tsr_layout *layout, bool last)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(layout);
    if (tsr_layout_ndim(layout) != 2 || tsr_layout_dtype(layout) != TSR_F32)
        return refuse(name, "is not of one matrix of f32");
    for (int64_t r = 0; r < tsr_mesh_count(mesh); r++) {
        int64_t coordinate[TSR_MAX_DIMS];
        int inside;
        TSR_TRY(tsr_mesh_coordinate_of(mesh, r, coordinate, &inside));
        if (!inside)
            return refuse(name, "is of other ranks than 0, 1, ..");
    }
    for (int d = 0; d < tsr_mesh_ndim(mesh); d++)
        TSR_TRY(check_placement(name, &tsr_layout_placements(layout)[d], last));
    return TSR_OK;
}

/* All moves have as many ranks as the first one, before and after. */
static tsr_status check_plan(plans *p, int m, const tsr_plan *plan)
{
    const char *const name = p->moves[m].name;
    const tsr_layout *const layouts[] = {tsr_plan_source(plan), tsr_plan_destination(plan)};
    if (tsr_plan_count(plan) != 1)
        return refuse(name, "is not of one matrix of f32");
    for (int i = 0; i < 2; i++) {
        const int64_t ranks = tsr_mesh_count(tsr_layout_mesh(layouts[i]));
        TSR_TRY(check_layout(name, layouts[i], i == 1));
        if (m + i > 0 && ranks != p->ranks)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "move \"%s\" has %d ranks, but \"%s\" has %d", name, (int)ranks,
                                  p->moves[0].name, p->ranks);
        p->ranks = (int)ranks;
    }
    return TSR_OK;
}

/* The library checks the bytes of the plan; on no rank it plans nothing yet. */
static tsr_status try_plan(tsr_context *context, plans *p, int m)
{
    tsr_plan *plan;
    TSR_TRY(tsr_plan_load(context, p->moves[m].plan, p->moves[m].size, TSR_RANK_NONE, &plan));
    const tsr_status status = check_plan(p, m, plan);
    tsr_plan_destroy(plan);
    return status;
}

/* What is in the frame is whole, but perhaps not ours, so numbers are still checked. */
static tsr_status read_moves(tsr_context *context, tsr_reader *reader, plans *p)
{
    const uint32_t count = tsr_read_u32(reader);
    if (count < 1 || count > MOST_MOVES)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "the file has %lu moves; 1 to %d are possible", (unsigned long)count,
                              MOST_MOVES);
    for (p->count = 0; p->count < (int)count; p->count++) {
        p->moves[p->count].name = tsr_read_text(reader);
        p->moves[p->count].size = (size_t)tsr_read_u64(reader);
        p->moves[p->count].plan = tsr_read_bytes(reader, p->moves[p->count].size);
        if (reader->ended)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "the file ends within move %d", p->count);
        TSR_TRY(try_plan(context, p, p->count));
    }
    return TSR_OK;
}

tsr_status plans_open(tsr_context *context, const char *path, plans *out)
{
    plans p = {.bytes = NULL};
    tsr_reader reader;
    tsr_status status = read_file(context, path, &p);
    if (status == TSR_OK)
        status = tsr_read_frame(path, &frame, p.bytes, p.size, NULL, &reader);
    if (status == TSR_OK)
        status = read_moves(context, &reader, &p);
    if (status == TSR_OK)
        *out = p;
    else
        plans_close(context, &p);
    return status;
}

void plans_close(tsr_context *context, plans *p)
{
    tsr_release(context, p->bytes);
    p->bytes = NULL;
}
