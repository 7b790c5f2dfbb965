// SPDX-License-Identifier: Apache-2.0
// Uses all that sonde/record.h has inline: it must compile without a warning in any C++.
#include <sonde/record.h>

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

    options.path = "header.sonde";
    if (sonde_start(&options, nullptr) != SONDE_OK)
        return 1;
    model.step("dynamic");
    sonde_begin_site(&site);
    sonde_end();
    sonde_begin_id(sonde_intern("id", 2), 0);
    sonde_end();
    sonde_step();
    return sonde_stop(nullptr) == SONDE_OK ? 0 : 1;
}
