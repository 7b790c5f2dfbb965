/* SPDX-License-Identifier: Apache-2.0 */
/* A program with Python in it: runs a script in as many lives of the interpreter as it is told. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    char number[16];

    for (int life = 1; argc == 3 && life <= atoi(argv[2]); life++) {
        snprintf(number, sizeof number, "%d", life);
        setenv("LIFE", number, 1);
        Py_Initialize();
        FILE *script = fopen(argv[1], "r");
        int   failed = !script || PyRun_SimpleFile(script, argv[1]) != 0;
        if (script)
            fclose(script);
        if (Py_FinalizeEx() != 0 || failed)
            return 1;
    }
    return 0;
}
