/* From a program to what one rank runs. */
#include "ops/eager/mix.h"
#include "ops/programs/compile_memory.h"
#include "ops/programs/compile_steps.h"
#include "ops/programs/compile_values.h"
#include "ops/programs/compiled/batches.h"
#include "ops/programs/early.h"
#include "ops/programs/fuse.h"
#include "ops/programs/link.h"
#include "ops/programs/merge.h"
#include "ops/programs/probe.h"
#include "ops/programs/shapes.h"

#include <tessera/saved_program.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/mesh_attachment.h>

#include <string.h>

/* The rank whose part is made: the one that is wanted, or this process's own. */
static tsr_status find_rank(const tsr_program *program, const tsr_compile_options *options, int64_t *rank)
{
    *rank = options ? options->rank : TSR_RANK_DEFAULT;
    if (*rank >= 0)
        return TSR_OK;
    if (*rank != TSR_RANK_DEFAULT)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_compile: options.rank is %lld, but must be 0 or more",
                              (long long)*rank);
    for (size_t i = 0; i < program->value_count; i++) {
        const tsr_comm *const comm = tsr_mesh_comm(tsr_layout_mesh(program->values[i].layout));
        if (comm) {
            *rank = tsr_comm_rank(comm);
            return TSR_OK;
        }
    }
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "tsr_compile: the program's meshes have no communicator, so options.rank must say whose part "
                          "is made");
}

/* Marks the nodes on which outputs and states depend. */
static void mark_needed(const tsr_program *program, bool *needed)
{
    for (size_t i = 0; i < program->output_count; i++) {
        const int node = program->values[program->outputs[i].value].node;
        if (node >= 0)
            needed[node] = true;
    }
    for (size_t i = program->node_count; i > 0; i--) {
        const tsr_program_node *const node = &program->nodes[i - 1];
        needed[i - 1] |= node->stores;
        for (int j = 0; needed[i - 1] && j < TSR_OP_MOST_OPERANDS; j++) {
            if (node->operands[j] != TSR_NONE && program->values[node->operands[j]].node >= 0)
                needed[program->values[node->operands[j]].node] = true;
        }
    }
}

static uint64_t mix_value(uint64_t hash, const tsr_program_value *v)
{
    uint64_t bits;
    memcpy(&bits, &v->constant, sizeof bits);
    hash = tsr_mix(tsr_mix(tsr_mix(hash, (uint64_t)v->kind), tsr_layout_hash(v->layout)), bits);
    /* Which sizes are lengths: layouts have their maxima. */
    for (int dim = 0; v->kind == TSR_VALUE_INPUT && dim < tsr_layout_ndim(v->layout); dim++)
        hash = tsr_mix(hash, (uint64_t)v->shape[dim]);
    return v->name ? tsr_mix_text(hash, v->name) : hash;
}

/* A number that programs which differ hardly share, the same in every process. */
static uint64_t fingerprint(const tsr_program *program)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < program->length_count; i++)
        hash = tsr_mix(tsr_mix_text(hash, program->lengths[i].name), (uint64_t)program->lengths[i].maximum);
    for (size_t i = 0; i < program->value_count; i++)
        hash = mix_value(hash, &program->values[i]);
    for (size_t i = 0; i < program->node_count; i++) {
        const tsr_program_node *const node = &program->nodes[i];
        hash = tsr_mix_attributes(tsr_mix_text(hash, node->op ? node->op->name : "move"), node->attributes);
        for (int j = 0; j < TSR_OP_MOST_OPERANDS; j++)
            hash = tsr_mix(hash, (uint64_t)(int64_t)node->operands[j]);
    }
    for (size_t i = 0; i < program->key_count; i++)
        hash = tsr_mix(tsr_mix_text(hash, program->keys[i].name), (uint64_t)program->keys[i].generator);
    for (size_t i = 0; i < program->output_count; i++)
        hash = tsr_mix(tsr_mix_text(hash, program->outputs[i].name), (uint64_t)program->outputs[i].value);
    return hash;
}

static tsr_status copy_lengths(const tsr_program *program, tsr_executable *x)
{
    for (size_t i = 0; i < program->length_count; i++) {
        TSR_TRY(tsr_program_copy_text(x->context, program->lengths[i].name, &x->lengths[i].name));
        x->lengths[i].maximum = x->length[i] = program->lengths[i].maximum;
        x->length_count++;
    }
    return TSR_OK;
}

