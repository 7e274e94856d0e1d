/* The guest: QuickJS-NG and a bridge in one translation unit, in a module that imports nothing.

   The engine's source is included, not linked, because the bridge uses what it keeps to itself:
   a bare pending promise and its settling (fulfill_or_reject_promise), shapes and property tables
   (the JSON reader and writer, and inspect), stack frames (the line of a call), and the list of
   collectable objects (which async functions wait). The source is pinned by its hash; whoever
   moves the pin reads these places again.

   What a script can reach takes no part in the bridge: no JavaScript of ours runs when a call
   leaves or a result arrives, so nothing that a script overwrites can change what the host sees. */

#include "loop_line.h"
#include "quickjs.c"

#include "platform.c"
#include "state.c"
#include "loop_line.c"
#include "heap.c"
#include "buffer.c"
#include "inspect.c"
#include "json_write.c"
#include "json_read.c"
#include "report.c"
#include "bridge.c"
#include "script_json.c"
#include "boot.c"
#include "step.c"
