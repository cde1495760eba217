#include "files/profile.h"

#include "command.h"
#include "files/file.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((size_t)1 << 20)

/* The exit status for a text that was not parsed: it is at fault unless memory is short. */
static int exit_of(tsr_status status)
{
    return status == TSR_ERROR_MEMORY ? EXIT_REFUSED : EXIT_USAGE;
}

int profile_parse(const char *what, const char *text, tsr_profile **out)
{
    const tsr_status status = tsr_profile_parse(text, out);
    return status == TSR_OK ? EXIT_DONE : complain(exit_of(status), "%s: %s", what, tsr_status_message());
}

int profile_read(const char *path, tsr_profile **out)
{
    if (!path)
        return profile_parse("the default profile", "", out);
    char *text;
    int status = file_read_text("--profile", path, MOST_BYTES, &text);
    if (status != EXIT_DONE)
        return status;
    const tsr_status parsed = tsr_profile_parse(text, out);
    if (parsed != TSR_OK)
        status = complain(exit_of(parsed), "--profile %s: %s", path, tsr_status_message());
    free(text);
    return status;
}

void profile_print_links(const tsr_profile *profile, char text[LINKS_TEXT_BYTES])
{
    const tsr_cost_profile links = tsr_profile_links(profile);
    tsr_cost_print(&links, text, LINKS_TEXT_BYTES);
}

char *profile_text(const tsr_profile *profile)
{
    const size_t bytes = tsr_profile_print(profile, NULL, 0) + 1;
    char *const text = malloc(bytes);
    if (text)
        tsr_profile_print(profile, text, bytes);
    return text;
}

int profile_prepare(const char *path, const char *comment, const tsr_profile *profile, tsr_new_file **out)
{
    char *const content = profile_text(profile), *text;
    const int bytes = content ? asprintf(&text, "# %s\n%s\n", comment, content) : -1;
    free(content);
    if (bytes < 0)
        return complain(EXIT_REFUSED, "there is no memory for the profile");
    const int status = file_prepare("--output", path, text, (size_t)bytes, out);
    free(text);
    return status;
}
