#include "layouts.h"

#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void expect_ok(tsr_status status)
{
    if (status != TSR_OK)
        fail_msg("%s: %s\ncase: %s", tsr_status_name(status), tsr_status_message(), test_case_text());
}

void expect_error(tsr_status status, tsr_status wanted, const char *part)
{
    if (status != wanted)
        fail_msg("%s, not %s (%s)\ncase: %s", tsr_status_name(status), tsr_status_name(wanted), tsr_status_message(),
                 test_case_text());
    const char *sentence = tsr_status_message();
    if (sentence[0] == '\0' || (part && !strstr(sentence, part)))
        fail_msg("the sentence \"%s\" does not name \"%s\"\ncase: %s", sentence, part ? part : "anything",
                 test_case_text());
}

size_t fail_each_allocation(counted_memory *memory, tsr_status (*call)(void *arg), void *arg)
{
    const size_t before = memory->live_blocks;
    for (size_t failed = 0;; failed++) {
        counted_fail_here(failed + 1, false);
        const tsr_status status = call(arg);
        if (counted_fail_here(0, false) > 0) {
            expect_ok(status);
            return failed;
        }
        expect_error(status, TSR_ERROR_MEMORY, "no memory");
        if (memory->live_blocks != before)
            fail_msg("allocation %zu: %zu blocks left\ncase: %s", failed + 1, memory->live_blocks - before,
                     test_case_text());
    }
}

tsr_mesh *abstract_mesh(const oracle_mesh *mesh)
{
    tsr_mesh *out = NULL;
    expect_ok(tsr_mesh_create_abstract(NULL, mesh->ndim, mesh->shape, NULL, mesh->ranks, &out));
    return out;
}

tsr_layout *abstract_layout(const oracle_layout *layout)
{
    tsr_mesh *mesh = abstract_mesh(&layout->mesh);
    tsr_layout *out = NULL;
    expect_ok(tsr_layout_create(mesh, layout->placements, layout->ndim, layout->shape, layout->dtype, &out));
    tsr_mesh_destroy(mesh);
    return out;
}

int shape_of(const char *text, int64_t *shape)
{
    int ndim = 0;
    if (strcmp(text, "scalar") == 0)
        return 0;
    for (char *end = NULL;; text = end + 1) {
        shape[ndim++] = strtoll(text, &end, 10);
        if (*end != 'x')
            return ndim;
    }
}

tsr_status layout_status(const char *mesh_text, const char *shape_text, const char *placements, tsr_dtype dtype)
{
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    int64_t shape[16];
    expect_ok(tsr_mesh_parse(NULL, NULL, mesh_text, &mesh));
    const tsr_status status = tsr_layout_parse(mesh, placements, shape_of(shape_text, shape), shape, dtype, &layout);
    if (status != TSR_OK)
        assert_null(layout);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return status;
}

tsr_layout *layout_of(const char *mesh, const char *shape, const char *placements)
{
    return layout_in(NULL, mesh, shape, placements);
}

tsr_layout *layout_in(tsr_context *context, const char *mesh_text, const char *shape_text, const char *placements)
{
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    int64_t shape[16];
    test_case("--mesh %s --shape %s --placements %s", mesh_text, shape_text, placements);
    expect_ok(tsr_mesh_parse(NULL, context, mesh_text, &mesh));
    expect_ok(tsr_layout_parse(mesh, placements, shape_of(shape_text, shape), shape, TSR_F32, &layout));
    tsr_mesh_destroy(mesh);
    return layout;
}
