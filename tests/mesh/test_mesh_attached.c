/* Objects that libraries on top of this one keep with a mesh. */
#include "counted_memory.h"
#include "mesh_support.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/mesh_attachment.h>
#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int made, destroyed, failures;

static tsr_status make_number(const tsr_mesh *mesh, void **out)
{
    static int numbers[16];
    assert_int_equal(tsr_mesh_ndim(mesh), 1);
    *out = &numbers[made++];
    return TSR_OK;
}

static tsr_status fail_once(const tsr_mesh *mesh, void **out)
{
    return failures++ == 0 ? tsr_status_set(TSR_ERROR_DEVICE, "not yet") : make_number(mesh, out);
}

static void destroy_number(void *number)
{
    assert_non_null(number);
    destroyed++;
}

static const tsr_mesh_attachment_kind number = {make_number, destroy_number}, other = {make_number, destroy_number},
                                      difficult = {fail_once, destroy_number};

static void an_attachment_is_made_once_and_goes_with_the_mesh(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *const context = counted_context(&memory);
    tsr_mesh *mesh;
    void *first, *second, *again;
    made = destroyed = 0;
    assert_int_equal(tsr_mesh_parse(NULL, context, "4", &mesh), TSR_OK);
    assert_int_equal(tsr_mesh_attachment(mesh, &number, &first), TSR_OK);
    assert_int_equal(tsr_mesh_attachment(mesh, &other, &second), TSR_OK);
    assert_int_equal(tsr_mesh_attachment(mesh, &number, &again), TSR_OK);
    assert_ptr_equal(first, again);
    assert_ptr_not_equal(first, second);
    assert_int_equal(made, 2);
    assert_int_equal(destroyed, 0);
    tsr_mesh_destroy(mesh);
    assert_int_equal(destroyed, 2);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void what_fails_is_tried_again(void **state)
{
    (void)state;
    tsr_mesh *mesh;
    void *got;
    made = destroyed = failures = 0;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "4", &mesh), TSR_OK);
    assert_int_equal(tsr_mesh_attachment(mesh, &difficult, &got), TSR_ERROR_DEVICE);
    assert_int_equal(tsr_mesh_attachment(mesh, &difficult, &got), TSR_OK);
    assert_int_equal(made, 1);
    tsr_mesh_destroy(mesh);
    assert_int_equal(destroyed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_attachment_is_made_once_and_goes_with_the_mesh),
        cmocka_unit_test(what_fails_is_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
