"""The intermediate representation: one family of frozen, typed nodes in three stages.

A `Program` says what a quantization operator computes (CHECKED), how in machine operations (REALISED), and how on a GPU, word by word
(LEGAL):

    CHECKED    Write y = saturate<uint8>(add(round_even(div<float32>(x, y_scale)), convert(y_zero_point)))
    REALISED   Write y = clamp_int_uint8(rint_f32(div_f32(x, y_scale)) + zero_extend_uint8(y_zero_point))
    LEGAL      Store y[w], quantize_linear(x[i], scale, zero_point) << 8u * (i % 4u), inside loops over words and elements

Values at CHECKED have a dtype, or an exact integer type with its interval, and every operation is rounded once. From REALISED on a value of
a dtype is the u32 that holds its bits, and everything is a machine type: bool, u32, i32, f32 or a struct. LEGAL has no reads and writes of
elements any more but loads and stores of words. `verify` knows which node may stand in which stage.
"""
