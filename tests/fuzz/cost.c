/* Fuzzes cost profiles: text is refused with a message, or gives a profile whose printed text
 * reads back as the same profile; its links are those that tsr_cost_parse() gives. */
#include "fuzz.h"

#include <tessera/profile.h>

static char *text_of(const tsr_profile *profile)
{
    const size_t length = tsr_profile_print(profile, NULL, 0);
    char *text = fuzz_memory(length + 1);
    FUZZ_REQUIRE(tsr_profile_print(profile, text, length + 1) == length && strlen(text) == length);
    return text;
}

static void check_links(const tsr_cost_profile *links, const char *text)
{
    tsr_cost_profile found;
    FUZZ_REQUIRE(links->inside.latency >= 0 && links->inside.latency <= links->between.latency);
    FUZZ_REQUIRE(links->inside.bandwidth > 0 && links->between.bandwidth > 0);
    FUZZ_REQUIRE(tsr_cost_parse(text, &found) == TSR_OK);
    FUZZ_REQUIRE(memcmp(links, &found, sizeof found) == 0);
}

static void check(const tsr_profile *profile)
{
    const tsr_cost_profile links = tsr_profile_links(profile);
    char *text = text_of(profile), *again;
    tsr_profile *read;
    check_links(&links, text);
    FUZZ_REQUIRE(tsr_profile_parse(text, &read) == TSR_OK);
    again = text_of(read);
    FUZZ_REQUIRE(strcmp(text, again) == 0 && tsr_profile_has_tables(read) == tsr_profile_has_tables(profile));
    FUZZ_REQUIRE(tsr_profile_work_seconds(profile, TSR_WORK_COPY, 100, 1e6, 1) >= 0);
    FUZZ_REQUIRE(tsr_profile_meeting_seconds(profile, 1000) >= 0);
    FUZZ_REQUIRE(tsr_profile_pass_seconds(profile, 1e6) >= 0);
    FUZZ_REQUIRE(tsr_profile_product_seconds(profile, TSR_PRODUCT_MULTIPLY, 100, 1e6, 1e6, 1) >= 0);
    FUZZ_REQUIRE(tsr_profile_has_kernels(read) == tsr_profile_has_kernels(profile));
    tsr_profile_destroy(read);
    free(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    tsr_profile *profile;
    if (tsr_profile_parse(text, &profile) == TSR_OK) {
        check(profile);
        tsr_profile_destroy(profile);
    } else
        FUZZ_REQUIRE(tsr_status_message()[0] != '\0');
    free(text);
    return 0;
}
