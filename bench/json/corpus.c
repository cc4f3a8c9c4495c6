/* SPDX-License-Identifier: Apache-2.0 */

/* Texts from files: all of a folder, in the order of their names. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench.h"

static int is_text(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return dot && strcmp(dot, ".json") == 0;
}

static bool load_file(const char *folder, const char *name, struct bench_doc *doc)
{
    char path[4096];
    struct stat about;
    FILE *file;
    size_t n_read;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
        return false;
    file = fopen(path, "rbe");
    if (!file)
        return false;
    if (fstat(fileno(file), &about) == 0)
        doc->text = calloc(1, (size_t)about.st_size + BENCH_PADDING);
    n_read = doc->text ? fread(doc->text, 1, (size_t)about.st_size, file) : 0;
    doc->len = n_read;
    fclose(file);
    return n_read > 0;
}

bool bench_docs_load(struct bench_docs *docs, const char *folder)
{
    const char *slash = strrchr(folder, '/');
    struct dirent **entries = NULL;
    const int n = scandir(folder, &entries, is_text, alphasort);
    bool fine = n > 0;

    *docs = (struct bench_docs){.label = slash ? slash + 1 : folder};
    docs->docs = fine ? calloc((size_t)n, sizeof(*docs->docs)) : NULL;
    for (int i = 0; i < n; i++) {
        fine = fine && docs->docs && load_file(folder, entries[i]->d_name, &docs->docs[docs->n]);
        if (fine)
            docs->bytes += docs->docs[docs->n++].len;
        free(entries[i]);
    }
    free(entries);
    return fine;
}
