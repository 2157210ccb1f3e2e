/* Reads the number of a kernel, a limit and its shapes a line, and prints the plan of its header: runs, the first run, one amid and the last. */

#include "cases.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t read_number(void) {
    int64_t number;
    if (scanf("%" SCNd64, &number) != 1) {
        exit(1);
    }
    return number;
}

#define INCLUDE_CASES
#include "cases.h"

int main(void) {
    int64_t kernel;
    while (scanf("%" SCNd64, &kernel) == 1) {
        cases[kernel]();
    }
    return 0;
}
