#include "base/settings.h"

const tsr_settings *tsr_context_settings(const tsr_context *context)
{
    return &context->settings;
}

uint64_t tsr_context_number(tsr_context *context)
{
    return atomic_fetch_add_explicit(&context->numbers, 1, memory_order_relaxed) + 1;
}