static tsr_status copy_keys(const tsr_program *program, tsr_executable *x)
{
    for (size_t i = 0; i < program->key_count; i++) {
        TSR_TRY(tsr_program_copy_text(x->context, program->keys[i].name, &x->keys[i].name));
        x->keys[i].key.generator = program->keys[i].generator;
        x->key_count++;
    }
    return TSR_OK;
}

static tsr_status compile_with(const tsr_program *program, bool *needed, int *operand, tsr_factors *factors,
                               tsr_executable *x)
{
    mark_needed(program, needed);
    TSR_TRY(copy_lengths(program, x));
    TSR_TRY(copy_keys(program, x));
    TSR_TRY(tsr_compile_factors(program, factors));
    TSR_TRY(tsr_compile_chains(program, needed, operand));
    TSR_TRY(tsr_compile_values(program, needed, operand, factors, x));
    TSR_TRY(tsr_compile_steps(program, needed, operand, x));
    TSR_TRY(tsr_compile_batches(x));
    TSR_TRY(tsr_compile_ending(x));
    TSR_TRY(tsr_compile_groups(x));
    TSR_TRY(tsr_compile_early(x, tsr_executable_overlaps(x)));
    TSR_TRY(tsr_compile_memory(x));
    tsr_executable_find_sources(x);
    TSR_TRY(tsr_compile_probe(x, NULL));
    return tsr_compile_scratch(x);
}

/* Keeps the program as bytes, for tsr_executable_save(). */
static tsr_status keep_program(const tsr_program *program, tsr_executable *x)
{
    TSR_TRY(tsr_program_save(program, NULL, 0, &x->saved_bytes));
    TSR_TRY(tsr_allocate(x->context, x->saved_bytes, &x->saved));
    return tsr_program_save(program, x->saved, x->saved_bytes, &x->saved_bytes);
}

static tsr_status compile(const tsr_program *program, tsr_executable *x)
{
    void *needed, *operand = NULL, *factors = NULL;
    x->fingerprint = fingerprint(program);
    TSR_TRY(keep_program(program, x));
    TSR_TRY(tsr_program_array(x->context, program->node_count, sizeof(bool), &needed));
    tsr_status status = tsr_program_array(x->context, program->node_count, sizeof(int), &operand);
    if (status == TSR_OK)
        status = tsr_program_array(x->context, program->value_count, sizeof(tsr_factors), &factors);
    if (status == TSR_OK)
        status = compile_with(program, needed, operand, factors, x);
    tsr_release(x->context, needed);
    tsr_release(x->context, operand);
    tsr_release(x->context, factors);
    return status;
}

static bool has_effect(const tsr_program *program)
{
    bool found = program->output_count > 0;
    for (size_t i = 0; i < program->node_count; i++)
        found |= program->nodes[i].stores;
    return found;
}

static tsr_status check_device(tsr_device device)
{
    if (device.index < 0 || (!device.driver && device.index > 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_compile: options.device is %s:%d, but devices count from 0%s",
                              device.driver ? "device" : "host", device.index,
                              device.driver ? "" : ", and there is one host");
    return TSR_OK;
}

tsr_status tsr_compile(const tsr_program *program, const tsr_compile_options *options, tsr_executable **out)
{
    void *memory;
    int64_t rank;
    if (!program || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_compile: %s is NULL", program ? "out" : "program");
    if (options && options->size != sizeof *options)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_compile: options.size is %zu, but must be %zu; begin with "
                              "TSR_COMPILE_OPTIONS_INIT",
                              options->size, sizeof *options);
    if (program->status != TSR_OK)
        return tsr_status_restore(&program->sentence, program->status);
    if (!has_effect(program))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_compile: the program has neither outputs nor stores; add one by tsr_output()");
    if (options)
        TSR_TRY(check_device(options->device));
    TSR_TRY(find_rank(program, options, &rank));
    TSR_TRY(tsr_allocate(program->context, sizeof(tsr_executable), &memory));
    tsr_executable *const x = memset(memory, 0, sizeof *x);
    x->context = tsr_context_retain(program->context);
    x->rank = rank;
    x->device = options ? options->device : tsr_device_host();
    x->stands_in = true;
    const tsr_status status = compile(program, x);
    if (status == TSR_OK)
        *out = x;
    else {
        tsr_kept_sentence kept;
        tsr_status_keep(&kept);
        tsr_executable_destroy(x);
        return tsr_status_restore(&kept, status);
    }
    return TSR_OK;
}
