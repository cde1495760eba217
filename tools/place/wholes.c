#include "place/wholes.h"

#include "cli/report.h"
#include "files/output.h"

#include <tessera/sys/status.h>

#include <stdlib.h>

int wholes_open(const char *path, const tsr_layout *layout, tsr_npy **out)
{
    tsr_tensor loaded;
    if (tsr_npy_open(path, tsr_layout_dtype(layout), out) != TSR_OK || tsr_npy_load(*out, &loaded) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    return EXIT_DONE;
}

tsr_status wholes_mesh(tsr_comm *comm, tsr_context *context, const tsr_mesh *like, tsr_mesh **out)
{
    char *const text = mesh_text(like);
    const tsr_status status = text ? tsr_mesh_parse(comm, context, text, out)
                                   : tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for a mesh");
    free(text);
    return status;
}

tsr_status wholes_layout(const tsr_mesh *mesh, const tsr_layout *like, tsr_layout **out)
{
    return tsr_layout_create(mesh, tsr_layout_placements(like), tsr_layout_ndim(like), tsr_layout_shape(like),
                             tsr_layout_dtype(like), out);
}

tsr_status wholes_read(const tsr_npy *file, const tsr_mesh *mesh, const tsr_layout *like, tsr_dtensor **out)
{
    tsr_layout *layout;
    TSR_TRY(wholes_layout(mesh, like, &layout));
    const tsr_status status = tsr_npy_read(file, layout, NULL, out);
    tsr_layout_destroy(layout);
    return status;
}

tsr_status wholes_write(const wholes_job *job, size_t index, const tsr_dtensor *x)
{
    char *path;
    if (asprintf(&path, "%s/%s", job->directory, job->names[index]) < 0)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the path of %s", job->names[index]);
    const tsr_status status = tsr_npy_write(x, path, TSR_DTYPE_NONE);
    free(path);
    /* Rank 0 renames the file. */
    if (status == TSR_OK && tsr_comm_rank(tsr_mesh_comm(tsr_layout_mesh(tsr_dtensor_layout(x)))) == 0)
        job->written[index] = true;
    return status;
}

/* Runs the body, and lists the files that it has written, so that they stay or go together. */
static int run_body(place *here, int ranks, const wholes_job *job, output *files)
{
    int status = place_run(here, ranks, job->body, job->arg) == TSR_OK ? EXIT_DONE : complain_status(EXIT_REFUSED);
    for (size_t i = 0; i < job->count; i++) {
        const int added = job->written[i] ? output_add_complete(files, job->names[i]) : EXIT_DONE;
        status = status == EXIT_DONE ? added : status;
    }
    return status;
}

int wholes_run(place *here, int ranks, wholes_job *job)
{
    output files;
    job->written = calloc(job->count + 1, sizeof *job->written);
    int status = job->written ? output_check(job->directory) : complain(EXIT_REFUSED, "there is no memory for names");
    if (status == EXIT_DONE)
        status = output_begin(job->directory, &files);
    if (status == EXIT_DONE) {
        status = run_body(here, ranks, job, &files);
        if (status == EXIT_DONE)
            output_finish(&files);
        else
            output_cancel(&files);
    }
    free(job->written);
    return status;
}
