/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/samples/sample_tree_text.h - a tree of samples as Pyinstrument shows it.
 *
 * Layer: view. Threads: as a document.
 */
#ifndef SND_VIEW_SAMPLES_SAMPLE_TREE_TEXT_H
#define SND_VIEW_SAMPLES_SAMPLE_TREE_TEXT_H

#include "base/text/buf.h"
#include "base/files/sink.h"
#include "read/said/library_paths.h"
#include "view/render/view.h"

/* What file names are shown by, and what tells a library from a program: of all processes. */
struct snd_pypaths {
    struct snd_path_list folders; /* sys.path: names of libraries are shown from the nearest on */
    struct snd_library_paths libraries;
    struct sonde_text root; /* the program's own files are shown from here; empty: has none */
};

/*
 * From the metadata python.sys_path (or python.prefixes) and python.sys_prefixes of every process,
 * and from the files that `samples` has. False: no memory.
 */
bool snd_pypaths_read(struct snd_pypaths *paths, const struct sonde_trace *trace,
                      const struct sonde_samples *samples);
void snd_pypaths_release(struct snd_pypaths *paths);
bool snd_pypaths_is_library(const struct snd_pypaths *paths, struct sonde_text file);
/* Appends `file`: from the root, or of a library from the folder of sys.path that it lies in. */
void snd_pypaths_shorten(const struct snd_pypaths *paths, struct sonde_text file,
                         struct sonde_buffer *out);

/* What a frame is called: no "f.<locals>." before it. */
struct sonde_text snd_sample_function(const struct sonde_sample_node *node);

struct snd_sample_style {
    const struct snd_pypaths *paths;
    int                       decimals;
    bool                      colour, show_all, ascii;
    uint32_t                  width; /* of a line; 0: no limit */
};
/* Writes the tree below node `root` of a thread. False: memory is out. */
bool snd_sample_tree_put(const struct sonde_samples *samples, uint32_t root,
                         const struct snd_sample_style *style, struct snd_out *out);

#endif
