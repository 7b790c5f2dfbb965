/* SPDX-License-Identifier: Apache-2.0 */
#include "model/highlights/amounts.h"

#include <stdio.h>

#include "base/count_of.h"
#include "base/text/buf.h"

struct snd_amount snd_amount_time(int64_t ns)
{
    struct snd_amount amount;
    char              text[SND_NUMBER_MAX];

    snprintf(amount.text, sizeof amount.text, "%s", snd_time_text(text, (double)ns / 1e3, ""));
    return amount;
}

struct snd_amount snd_amount_bytes(int64_t bytes)
{
    static const struct {
        double      size;
        const char *name;
    } units[] = { { 1073741824.0, "GB" }, { 1048576.0, "MB" }, { 1024.0, "KB" }, { 1.0, "B" } };
    struct snd_amount amount = { "0 B" };

    for (size_t i = 0; i < SND_COUNT_OF(units); i++) {
        if ((double)bytes >= units[i].size) {
            snprintf(amount.text, sizeof amount.text, i < 3 ? "%.2f %s" : "%.0f %s",
                     (double)bytes / units[i].size, units[i].name);
            break;
        }
    }
    return amount;
}

double snd_percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}
