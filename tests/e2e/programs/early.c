/* SPDX-License-Identifier: Apache-2.0 */
/* Marks before main() and after it. */
#include <sonde/record.h>

__attribute__((constructor)) static void construct(void)
{
    SONDE_RANGE("constructor");
}

__attribute__((destructor)) static void destruct(void)
{
    SONDE_RANGE("destructor");
}

int main(void)
{
    SONDE_RANGE("main");
    return 0;
}
