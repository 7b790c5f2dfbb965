/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/page/page_template.h - the report page without data, as built from report/.
 *
 * The definition is made by report/meson.build; a build without the page has an empty text.
 *
 * Layer: export. Threads: any.
 */
#ifndef SND_EXPORT_PAGE_PAGE_TEMPLATE_H
#define SND_EXPORT_PAGE_PAGE_TEMPLATE_H

#define SND_HTML_DATA_MARK "@SONDE-DATA@" /* where the data go */

extern const char snd_html_template[];

#endif
