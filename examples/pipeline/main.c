/* tessera-example-pipeline: trains a model in stages on meshes of their own, by 1F1B. */
#include "launch.h"
#include "options.h"

int main(int argc, char **argv)
{
    options o;
    if (!example_begin())
        return 1;
    options_parse(argc, argv, &o);
    if (!o.shows)
        return example_run("tessera-example-pipeline", argc, argv, o.ranks, pipeline_run, &o.pipeline);
    schedule_print(&o.pipeline.schedule);
    return 0;
}
