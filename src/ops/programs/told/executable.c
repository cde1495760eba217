#include "ops/programs/executable.h"

#include "ops/rows/settings.h"

#include <tessera/sys/device.h>
#include <tessera/sys/memory.h>

#include <string.h>

static void destroy_step(tsr_context *context, tsr_step *step)
{
    tsr_release(context, step->caller);
    tsr_release(context, step->texts);
}

static void destroy_names(tsr_context *context, char **names, size_t count)
{
    for (size_t i = 0; names && i < count; i++)
        tsr_release(context, names[i]);
    tsr_release(context, names);
}

static void give_back(const tsr_executable *x, const tsr_device_piece *piece)
{
    void *self;
    if (piece->data)
        tsr_device_driver_table(x->device.driver, &self)->free(self, x->device.index, piece->data, piece->bytes, NULL);
}

/* Frees what lies on the device. */
static void leave_device(const tsr_executable *x)
{
    for (size_t i = 0; i < x->value_count; i++)
        give_back(x, &x->values[i].on_device);
    give_back(x, &x->unread);
}

void tsr_executable_destroy(tsr_executable *x)
{
    if (!x)
        return;
    tsr_context *const context = x->context;
    leave_device(x);
    for (size_t i = 0; i < x->step_count; i++)
        destroy_step(context, &x->steps[i]);
    for (size_t i = 0; i < x->value_count; i++)
        tsr_release(context, x->values[i].constant);
    for (size_t i = 0; i < x->group_count; i++)
        tsr_release(context, x->groups[i].cursors);
    for (size_t i = 0; i < x->form_count; i++) {
        tsr_layout_destroy(x->forms[i].largest);
        tsr_layout_destroy(x->forms[i].layout);
        tsr_layout_destroy(x->forms[i].before);
    }
    for (size_t i = 0; i < x->plan_count; i++)
        for (int j = 0; j < x->plans[i].variant_count; j++)
            tsr_plan_destroy(x->plans[i].variants[j].plan);
    for (size_t i = 0; i < x->length_count; i++)
        tsr_release(context, x->lengths[i].name);
    for (size_t i = 0; i < x->key_count; i++)
        tsr_release(context, x->keys[i].name);
    for (size_t i = 0; i < x->bound_count; i++)
        tsr_dtensor_destroy(x->tensors ? x->tensors[i] : NULL);
    for (size_t i = 0; i < x->mesh_count; i++) {
        tsr_mesh_destroy(x->meshes[i].given);
        tsr_mesh_destroy(x->meshes[i].open);
    }
    destroy_names(context, x->bound_names, x->bound_count);
    destroy_names(context, x->input_names, x->input_count);
    destroy_names(context, x->output_names, x->output_count);
    void *const memory[] = {x->steps,   x->values, x->rooms,  x->inputs, x->outputs, x->bound,
                            x->tensors, x->meshes, x->linked, x->forms,  x->plans,   x->sources,
                            x->batches, x->saved,  x->groups, x->told,   x->early};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        tsr_release(context, memory[i]);
    tsr_release(context, x);
    tsr_context_destroy(context);
}

size_t tsr_executable_input_count(const tsr_executable *executable)
{
    return executable ? executable->input_count : 0;
}

tsr_device tsr_executable_input_device(const tsr_executable *executable, size_t index)
{
    if (index >= tsr_executable_input_count(executable) || executable->values[executable->inputs[index]].is_lent)
        return tsr_device_host();
    return executable->device;
}

size_t tsr_executable_output_count(const tsr_executable *executable)
{
    return executable ? executable->output_count : 0;
}

const tsr_layout *tsr_executable_input_layout(const tsr_executable *executable, size_t index)
{
    return index < tsr_executable_input_count(executable) ? tsr_form_of(executable, executable->inputs[index])->layout
                                                          : NULL;
}

const tsr_layout *tsr_executable_output_layout(const tsr_executable *executable, size_t index)
{
    return index < tsr_executable_output_count(executable) ? tsr_form_of(executable, executable->outputs[index])->layout
                                                           : NULL;
}

const char *tsr_executable_input_name(const tsr_executable *executable, size_t index)
{
    return index < tsr_executable_input_count(executable) ? executable->input_names[index] : NULL;
}

const char *tsr_executable_output_name(const tsr_executable *executable, size_t index)
{
    return index < tsr_executable_output_count(executable) ? executable->output_names[index] : NULL;
}

tsr_value tsr_executable_output_value(const tsr_executable *executable, size_t index)
{
    return index < tsr_executable_output_count(executable) ? executable->outputs[index] : TSR_NONE;
}

