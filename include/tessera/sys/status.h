/**
 * @file
 * How a back end words its errors, so that tsr_status_message() tells users about them.
 */
#ifndef TESSERA_SYS_STATUS_H
#define TESSERA_SYS_STATUS_H

#include <tessera/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Makes the formatted sentence this thread's last error, cut at 1,023 bytes, and returns `status`.
 * The first function that knows an error words it; its callers pass it on with TSR_TRY. */
TSR_API tsr_status tsr_status_set(tsr_status status, const char *format, ...) TSR_PRINTF(2, 3);

/** This thread's last sentence, kept while other calls may fail and word theirs. */
typedef struct tsr_kept_sentence {
    char text[1024];
    tsr_status status; /**< which the sentence was worded for; TSR_OK: none was worded yet */
} tsr_kept_sentence;

/** For the work between a failure and its report: what gives back or tells peers may fail too, and
 * must not talk over the cause. */
TSR_API void tsr_status_keep(tsr_kept_sentence *kept);

/** Makes what was kept this thread's last sentence again, and returns `status`, whose sentence it
 * is from then on; with TSR_OK it stays that of the status it was kept with. */
TSR_API tsr_status tsr_status_restore(const tsr_kept_sentence *kept, tsr_status status);

/** Before code runs that is not the library's, such as a rank's main: this thread has no sentence
 * from then on, as if none had failed. */
TSR_API void tsr_status_forget(void);

/** When such code has returned `status`, not TSR_OK: keeps this thread's last sentence if it was
 * worded for `status`, else "returned io without a sentence". Writes the text up to its end and the
 * status, and nothing behind the text. */
TSR_API void tsr_status_keep_returned(tsr_kept_sentence *kept, tsr_status status);

/** Returns from the enclosing function with the status of `call` unless that is TSR_OK. */
#define TSR_TRY(call)                                                                              \
    do {                                                                                           \
        const tsr_status tsr_try_ = (call);                                                        \
        if (tsr_try_ != TSR_OK)                                                                    \
            return tsr_try_;                                                                       \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
