/* Where a script was when it was stopped. The engine stops at a jump back to the start of a loop, and
   what it knows of that place is what stands before the loop, often the head of the function. */

enum { LOOP_BYTES_MAX = 65536 };

/* Where the jump at `at` goes to, or -1. */
static int64_t jump_target(const uint8_t *code, uint32_t at)
{
    switch (code[at]) {
    case OP_goto:
    case OP_if_true:
    case OP_if_false:
        return (int64_t)at + 1 + (int32_t)get_u32(code + at + 1);
    case OP_goto16:
        return (int64_t)at + 1 + (int16_t)get_u16(code + at + 1);
    case OP_goto8:
    case OP_if_true8:
    case OP_if_false8:
        return (int64_t)at + 1 + (int8_t)code[at + 1];
    }
    return -1;
}

/* The end of the loop that begins at `start`: behind the last jump to it; 0 when there is none. */
static uint32_t loop_end(const JSFunctionBytecode *b, uint32_t start)
{
    const uint8_t *code = b->byte_code_buf;
    uint32_t end = 0;
    for (uint32_t at = start; at < b->byte_code_len && at - start < LOOP_BYTES_MAX;) {
        uint32_t size = short_opcode_info(code[at]).size;
        if (jump_target(code, at) == start)
            end = at + size;
        at += size;
    }
    return end;
}

/* The line of the instruction before `pc` + 1. Of the place where the script was stopped in a loop:
   the first line within the loop, if any of its instructions has one. */
static int place_of(JSContext *ctx, JSFunctionBytecode *b, uint32_t pc, int *column)
{
    int line = find_line_num(ctx, b, pc, column);
    if (!guest.interrupted)
        return line;
    for (uint32_t at = pc + 1, end = loop_end(b, pc + 1); at < end; at++) {
        int inner_column, inner = find_line_num(ctx, b, at, &inner_column);
        if (inner != line || inner_column != *column) {
            *column = inner_column;
            return inner;
        }
    }
    return line;
}
