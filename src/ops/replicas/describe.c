#include "ops/replicas/describe.h"

#include "ops/kernels/pointwise.h"
#include "ops/numbers.h"
#include "ops/programs/executable.h"
#include "ops/programs/shapes.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <string.h>

#define CALL "tsr_replicas_create"

bool tsr_replicas_add_dtype(tsr_dtype dtype)
{
    const tsr_dtype in = tsr_pointwise_computes_in(dtype);
    return in == TSR_F32 || in == TSR_F64;
}

/* Checks that a layout is one of one rank, which every rank then has for itself. */
static tsr_status check_mesh(const char *name, const tsr_layout *layout)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(layout);
    int64_t rank;
    if (tsr_mesh_comm(mesh))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CALL ": \"%.200s\" is on a mesh with a communicator; record the program on one without, "
                                   "by tsr_mesh_parse(NULL, context, \"1\", &mesh)",
                              name);
    if (tsr_mesh_count(mesh) != 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CALL ": \"%.200s\" is on a mesh of %lld ranks, but a replica is one rank; record the "
                                   "program on a mesh of one",
                              name, (long long)tsr_mesh_count(mesh));
    TSR_TRY(tsr_mesh_rank_at(mesh, (const int64_t[TSR_MAX_DIMS]){0}, &rank));
    if (rank != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CALL ": \"%.200s\" is on rank %lld, but a replica is rank 0 of a mesh of its own", name,
                              (long long)rank);
    return TSR_OK;
}

/* Describes an input or output whose sizes depend on lengths by `factors`; `length` counts rows. */
static tsr_status describe_port(const char *name, const tsr_layout *layout, const tsr_factors *factors, int length,
                                int64_t most_rows, tsr_replica_port *out)
{
    const int ndim = tsr_layout_ndim(layout);
    TSR_TRY(check_mesh(name, layout));
    *out =
        (tsr_replica_port){.name = name,
                           .own = tsr_tensor_contiguous(NULL, tsr_layout_dtype(layout), ndim, tsr_layout_shape(layout)),
                           .parameter = -1};
    for (int dim = 0; length >= 0 && dim < ndim; dim++) {
        const int64_t multiple = factors->of[dim][length];
        if (multiple && (dim || multiple < 0 || out->own.shape[0] != multiple * most_rows))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  CALL ": \"%.200s\" has rows in dim %d, of %lld elements for up to %lld rows: "
                                       "replicas cut dim 0 alone, into multiples of rows",
                                  name, dim, (long long)out->own.shape[dim], (long long)most_rows);
        if (multiple)
            out->multiple = multiple;
    }
    return tsr_tensor_count(&out->own, &out->count);
}

static bool is_gradient_of(const char *output, const char *parameter)
{
    return strncmp(output, "d.", 2) == 0 && strcmp(output + 2, parameter) == 0;
}

/* Finds the parameter whose gradient an output is. */
static tsr_status find_parameter(tsr_replicas *r, int output)
{
    tsr_replica_port *const port = &r->outputs[output];
    size_t at = 0;
    while (at < r->parameter_count && !is_gradient_of(port->name, r->parameters[at].name))
        at++;
    if (at == r->parameter_count)
        return TSR_OK;
    const tsr_layout *const layout = r->parameters[at].layout;
    if (port->multiple || port->own.ndim != tsr_layout_ndim(layout) ||
        (port->own.ndim &&
         memcmp(port->own.shape, tsr_layout_shape(layout), (size_t)port->own.ndim * sizeof port->own.shape[0]) != 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CALL ": output \"%.200s\" has another shape than \"%.200s\", whose gradient it is by its "
                                   "name; give it another name",
                              port->name, r->parameters[at].name);
    port->parameter = (int)at;
    r->parameters[at].output = output;
    return TSR_OK;
}

/* Finds what an output is, and where it lies. */
static tsr_status place_output(tsr_replicas *r, int output)
{
    tsr_replica_port *const port = &r->outputs[output];
    TSR_TRY(find_parameter(r, output));
    r->told_count += port->parameter < 0;
    if (port->multiple)
        return TSR_OK;
    if (!tsr_replicas_add_dtype(port->own.dtype))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              CALL ": output \"%.200s\" of %s has no rows, so replicas' are added, which is for f64, "
                                   "f32, f16 and bf16; cast it in the program",
                              port->name, tsr_dtype_name(port->own.dtype));
    port->offset = r->made_bytes;
    r->made_bytes += tsr_aligned_bytes((size_t)port->count * tsr_dtype_bytes(port->own.dtype));
    if (port->parameter >= 0) {
        port->first = r->sum_count;
        r->sum_count += (size_t)port->count;
    }
    return TSR_OK;
}

