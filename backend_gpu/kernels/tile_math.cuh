// What happens to numbers before and after the product: SwiGLU on operand A, GeLU on the result, conversion, stores.
#pragma once
#include "ptx.cuh"

enum { CUSIM_NONE = 0, CUSIM_GELU = 1, CUSIM_SWIGLU = 1 };

// GeLU in its tanh form, as GPT-2 and GPT-3 use it.
DEV float gelu(float x) { return 0.5f * x * (1.0f + tanh_fast(0.7978845608f * (x + 0.044715f * x * x * x))); }
// silu(gate) * up; the sigmoid by tanh, which is one instruction.
DEV float swiglu(float gate, float up) { return 0.5f * gate * (1.0f + tanh_fast(0.5f * gate)) * up; }

template <bool BF16> DEV u32 pack(float lo, float hi) { return BF16 ? pack_bf16(lo, hi) : pack_fp16(lo, hi); }
template <bool BF16> DEV float unpack(u32 bits) { return BF16 ? from_bf16(bits & 0xffffu) : from_fp16(bits & 0xffffu); }

// Eight numbers of each half to eight of the product.
template <bool BF16> DEV void swiglu_8(u32 (&gate)[4], const u32 (&up)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float lo = swiglu(unpack<BF16>(gate[i]), unpack<BF16>(up[i]));
        const float hi = swiglu(unpack<BF16>(gate[i] >> 16), unpack<BF16>(up[i] >> 16));
        gate[i] = pack<BF16>(lo, hi);
    }
}

// Tensor cores leave a lane two neighbouring columns of each of four 8-column groups; memory wants eight columns of
// one group. Four lanes of a row trade: lane q ends with group q, in two rounds of exchanging halves.
DEV void quad_trade(u32 (&v)[4], int q) {
    const bool odd = q & 1, high = q & 2;
    u32 got;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        got = warp_xor(odd ? v[i] : v[i + 1], 1);
        (odd ? v[i] : v[i + 1]) = got;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        got = warp_xor(high ? v[i] : v[i + 2], 2);
        (high ? v[i] : v[i + 2]) = got;
    }
}

// Stores 16 rows x 8 * GROUPS columns held by a warp as mma leaves them: value(group, e) with e = 0, 1 for row
// lane / 4 and e = 2, 3 for the row 8 below. Rows and columns outside the matrix are left alone.
template <int GROUPS, bool BF16, int EPILOGUE, class Value>
DEV void store_strip(const CusimParams& p, int row, int column, int lane, const Value& value) {
    const int q = lane & 3;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int at = row + (lane >> 2) + half * 8;
        u16* line = (u16*)p.c + (long long)at * p.ldc;
#pragma unroll
        for (int group = 0; group < GROUPS; group += 4) {
            u32 v[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float lo = value(group + i, half * 2), hi = value(group + i, half * 2 + 1);
                if constexpr (EPILOGUE == CUSIM_GELU) {
                    lo = gelu(lo);
                    hi = gelu(hi);
                }
                v[i] = pack<BF16>(lo, hi);
            }
            quad_trade(v, q);
            const int first = column + (group + q) * 8;
            if (at < p.m && first + 8 <= p.n) {
                store_16(line + first, v);
            } else if (at < p.m) {
                for (int j = 0; j < 8; j++)
                    if (first + j < p.n) store_2(line + first + j, v[j >> 1] >> (16 * (j & 1)));
            }
        }
    }
}
