#include "files/profile.h"

#include "command.h"
#include "files/file.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((size_t)1 << 20)

int profile_read(const char *path, tsr_cost_profile *out)
{
    *out = tsr_cost_default();
    if (path == NULL)
        return EXIT_DONE;
    char *text;
    int status = file_read_text("--profile", path, MOST_BYTES, &text);
    if (status != EXIT_DONE)
        return status;
    if (tsr_cost_parse(text, out) != TSR_OK)
        status = complain(EXIT_USAGE, "--profile %s: %s", path, tsr_status_message());
    free(text);
    return status;
}

int profile_prepare(const char *path, const char *comment, const tsr_cost_profile *profile, fresh_file *out)
{
    char line[PROFILE_TEXT_BYTES], *text;
    tsr_cost_print(profile, line, sizeof line);
    const int bytes = asprintf(&text, "# %s\n%s\n", comment, line);
    if (bytes < 0)
        return complain(EXIT_REFUSED, "there is no memory for the profile");
    const int status = file_prepare("--output", path, text, (size_t)bytes, out);
    free(text);
    return status;
}
