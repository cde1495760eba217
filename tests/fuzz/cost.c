/** Any text is refused with a sentence, or is a profile whose own text reads back as the same numbers. */
#include "fuzz.h"
#include <tessera/cost.h>

static void check(const tsr_cost_profile *profile)
{
    const size_t length = tsr_cost_print(profile, NULL, 0);
    char *text = fuzz_memory(length + 1);
    tsr_cost_profile again;
    FUZZ_REQUIRE(profile->inside.latency >= 0 && profile->inside.latency <= profile->between.latency);
    FUZZ_REQUIRE(profile->inside.bandwidth > 0 && profile->between.bandwidth > 0);
    FUZZ_REQUIRE(tsr_cost_print(profile, text, length + 1) == length && strlen(text) == length);
    FUZZ_REQUIRE(tsr_cost_parse(text, &again) == TSR_OK);
    FUZZ_REQUIRE(memcmp(profile, &again, sizeof again) == 0);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    tsr_cost_profile profile;
    if (tsr_cost_parse(text, &profile) == TSR_OK)
        check(&profile);
    else
        FUZZ_REQUIRE(tsr_status_message()[0] != '\0');
    free(text);
    return 0;
}
