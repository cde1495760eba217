/**
 * @file
 * How a back end words its errors, so that tsr_status_message() gives users the sentences.
 */
#ifndef TESSERA_SYS_STATUS_H
#define TESSERA_SYS_STATUS_H

#include <tessera/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Makes the formatted sentence this thread's last error, cut at 1,023 bytes, and returns `status`.
 * The first function that knows of an error words it; its callers pass it on with TSR_TRY. */
TSR_API tsr_status tsr_status_set(tsr_status status, const char *format, ...) TSR_PRINTF(2, 3);

/** A copy of this thread's last sentence, kept while other calls may fail and set theirs. */
typedef struct tsr_kept_sentence {
    char text[1024];
    tsr_status status; /**< the status that the sentence was worded for; TSR_OK: there was no
                            sentence */
} tsr_kept_sentence;

/** Keeps this thread's sentence during the work between a failure and its report: freeing memory or
 * telling peers may fail too, and must not replace the cause. */
TSR_API void tsr_status_keep(tsr_kept_sentence *kept);

/** Makes the kept sentence this thread's last one again, now worded for `status`, and returns
 * `status`. With TSR_OK the sentence stays that of the status that it was kept with. */
TSR_API tsr_status tsr_status_restore(const tsr_kept_sentence *kept, tsr_status status);

/** Makes this thread have no sentence, as if no call had failed. Call it before code runs that is
 * not the library's, such as a rank's main. */
TSR_API void tsr_status_forget(void);

/** For use after code that is not the library's has returned `status`, not TSR_OK. Keeps this
 * thread's last sentence if it was worded for `status`, else "returned io without a sentence" (with
 * the status' name). Writes only the text up to its NUL and the status, nothing behind the text. */
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