static tsr_status describe_parameters(tsr_replicas *r, const tsr_executable *x)
{
    r->parameter_count = tsr_executable_binding_count(x);
    TSR_TRY(tsr_program_array(r->context, r->parameter_count, sizeof *r->parameters, (void **)&r->parameters));
    for (size_t i = 0; i < r->parameter_count; i++) {
        tsr_executable_binding binding;
        TSR_TRY(tsr_executable_binding_at(x, i, &binding));
        TSR_TRY(check_mesh(binding.name, binding.layout));
        if (binding.is_state)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  CALL ": \"%.200s\" is a state, which all replicas would write at once; make it an "
                                       "input and an output",
                                  binding.name);
        r->parameters[i] = (tsr_replica_parameter){.name = binding.name, .layout = binding.layout, .output = -1};
    }
    return TSR_OK;
}

/* Checks that rows can be counted. */
static tsr_status check_rows(const tsr_replicas *r, int length)
{
    bool has_rows = length < 0;
    for (size_t i = 0; i < r->input_count; i++)
        has_rows = has_rows || r->inputs[i].multiple;
    if (has_rows)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          CALL ": no input has rows, although the program has the length \"%.64s\", which counts them; "
                               "options.rows may name another one",
                          r->rows);
}

static tsr_status describe_ports(tsr_replicas *r, const tsr_executable *x, const tsr_factors *factors, int length)
{
    r->input_count = tsr_executable_input_count(x);
    r->output_count = tsr_executable_output_count(x);
    TSR_TRY(tsr_program_array(r->context, r->input_count, sizeof *r->inputs, (void **)&r->inputs));
    TSR_TRY(tsr_program_array(r->context, r->output_count, sizeof *r->outputs, (void **)&r->outputs));
    for (size_t i = 0; i < r->input_count; i++)
        TSR_TRY(describe_port(tsr_executable_input_name(x, i), tsr_executable_input_layout(x, i),
                              &factors[x->inputs[i]], length, r->most_rows, &r->inputs[i]));
    TSR_TRY(check_rows(r, length));
    for (size_t i = 0; i < r->output_count; i++) {
        TSR_TRY(describe_port(tsr_executable_output_name(x, i), tsr_executable_output_layout(x, i),
                              &factors[x->outputs[i]], length, r->most_rows, &r->outputs[i]));
        TSR_TRY(place_output(r, (int)i));
    }
    return TSR_OK;
}

/* The length that counts rows; -1: the program has none. */
static int find_length(tsr_replicas *r, const tsr_program *program)
{
    for (size_t i = 0; i < program->length_count; i++) {
        if (strcmp(program->lengths[i].name, r->rows) == 0) {
            r->most_rows = program->lengths[i].maximum;
            return (int)i;
        }
    }
    return -1;
}

tsr_status tsr_replicas_describe(tsr_replicas *replicas, const tsr_program *program, const tsr_executable *executable)
{
    tsr_factors *factors;
    const int length = find_length(replicas, program);
    replicas->has_rows = length >= 0;
    if (replicas->has_rows && replicas->most_rows < 2)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CALL ": \"%.64s\" is at most 1, by which sizes do not tell where rows are; record "
                                   "tsr_length() with a maximum of 2 or more",
                              replicas->rows);
    TSR_TRY(describe_parameters(replicas, executable));
    TSR_TRY(tsr_program_array(replicas->context, program->value_count, sizeof *factors, (void **)&factors));
    tsr_status status = tsr_compile_factors(program, factors);
    if (status == TSR_OK)
        status = describe_ports(replicas, executable, factors, length);
    tsr_release(replicas->context, factors);
    for (size_t i = 0; i < executable->key_count; i++)
        replicas->key_names[i] = executable->keys[i].name;
    replicas->key_count = executable->key_count;
    return status;
}
