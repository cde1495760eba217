/* Moves that follow one another become one. */
#include "ops/programs/merge.h"

#include <tessera/sys/memory.h>

#include <string.h>

/* Counts how often each value is read. */
static void count_uses(const tsr_program *program, const bool *needed, int *uses)
{
    for (size_t i = 0; i < program->output_count; i++)
        uses[program->outputs[i].value]++;
    for (size_t i = 0; i < program->node_count; i++)
        for (int j = 0; needed[i] && j < TSR_OP_MOST_OPERANDS; j++)
            if (program->nodes[i].operands[j] != TSR_NONE)
                uses[program->nodes[i].operands[j]]++;
}

static bool is_move(const tsr_program_node *node)
{
    return !node->op && !node->stores;
}

/* True of nodes whose result has the operand's values. */
static bool passes(const tsr_program_node *node)
{
    return is_move(node) || (node->op && node->op->passes);
}

/* True of a state, as it was, into which is stored before a node. */
static bool is_overwritten(const tsr_program *program, int value, size_t node)
{
    for (size_t i = 0; program->values[value].kind == TSR_VALUE_STATE && i < node; i++)
        if (program->nodes[i].stores && program->nodes[i].operands[0] == value)
            return true;
    return false;
}

tsr_status tsr_compile_chains(const tsr_program *program, bool *needed, int *operand)
{
    void *memory;
    TSR_TRY(tsr_program_array(program->context, program->value_count, sizeof(int), &memory));
    int *const uses = memory;
    count_uses(program, needed, uses);
    for (size_t i = program->node_count; i > 0; i--) {
        const tsr_program_node *const node = &program->nodes[i - 1];
        operand[i - 1] = node->operands[0];
        if (!needed[i - 1] || !is_move(node))
            continue;
        int from = node->operands[0];
        while (uses[from] == 1 && program->values[from].kind == TSR_VALUE_RESULT &&
               passes(&program->nodes[program->values[from].node]) &&
               !is_overwritten(program, program->nodes[program->values[from].node].operands[0], i - 1)) {
            needed[program->values[from].node] = false;
            from = program->nodes[program->values[from].node].operands[0];
        }
        operand[i - 1] = from;
    }
    tsr_release(program->context, memory);
    return TSR_OK;
}

void tsr_step_point(tsr_step *step)
{
    step->c.operands = step->layouts;
    step->call.inputs = step->inputs;
    step->call.outputs = step->outputs;
    step->call.layouts = step->call.layouts ? step->layouts : NULL;
    step->call.result_layouts = step->call.result_layouts ? step->result_layouts : NULL;
    if (step->call.attributes && step->kind != TSR_DOES_COPY && step->kind != TSR_DOES_STORE)
        step->call.attributes = step->c.attributes;
}
