/* SPDX-License-Identifier: Apache-2.0 */

/* Finds the module that has libmongoc, and opens a store with it. */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "store/internal.h"

#define MODULE "libpegboard-mongo.so.0"

static const char *last_error(void)
{
    const char *why = dlerror(); /* NOLINT(concurrency-mt-unsafe): glibc has one for each thread */

    return why ? why : "";
}

/* The module is there, what it needs is not. */
static bool lacks_libmongoc(const char *why)
{
    return strstr(why, "libmongoc") || strstr(why, "libbson");
}

static peg_status fail_unloadable(const char *why, peg_error *reterr)
{
    if (lacks_libmongoc(why))
        return peg__fail(reterr, PEG_EUNSUPPORTED, "E_STORE_MODULE",
                         "a store in MongoDB needs libmongoc, which cannot be loaded: install the "
                         "package libmongoc-1.0-0; %.120s",
                         why);
    return peg__fail(reterr, PEG_EUNSUPPORTED, "E_STORE_MODULE",
                     "a store in MongoDB needs the module " MODULE
                     ", which is not installed: install the package libmongoc-dev and build "
                     "pegboard again, or use another store");
}

/* It stays: libmongoc cannot be unloaded. */
static peg_status load_module(void **ret_module, peg_error *reterr)
{
    enum { FLAGS = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };
    char why[160];

    *ret_module = dlopen(MODULE, FLAGS);
    if (*ret_module)
        return PEG_OK;
    snprintf(why, sizeof(why), "%s", last_error());
    /* Where it was installed, if the system does not look there. */
    if (!lacks_libmongoc(why)) {
        *ret_module = dlopen(PEG_MODULE_DIR "/" MODULE, FLAGS);
        if (*ret_module)
            return PEG_OK;
        snprintf(why, sizeof(why), "%s", last_error());
    }
    return fail_unloadable(why, reterr);
}

static peg_status find_driver(const struct store_mongo_driver **ret_driver, peg_error *reterr)
{
    void *module = NULL;
    peg_status status = load_module(&module, reterr);

    if (status)
        return status;
    *ret_driver = dlsym(module, STORE_MONGO_DRIVER_SYMBOL);
    dlclose(module);
    if (!*ret_driver || strcmp((*ret_driver)->version, PEG_VERSION) != 0)
        return peg__fail(reterr, PEG_EUNSUPPORTED, "E_STORE_MODULE",
                         "the module " MODULE " is of pegboard %.20s, and this is " PEG_VERSION
                         ": install both from one build",
                         *ret_driver ? (*ret_driver)->version : "unknown");
    return PEG_OK;
}

peg_status peg_mongo_store_new(const peg_mongo_store_options *options, peg_store *ret_store,
                               peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_MONGO_STORE_OPTIONS_INIT, reterr);
    const struct store_mongo_driver *driver = NULL;
    peg_status status;

    if (!options || !options->url || !*options->url)
        return peg__fail(reterr, PEG_EINVAL, "E_STORE", "a store in MongoDB needs its URL");
    status = find_driver(&driver, reterr);
    if (status)
        return status;
    return store_mongo_new(driver, &store_mongo_system_time, options, ret_store, reterr);
}
