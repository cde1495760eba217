#include "files/profile.h"

#include "command.h"
#include "files/file.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((size_t)1 << 20)

int profile_parse(const char *what, const char *text, tsr_profile **out)
{
    return tsr_profile_parse(text, out) == TSR_OK ? EXIT_DONE
                                                  : complain(EXIT_USAGE, "%s: %s", what, tsr_status_message());
}

int profile_read(const char *path, tsr_profile **out)
{
    if (!path)
        return profile_parse("the default profile", "", out);
    char *text;
    int status = file_read_text("--profile", path, MOST_BYTES, &text);
    if (status != EXIT_DONE)
        return status;
    if (tsr_profile_parse(text, out) != TSR_OK)
        status = complain(EXIT_USAGE, "--profile %s: %s", path, tsr_status_message());
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

int profile_prepare(const char *path, const char *comment, const tsr_profile *profile, fresh_file *out)
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
