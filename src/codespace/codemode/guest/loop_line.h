/* What the engine's source is patched to ask for (build_guest.py), before there is an engine. */

#include <stdint.h>

struct JSContext;
struct JSFunctionBytecode;

static int place_of(struct JSContext *ctx, struct JSFunctionBytecode *b, uint32_t pc, int *column);
