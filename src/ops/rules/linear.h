/** The rules of linear layers, which rows and layers share. */
#ifndef TSR_OPS_RULES_LINEAR_H
#define TSR_OPS_RULES_LINEAR_H

#define TSR_RULE_LINEAR   "... k, o k + o -> ... o | k sum | linear {0}{1}"
#define TSR_RULE_LINEAR_X "... o, o k -> ... k | o sum | linear {0}{1}"
#define TSR_RULE_LINEAR_W "... o, ... k -> o k | ... sum | linear {0}{1}"
#define TSR_RULE_LINEAR_B "... o -> o | ... sum | linear {0}"

#endif
