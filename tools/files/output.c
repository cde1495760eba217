#include "files/output.h"

#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_directory(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

int output_check(const char *directory)
{
    if (*directory == '\0')
        return complain(EXIT_REFUSED, "--output is empty; it names a folder");
    if (access(directory, F_OK) != 0)
        return EXIT_DONE;
    if (!is_directory(directory))
        return complain(EXIT_REFUSED, "--output %s is not a folder", directory);
    if (access(directory, W_OK | X_OK) != 0)
        return complain(EXIT_REFUSED, "--output %s cannot be written: %s", directory, strerror(errno));
    return EXIT_DONE;
}

static void remove_folders(output *o)
{
    for (; o->path && o->made > 0; o->made--) {
        size_t length = strlen(o->path);
        while (length > 1 && o->path[length - 1] == '/')
            o->path[--length] = '\0';
        rmdir(o->path);
        while (length > 0 && o->path[length - 1] != '/')
            o->path[--length] = '\0';
    }
}

/* Makes the folders of the path, as mkdir -p does, and counts those that are new in o->made. */
static int make_folders(output *o)
{
    int status = EXIT_DONE;
    for (char *at = o->path; status == EXIT_DONE && *at != '\0';) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        const char rest = *at;
        *at = '\0';
        if (mkdir(o->path, 0777) == 0)
            o->made++;
        else if (errno != EEXIST || !is_directory(o->path))
            status = complain(EXIT_REFUSED, "--output %s cannot be made: %s", o->path, strerror(errno));
        *at = rest;
        if (rest != '\0' && at[strspn(at, "/")] == '\0')
            break;
    }
    return status;
}

static int make_folder(output *o)
{
    o->path = strdup(o->directory);
    if (!o->path)
        return complain(EXIT_REFUSED, "there is no memory for the path of --output");
    return make_folders(o);
}

/* Signals that end the program and can be held. The last, SIGPIPE, is dropped: the write fails
 * anyway. */
static const int enders[OUTPUT_SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

/* The last signal since output_begin(); 0 if there was none. A handler records it, because a
 * blocked signal would go to any thread that does not block it. */
static volatile sig_atomic_t came;

static void remember(int signal)
{
    if (signal != SIGPIPE)
        came = signal;
}

static void hold_signals(output *o)
{
    struct sigaction action = {.sa_handler = remember, .sa_flags = SA_RESTART};
    came = 0;
    for (int i = 0; i < OUTPUT_SIGNALS; i++) {
        sigaction(enders[i], NULL, &o->before[i]);
        if (o->before[i].sa_handler != SIG_IGN)
            sigaction(enders[i], &action, NULL);
    }
}

/* Restores the actions, and raises the signal that came meanwhile. */
static void release_signals(const output *o)
{
    for (int i = 0; i < OUTPUT_SIGNALS; i++)
        sigaction(enders[i], &o->before[i], NULL);
    if (came != 0)
        raise(came);
}

void output_finish(output *o)
{
    for (size_t i = 0; i < o->count; i++)
        free(o->files[i].path);
    free(o->files);
    free(o->path);
    release_signals(o);
}

int output_begin(const char *directory, output *out)
{
    output o = {.directory = directory};
    hold_signals(&o);
    const int status = make_folder(&o);
    if (status == EXIT_DONE)
        *out = o;
    else
        output_cancel(&o);
    return status;
}

void output_begin_file(output *out)
{
    *out = (output){.directory = NULL};
    hold_signals(out);
}

/* Names a file that cannot be written, after a failure of libtessera-files. */
static int complain_about(const char *path, tsr_status status)
{
    return complain(EXIT_REFUSED, "%s cannot be written: %s", path, strerror(status == TSR_ERROR_IO ? errno : ENOMEM));
}

/* Makes room in o->files for a file without content, from where output_cancel() removes it. It lies
 * in the output's folder if there is one. NULL if there is no memory. */
static output_file *add_file(output *o, const char *name)
{
    output_file *const files = realloc(o->files, (o->count + 1) * sizeof *files);
    if (!files)
        return NULL;
    o->files = files;
    files[o->count] = (output_file){NULL, NULL};
    if (asprintf(&files[o->count].path, "%s%s%s", o->directory ? o->directory : "", o->directory ? "/" : "", name) < 0)
        return NULL;
    return &files[o->count++];
}

int output_add(output *o, const char *name, const tsr_tensor *tensor)
{
    struct stat facts;
    if (came != 0)
        return complain(EXIT_REFUSED, "interrupted; nothing is left in %s", o->directory);
    output_file *const added = add_file(o, name);
    if (!added)
        return complain(EXIT_REFUSED, "there is no memory for the names of the files");
    if (stat(added->path, &facts) == 0 && !S_ISREG(facts.st_mode))
        return complain(EXIT_REFUSED, "%s cannot be written: it is not a regular file", added->path);
    tsr_status status = tsr_npy_prepare(added->path, tensor, &added->file);
    if (status == TSR_OK)
        status = tsr_new_file_close(added->file);
    return status == TSR_OK ? EXIT_DONE : complain_about(added->path, status);
}

int output_add_complete(output *o, const char *path)
{
    if (!add_file(o, path)) {
        unlink(path);
        return complain(EXIT_REFUSED, "there is no memory for the path of --output");
    }
    o->published++;
    return EXIT_DONE;
}

int output_publish(output *o)
{
    for (; o->published < o->count; o->published++) {
        output_file *const f = &o->files[o->published];
        const tsr_status status = tsr_new_file_publish(f->file);
        f->file = NULL;
        if (status != TSR_OK)
            return complain_about(f->path, status);
    }
    return EXIT_DONE;
}

int output_add_ranks(output *o, const tsr_tensor *results, int ranks)
{
    int status = EXIT_DONE;
    for (int r = 0; r < ranks && status == EXIT_DONE; r++) {
        char name[32];
        snprintf(name, sizeof name, "rank-%d.npy", r);
        if (results[r].data)
            status = output_add(o, name, &results[r]);
    }
    return status == EXIT_DONE ? output_publish(o) : status;
}

const char *output_file_name(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void output_cancel(output *o)
{
    for (size_t i = 0; i < o->count; i++) {
        if (i < o->published)
            unlink(o->files[i].path);
        tsr_new_file_discard(o->files[i].file);
    }
    remove_folders(o);
    output_finish(o);
}
