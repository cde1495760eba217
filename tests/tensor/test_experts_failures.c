#include "comm_suite.h"
int main(int argc, char **argv)
{
    suite_start(argc, argv);
    return 0;
}
