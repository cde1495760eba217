/* Proves the lines of the list that the program is called with, with as many times the usual draws as
 * its second argument says: ops-proof pointwise 20. */
#include "proof.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const meshes[] = {"1", "2", "3",     "4",     "5",   "2x2",           "2x3",
                                     "7", "8", "2x1x3", "2x2x2", "1x4", "2x2@[3,1,0,2]", "3@[2,0,1]"};

static const struct {
    const char *name;
    const proof_case *lines;
} lists[] = {
#define LIST(name) {#name, proof_##name},
    PROOF_LISTS(LIST)
#undef LIST
};

static const proof_case *chosen;
static int times = 1;

static void rows_are_what_one_rank_computes(void **state)
{
    proof_counts counts = {0};
    (void)state;
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        if (prove_lines(chosen, meshes[i], times, &counts) != TSR_OK)
            fail_msg("mesh %s: %s", meshes[i], tsr_status_message());
    }
    print_message("%d forward and %d backward calls proved, %d of them after a proposal was taken\n", counts.proved,
                  counts.backward, counts.proposed);
    print_message("%d refusals shown wrong, %d impossible, %d stricter than they must be\n", counts.refused_wrong,
                  counts.refused_impossible, counts.refused_strictly);
}

static void gradients_are_those_of_differences(void **state)
{
    proof_counts counts = {0};
    (void)state;
    if (prove_differences(chosen, times, &counts) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    print_message("%d gradients are those of finite differences\n", counts.differences);
}

static bool has_line(const char *op)
{
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        for (const proof_case *line = lists[i].lines; line->op; line++) {
            if (strcmp(line->op, op) == 0)
                return true;
        }
    }
    return false;
}

static void every_row_has_a_line(void **state)
{
    tsr_op_info info;
    (void)state;
    for (size_t i = 0; tsr_op_get(NULL, i); i++) {
        tsr_op_describe(tsr_op_get(NULL, i), &info);
        if (!has_line(info.name))
            fail_msg("no list of tests/ops/proof has a line for %s", info.name);
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_what_one_rank_computes),
                                       cmocka_unit_test(gradients_are_those_of_differences),
                                       cmocka_unit_test(every_row_has_a_line)};
    for (size_t i = 0; count >= 2 && i < sizeof lists / sizeof lists[0]; i++) {
        if (strcmp(lists[i].name, arguments[1]) == 0)
            chosen = lists[i].lines;
    }
    if (count == 3)
        times = atoi(arguments[2]);
    if (!chosen || times < 1)
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
