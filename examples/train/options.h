/** The command line. */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include <tessera/optimizer.h>

#include <stdbool.h>
#include <stdint.h>

/** The options. Text is borrowed from the command line; NULL where an option was not given. */
typedef struct train_options {
    const char *model; /**< a folder with config.json and weights, or a config.json */
    const char *data, *validation;
    const char *mesh; /**< "dp=1" unless given */
    const char *engine;
    const char *save, *resume;
    const char *plot;                /**< the SVG to write */
    const char *prompt, *prompt_ids; /**< of samples */
    int64_t sample;                  /**< after how many steps there is one; 0: never */
    int64_t tokens;                  /**< of a sample; -1: not given */
    double temperature;              /**< of samples; 0: greedy */
    tsr_dtype dtype;
    tsr_optimizer_options optimizer; /**< until options are complete, NAN for numbers that are not given */
    double rate, clip;               /**< clip INFINITY: not */
    double dropout;                  /**< 0: none */
    double final_rate;               /**< which the schedule ends with */
    tsr_schedule_kind schedule;
    int64_t warm_up, steps, batch, length;
    int64_t micro_batches; /**< of a step */
    double loss_scale;     /**< the first one; 0: none; NAN: not given */
    int64_t every;         /**< 0: not given */
    uint64_t seed;
    bool random;        /**< the order of windows */
    bool by_elements;   /**< matrices are cut */
    bool shards_states; /**< of the optimizer, along dp */
    bool background;    /**< how states are saved */
    bool json;
    bool memory;        /**< tell what a rank takes, and end */
    unsigned given;     /**< which settings (settings.h), by bits */
    bool help, version; /**< if set, nothing else was checked */
} train_options;

/** Parses the command line. With --resume the options are not complete: train_settings_resume()
 * and train_options_complete() follow. TSR_ERROR_ARGUMENT: an option is unknown, lacks its value or
 * has one that does not parse, or options contradict each other. */
tsr_status train_options_parse(int argc, char **argv, train_options *out);

/** Sets what nothing has given to the optimizer's defaults. TSR_ERROR_ARGUMENT: options contradict
 * each other. */
tsr_status train_options_complete(train_options *options);

/** The first loss scale: as given, else that of the dtype. */
double train_options_loss_scale(const train_options *options);

/** The text of --help. */
extern const char *const train_usage;

#endif
