/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the tables of views and exporters: kind, name, summary, with tabs. */
#include <stdio.h>

#include "sonde/export.h"

int main(void)
{
    const struct sonde_view_info     *view;
    const struct sonde_exporter_info *exporter;

    for (size_t i = 0; (view = sonde_view_info(i)) != NULL; i++)
        printf("view\t%s\t%s\n", view->name, view->summary);
    for (size_t i = 0; (exporter = sonde_exporter_info(i)) != NULL; i++)
        printf("export\t%s\t%s\n", exporter->name, exporter->summary);
    return 0;
}
