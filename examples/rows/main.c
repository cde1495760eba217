/* tessera-example-rows: learns the communities of a graph's nodes, with a table of learned rows
 * that ranks share. */
#include "launch.h"
#include "options.h"

int main(int argc, char **argv)
{
    options o;
    if (!example_begin())
        return 1;
    options_parse(argc, argv, &o);
    return example_run("tessera-example-rows", argc, argv, o.ranks, training_run, &o.training);
}
