/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convnet.c - four 3x3 convolutions over batches of 8 images, 3x224x224, with every mark
 * that sonde/record.h offers where a program like this would want it.
 *
 *     sonde run -o convnet.sonde -- ./convnet [ITERATIONS]
 *     sonde report convnet.sonde
 *
 * A loader thread prepares the next batch while the main thread runs the network; an arrow
 * joins a batch's making to its use. Run without `sonde run` it records itself if
 * $CONVNET_TRACE names a file, and otherwise runs unrecorded at full speed.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <sonde/record.h>

#include "conv.h"

#define BATCH 8
#define CHANNELS 3
#define SIDE 224
#define LAYERS 4

static const char *const layer_names[LAYERS] = { "conv1", "conv2", "conv3", "conv4" };

/* One batch handed from the loader to the network at a time. */
struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    struct tensor   batch; /* data NULL: empty */
    uint64_t        made;  /* batches so far: the arrow's id */
    uint64_t        wanted;
};

static void *allocate(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);

    if (!memory) {
        fprintf(stderr, "convnet: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    sonde_alloc(SONDE_CPU, memory, bytes);
    return memory;
}

static void release(void *memory, size_t bytes)
{
    sonde_free(SONDE_CPU, memory, bytes);
    free(memory);
}

static size_t tensor_bytes(const struct tensor *t)
{
    return t->n * t->c * t->h * t->w * sizeof(float);
}

static struct tensor new_tensor(size_t n, size_t c, size_t h, size_t w)
{
    struct tensor t = { n, c, h, w, NULL };

    t.data = allocate(tensor_bytes(&t));
    return t;
}

static void drop_tensor(struct tensor *t)
{
    release(t->data, tensor_bytes(t));
    t->data = NULL;
}

/* Numbers in [-scale, scale); the same every run, so that the result can be compared. */
static void fill_random(float *out, size_t count, float scale, uint64_t *state)
{
    for (size_t i = 0; i < count; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        out[i] = ((float)(*state >> 40) / (float)(1 << 23) - 1.0F) * scale;
    }
}

/* ----------------------------------------------------------------- loading */

static struct tensor load_batch(uint64_t *state)
{
    SONDE_RANGE("load_batch");
    struct tensor batch = new_tensor(BATCH, CHANNELS, SIDE, SIDE);

    for (size_t n = 0; n < BATCH; n++) {
        SONDE_RANGE("decode");
        size_t count = batch.c * batch.h * batch.w;
        fill_random(batch.data + n * count, count, 1.0F, state);
    }
    return batch;
}

static void *run_loader(void *argument)
{
    struct mailbox *box = argument;
    uint64_t        state = 1;

    sonde_thread_name("loader");
    for (uint64_t i = 0; i < box->wanted; i++) {
        struct tensor batch = load_batch(&state);
        pthread_mutex_lock(&box->lock);
        while (box->batch.data)
            pthread_cond_wait(&box->changed, &box->lock);
        box->batch = batch;
        sonde_link_from(++box->made);
        pthread_cond_signal(&box->changed);
        pthread_mutex_unlock(&box->lock);
    }
    return NULL;
}

static struct tensor take_batch(struct mailbox *box)
{
    SONDE_RANGE("wait_for_batch");
    pthread_mutex_lock(&box->lock);
    while (!box->batch.data)
        pthread_cond_wait(&box->changed, &box->lock);
    struct tensor batch = box->batch;
    box->batch.data = NULL;
    sonde_link_to(box->made);
    pthread_cond_signal(&box->changed);
    pthread_mutex_unlock(&box->lock);
    return batch;
}

/* ----------------------------------------------------------------- network */

static struct tensor run_layer(const char *name, const struct conv *conv, const struct tensor *in)
{
    SONDE_RANGE(name);
    struct tensor out = new_tensor(in->n, conv->out, in->h, in->w);

    SONDE_RANGE("conv2d");
    struct sonde_tensor inputs[] = {
        SONDE_TENSOR(SONDE_FLOAT32, (int64_t)in->n, (int64_t)in->c, (int64_t)in->h, (int64_t)in->w),
        SONDE_TENSOR(SONDE_FLOAT32, (int64_t)conv->out, (int64_t)conv->in, 3, 3),
        SONDE_TENSOR(SONDE_FLOAT32, (int64_t)conv->out),
    };
    sonde_range_shapes(inputs, sizeof inputs / sizeof inputs[0]);
    sonde_flops(conv_flops(conv, in));
    conv_forward(conv, in, &out);
    return out;
}

/* Takes the batch and returns the output; what lies between is freed as soon as it is used. */
static struct tensor forward(const struct conv *layers, struct tensor x)
{
    SONDE_RANGE("forward");
    for (size_t i = 0; i < LAYERS; i++) {
        struct tensor next = run_layer(layer_names[i], &layers[i], &x);
        drop_tensor(&x);
        x = next;
    }
    return x;
}

static double mean_of(const struct tensor *t)
{
    SONDE_RANGE("mean");
    size_t count = t->n * t->c * t->h * t->w;
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (double)t->data[i];
    sonde_flops((double)count);
    return sum / (double)count;
}

static void init_layers(struct conv *layers, uint64_t *state)
{
    SONDE_RANGE("init");
    for (size_t i = 0; i < LAYERS; i++) {
        layers[i].in = layers[i].out = CHANNELS;
        layers[i].weight = allocate(CHANNELS * CHANNELS * 9 * sizeof(float));
        layers[i].bias = allocate(CHANNELS * sizeof(float));
        fill_random(layers[i].weight, CHANNELS * CHANNELS * 9, 0.19F, state);
        fill_random(layers[i].bias, CHANNELS, 0.19F, state);
    }
}

static void release_layers(struct conv *layers)
{
    for (size_t i = 0; i < LAYERS; i++) {
        release(layers[i].weight, CHANNELS * CHANNELS * 9 * sizeof(float));
        release(layers[i].bias, CHANNELS * sizeof(float));
    }
}

static double run_step(const struct conv *layers, struct mailbox *box)
{
    SONDE_RANGE("step");
    struct tensor output = forward(layers, take_batch(box));
    double        mean = mean_of(&output);

    sonde_counter("mean output", mean);
    drop_tensor(&output);
    return mean;
}

static double run_network(uint64_t iterations)
{
    struct mailbox box = { .lock = PTHREAD_MUTEX_INITIALIZER,
                           .changed = PTHREAD_COND_INITIALIZER,
                           .wanted = iterations };
    struct conv    layers[LAYERS];
    uint64_t       state = 42;
    double         mean = 0;
    pthread_t      loader;

    init_layers(layers, &state);
    if (pthread_create(&loader, NULL, run_loader, &box) != 0) {
        fprintf(stderr, "convnet: cannot start the loader thread\n");
        exit(1);
    }
    for (uint64_t i = 0; i < iterations; i++) {
        sonde_step();
        mean = run_step(layers, &box);
    }
    pthread_join(loader, NULL);
    sonde_mark("done");
    release_layers(layers);
    return mean;
}

int main(int argc, char **argv)
{
    uint64_t    iterations = argc > 1 ? strtoull(argv[1], NULL, 10) : 5;
    const char *path = getenv("CONVNET_TRACE");

    if (path) {
        struct sonde_options options = SONDE_OPTIONS_INIT;
        struct sonde_error   err;
        options.path = path;
        if (sonde_start(&options, &err) != SONDE_OK)
            fprintf(stderr, "convnet: not recording: %s\n", err.message);
    }
    sonde_thread_name("main");
    double mean = run_network(iterations);
    if (path)
        (void)sonde_stop(NULL);
    printf("convnet: %llu batches of %dx%dx%dx%d, mean output %.6f\n",
           (unsigned long long)iterations, BATCH, CHANNELS, SIDE, SIDE, mean);
    return 0;
}
