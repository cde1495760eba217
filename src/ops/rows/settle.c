/* Layouts in which ops take their operands: the cheapest, and those that a policy allows. */
#include "ops/rows/settle.h"

#include "ops/rows/table.h"

#include <tessera/sys/status.h>

#include <string.h>

/* The given layouts, each with a reference of its own. */
static void retain_all(const tsr_op *op, const tsr_layout *const *operands, tsr_layout **out)
{
    memset(out, 0, TSR_OP_MOST_OPERANDS * sizeof *out);
    for (int i = 0; op->operands[i]; i++)
        out[i] = operands[i] ? tsr_layout_retain((tsr_layout *)operands[i]) : NULL;
}

/* True if operands fit as they are; else the sentence says why not, in `*kept`, and the status. */
static bool do_fit(const tsr_op_case *c, tsr_kept_sentence *kept, tsr_status *status)
{
    tsr_op_inferred inferred;
    *status = tsr_op_infer(c, &inferred);
    if (*status == TSR_OK)
        tsr_op_inferred_clear(&inferred);
    tsr_status_keep_returned(kept, *status);
    return *status == TSR_OK;
}

/* Finds the cheapest layouts; an op that only redistributes takes any. */
static tsr_status find(const tsr_op_case *c, const tsr_op_wish *wish, tsr_layout **out, bool *found)
{
    tsr_op_ruling r;
    if (c->op->moves_to) {
        retain_all(c->op, c->operands, out);
        *found = true;
        return TSR_OK;
    }
    TSR_TRY(tsr_op_read_rule(c, &r));
    return tsr_op_settle_rule(&r.rule, &r.names, &r.shaping, c->operands, wish, out, found);
}

tsr_status tsr_op_cheapest(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                           const tsr_layout *const *operands, const tsr_placement *const *results, tsr_layout **out)
{
    tsr_op_case c;
    bool found;
    const tsr_op_wish wish = {.results = results, .policy = TSR_POLICY_ALLOW};
    tsr_layout *made[TSR_OP_MOST_OPERANDS] = {NULL};
    if (!op || !operands || !out)
        return tsr_op_refuse_null("tsr_op_cheapest", op, operands, "out");
    TSR_TRY(tsr_op_begin(op->name, op, count, attributes, operands, &c));
    TSR_TRY(find(&c, &wish, made, &found));
    if (!found) {
        tsr_op_inferred inferred;
        TSR_TRY(tsr_op_infer(&c, &inferred));
        tsr_op_inferred_clear(&inferred);
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: no layouts of operands fit", op->name);
    }
    memcpy(out, made, sizeof made);
    return TSR_OK;
}

/* Refuses what the policy or the limit forbids, with the sentence of the refusal. */
static tsr_status refuse_policy(const tsr_op_case *c, const tsr_kept_sentence *kept, tsr_policy policy, int64_t bytes)
{
    if (policy == TSR_POLICY_FORBID)
        return tsr_status_restore(kept, TSR_ERROR_ARGUMENT);
    const size_t length = strlen(c->caller) + 2;
    const char *const why = strlen(kept->text) > length ? kept->text + length : kept->text;
    if (bytes > 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: within the policy's limit of %lld bytes no redistribution helps: %s", c->caller,
                              (long long)bytes, why);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the policy allows to redistribute Partial operands alone: %s",
                          c->caller, why);
}

tsr_status tsr_op_settle_case(const tsr_op_case *c, tsr_policy policy, int64_t bytes, tsr_layout **out)
{
    tsr_kept_sentence kept;
    tsr_status status;
    bool found = false;
    const tsr_op_wish wish = {.policy = policy, .bytes = bytes};
    tsr_layout *made[TSR_OP_MOST_OPERANDS] = {NULL};
    if (do_fit(c, &kept, &status)) {
        retain_all(c->op, c->operands, out);
        return TSR_OK;
    }
    if (status != TSR_ERROR_ARGUMENT || c->op->moves_to)
        return tsr_status_restore(&kept, status);
    const tsr_status searched = policy == TSR_POLICY_FORBID ? TSR_OK : find(c, &wish, made, &found);
    if (searched != TSR_OK)
        return searched == TSR_ERROR_ARGUMENT ? tsr_status_restore(&kept, status) : searched;
    if (!found)
        return refuse_policy(c, &kept, policy, bytes);
    memcpy(out, made, sizeof made);
    return TSR_OK;
}

tsr_status tsr_op_settle(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                         const tsr_layout *const *operands, tsr_policy policy, int64_t bytes, tsr_layout **out)
{
    tsr_op_case c;
    if (!op || !operands || !out)
        return tsr_op_refuse_null("tsr_op_settle", op, operands, "out");
    TSR_TRY(tsr_op_begin(op->name, op, count, attributes, operands, &c));
    return tsr_op_settle_case(&c, policy, bytes, out);
}