size_t tsr_executable_workspace_bytes(const tsr_executable *executable)
{
    return executable ? executable->workspace_bytes : 0;
}

size_t tsr_executable_binding_count(const tsr_executable *executable)
{
    return executable ? executable->bound_count : 0;
}

tsr_status tsr_executable_binding_at(const tsr_executable *executable, size_t index, tsr_executable_binding *out)
{
    if (!executable || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_binding_at: %s is NULL",
                              executable ? "out" : "executable");
    if (index >= executable->bound_count)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_executable_binding_at: index is %zu, but there are %zu parameters and states", index,
                              executable->bound_count);
    const int value = executable->bound[index];
    *out = (tsr_executable_binding){.name = executable->bound_names[index],
                                    .layout = tsr_form_of(executable, value)->largest,
                                    .is_state = executable->values[value].is_state,
                                    .is_needed = executable->values[value].is_used};
    return TSR_OK;
}

static tsr_status refuse_layout(const char *name, const tsr_layout *wanted, const tsr_layout *given)
{
    char ours[256], theirs[256];
    tsr_layout_print(wanted, ours, sizeof ours);
    tsr_layout_print(given, theirs, sizeof theirs);
    return tsr_status_set(
        TSR_ERROR_ARGUMENT,
        "tsr_executable_bind: \"%.200s\" is %s of %d dims as \"%s\" in the program, with its shape and "
        "mesh, but the tensor is %s of %d dims as \"%s\"",
        name, tsr_dtype_name(tsr_layout_dtype(wanted)), tsr_layout_ndim(wanted), ours,
        tsr_dtype_name(tsr_layout_dtype(given)), tsr_layout_ndim(given), theirs);
}

/* Checks that a tensor lies where the executable runs. */
static tsr_status check_device(const tsr_executable *x, const char *name, const tsr_dtensor *tensor)
{
    char text[2][80];
    const tsr_tensor local = tsr_dtensor_to_local(tensor);
    if (local.ndim < 0 || tsr_device_same(local.device, x->device))
        return TSR_OK;
    return tsr_status_set(
        TSR_ERROR_ARGUMENT,
        "tsr_executable_bind: \"%.200s\" lies on %s, but the executable runs on %s; copy it there, or "
        "compile for its device by tsr_compile_options.device",
        name, tsr_launch_print(local.device, text[0], sizeof text[0]),
        tsr_launch_print(x->device, text[1], sizeof text[1]));
}

tsr_status tsr_executable_bind(tsr_executable *x, const char *name, tsr_dtensor *tensor)
{
    if (!x || !name || !tensor)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_bind: %s is NULL",
                              !x     ? "executable"
                              : name ? "tensor"
                                     : "name");
    size_t at = 0;
    while (at < x->bound_count && strcmp(x->bound_names[at], name) != 0)
        at++;
    if (at == x->bound_count)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_executable_bind: the program has no parameter or state \"%.200s\"", name);
    const tsr_layout *const wanted = tsr_form_of(x, x->bound[at])->largest, *const given = tsr_dtensor_layout(tensor);
    if (!tsr_layout_equal(wanted, given))
        return refuse_layout(name, wanted, given);
    TSR_TRY(check_device(x, name, tensor));
    tsr_dtensor_retain(tensor);
    tsr_dtensor_destroy(x->tensors[at]);
    x->tensors[at] = tensor;
    x->is_linked = false;
    return TSR_OK;
}

static const char *name_generator(tsr_random_generator generator)
{
    return generator == TSR_RANDOM_PHILOX ? "TSR_RANDOM_PHILOX" : "TSR_RANDOM_THREEFRY";
}

tsr_status tsr_executable_set_key(tsr_executable *x, const char *name, const tsr_random_key *key)
{
    static const char caller[] = "tsr_executable_set_key";
    size_t at = 0;
    if (!x || !name)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", caller, x ? "name" : "executable");
    TSR_TRY(tsr_settings_check_key(caller, key));
    while (at < x->key_count && strcmp(x->keys[at].name, name) != 0)
        at++;
    if (at == x->key_count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the program has no key \"%.64s\"", caller, name);
    tsr_executable_key *const k = &x->keys[at];
    if (key->generator != k->key.generator)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: \"%.64s\" is of %s, but key is of %s", caller, name,
                              name_generator(k->key.generator), name_generator(key->generator));
    if (k->is_given && memcmp(k->key.words, key->words, sizeof key->words) == 0)
        return TSR_OK;
    k->key = *key;
    k->is_given = true;
    k->changed = ++x->clock;
    return TSR_OK;
}
