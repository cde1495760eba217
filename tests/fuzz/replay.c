/* Runs a fuzz target once over each file of its corpus, so that inputs found earlier are tested
 * with any compiler. Prints TAP. */
#include "fuzz.h"

#include <dirent.h>

static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    FUZZ_REQUIRE(file != NULL);
    FUZZ_REQUIRE(fseek(file, 0, SEEK_END) == 0);
    const long length = ftell(file);
    FUZZ_REQUIRE(length >= 0);
    rewind(file);
    char *data = fuzz_memory((size_t)length);
    FUZZ_REQUIRE(fread(data, 1, (size_t)length, file) == (size_t)length);
    fclose(file);
    *size = (size_t)length;
    return data;
}

static int replay(const char *directory)
{
    struct dirent **entries = NULL;
    const int found = scandir(directory, &entries, NULL, alphasort);
    FUZZ_REQUIRE(found >= 0);
    int count = 0;
    for (int i = 0; i < found; i++) {
        char path[4096];
        const int length = snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
        FUZZ_REQUIRE(length > 0 && (size_t)length < sizeof path);
        if (entries[i]->d_name[0] != '.') {
            size_t size = 0;
            char *data = read_file(path, &size);
            fprintf(stderr, "%s\n", path);
            LLVMFuzzerTestOneInput((const uint8_t *)data, size);
            printf("ok %d - %s\n", ++count, entries[i]->d_name);
            fflush(stdout);
            free(data);
        }
        free(entries[i]);
    }
    free(entries);
    return count;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: replay CORPUS_DIRECTORY\n");
        return 2;
    }
    const int count = replay(argv[1]);
    printf("1..%d\n", count);
    return count > 0 ? 0 : 1;
}
