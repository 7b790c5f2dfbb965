// SPDX-License-Identifier: Apache-2.0
// Uses all that the headers have inline or as a macro: it must compile without a warning in any C++.
#include <sonde/record.h>
#include <sonde/sonde.h>

struct Model {
    int  epoch, lane, now, name, at;
    void step(const char *name_of_it)
    {
        SONDE_RANGE("step");
        SONDE_RANGE(name_of_it);
        sonde_begin("inner");
        {
            SONDE_RANGE("innermost");
            const int64_t       dims[2] = { 2, 3 };
            struct sonde_tensor tensor = { SONDE_ARG_TENSOR, SONDE_FLOAT32, 2, dims };
            sonde_range_shapes(&tensor, 1);
        }
        sonde_end();
        sonde_alloc(SONDE_CPU, this, sizeof *this);
        sonde_free(sonde_device(SONDE_DEVICE_CUDA, 0), this, 0);
    }
};

int main()
{
    struct sonde_options     options = SONDE_OPTIONS_INIT;
    static struct sonde_site site = { "site", 0 };
    Model                    model = { 1, 2, 3, 4, 5 };

    struct sonde_report_options report = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_diff_options   diff = SONDE_DIFF_OPTIONS_INIT;
    struct sonde_export_options exported = SONDE_EXPORT_OPTIONS_INIT;
    uint64_t                    call = SONDE_API_CALL(1, 2, true);
    enum sonde_tally_kind       kind = SONDE_TALLY_OF(SONDE_TALLY_CALLS, 1);

    if (report.rows != 100 || diff.by || exported.gzip || call == 0 || kind == SONDE_TALLY_CALLS)
        return 1;
    options.path = "header.sonde";
    options.chunk_bytes = SONDE_DEFAULT_CHUNK_BYTES;
    if (sonde_start(&options, nullptr) != SONDE_OK)
        return 1;
    model.step("dynamic");
    sonde_begin_site(&site);
    sonde_end();
    sonde_begin_id(sonde_intern("id", 2), 0);
    sonde_end();
    if (sonde_begin_api(sonde_intern("api", 3), call) != 0)
        sonde_end();
    if (sonde_epoch() == 0 || sonde_clock() == 0)
        return 1;
    sonde_step();
    return sonde_stop(nullptr) == SONDE_OK ? 0 : 1;
}
