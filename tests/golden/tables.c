/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the tables of views, exporters and probes, with tabs: kind, name, summary. Of a probe also
 * the view that shows it, one that also can, its folder below src/, and the function that starts it
 * or the library, or "sonde run:" and its name there.
 */
#include <stdio.h>

#include "sonde/export.h"

#define SND_BY_PYTHON(when, sees, function) function
#define SND_BY_LIBRARY(name, variable) #name
#define SND_BY_PARENT(name) "sonde run:" #name
#define SND_PROBE(id, option, value, argument, most, records, view, without, also, usual, start, \
                  folder, check, help)                                                           \
    "probe\t" option "\t" help "\t" view "\t" also "\t" folder "\t" start "\n"
#define SND_PROBE_DETAIL(id, option, of, help) "detail\t" option "\t" help "\n"
static const char probes[] =
#include "probes/probes.def"
    ;

int main(void)
{
    const struct sonde_view_info     *view;
    const struct sonde_exporter_info *exporter;

    for (size_t i = 0; (view = sonde_view_info(i)) != NULL; i++)
        printf("view\t%s\t%s\n", view->name, view->summary);
    for (size_t i = 0; (exporter = sonde_exporter_info(i)) != NULL; i++)
        printf("export\t%s\t%s\n", exporter->name, exporter->summary);
    fputs(probes, stdout);
    return 0;
}
