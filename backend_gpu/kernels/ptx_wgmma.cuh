// wgmma: 64 x N x 16 products of a warpgroup, A and B in shared memory with the 128-byte swizzle, fp32 accumulators.
// A is K-major (row-major), B is N-major (row-major k x n), hence the last two immediates 0 and 1.
#pragma once

DEV void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEV void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> DEV void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(LEFT) : "memory"); }

// Keeps the compiler from moving uses of the accumulators across the asynchronous products.
template <int COUNT> DEV void wgmma_hold(float (&d)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) asm volatile("" : "+f"(d[i]) :: "memory");
}

// The names of 32 operands, and the operands of 32 accumulators from d[i] on.
#define CUSIM_R0 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define CUSIM_R1 \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define CUSIM_R2 \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define CUSIM_R3 \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define CUSIM_F4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define CUSIM_F16(i) CUSIM_F4(i), CUSIM_F4(i + 4), CUSIM_F4(i + 8), CUSIM_F4(i + 12)
#define CUSIM_F32(i) CUSIM_F16(i), CUSIM_F16(i + 16)
// A, B, P: operand numbers after the accumulators. P: 0 overwrites the accumulators, 1 adds to them.
#define CUSIM_WGMMA_ASM(N, TYPE, REGISTERS, A, B, P, ...) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #P ", 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" REGISTERS "}, %" #A ", %" #B ", p, 1, 1, 0, 1;\n}" \
                 : __VA_ARGS__ : "l"(a), "l"(b), "r"(add))

template <int N, bool BF16> struct Wgmma;
template <> struct Wgmma<64, false> {
    CUSIM_MEMBER void run(float (&d)[32], u64 a, u64 b, u32 add) {
        CUSIM_WGMMA_ASM(64, "f16", CUSIM_R0, 32, 33, 34, CUSIM_F32(0));
    }
};
template <> struct Wgmma<64, true> {
    CUSIM_MEMBER void run(float (&d)[32], u64 a, u64 b, u32 add) {
        CUSIM_WGMMA_ASM(64, "bf16", CUSIM_R0, 32, 33, 34, CUSIM_F32(0));
    }
};
template <> struct Wgmma<128, false> {
    CUSIM_MEMBER void run(float (&d)[64], u64 a, u64 b, u32 add) {
        CUSIM_WGMMA_ASM(128, "f16", CUSIM_R0 ", " CUSIM_R1, 64, 65, 66, CUSIM_F32(0), CUSIM_F32(32));
    }
};
template <> struct Wgmma<128, true> {
    CUSIM_MEMBER void run(float (&d)[64], u64 a, u64 b, u32 add) {
        CUSIM_WGMMA_ASM(128, "bf16", CUSIM_R0 ", " CUSIM_R1, 64, 65, 66, CUSIM_F32(0), CUSIM_F32(32));
    }
};
template <> struct Wgmma<192, false> {
    CUSIM_MEMBER void run(float (&d)[96], u64 a, u64 b, u32 add) {
        CUSIM_WGMMA_ASM(192, "f16", CUSIM_R0 ", " CUSIM_R1 ", " CUSIM_R2, 96, 97, 98, CUSIM_F32(0), CUSIM_F32(32), CUSIM_F32(64));
    }
};
template <> struct Wgmma<192, true> {
    CUSIM_MEMBER void run(float (&d)[96], u64 a, u64 b, u32 add) {
        CUSIM_WGMMA_ASM(192, "bf16", CUSIM_R0 ", " CUSIM_R1 ", " CUSIM_R2, 96, 97, 98, CUSIM_F32(0), CUSIM_F32(32), CUSIM_F32(64));
    }
};
template <> struct Wgmma<256, false> {
    CUSIM_MEMBER void run(float (&d)[128], u64 a, u64 b, u32 add) {
        CUSIM_WGMMA_ASM(256, "f16", CUSIM_R0 ", " CUSIM_R1 ", " CUSIM_R2 ", " CUSIM_R3, 128, 129, 130, CUSIM_F32(0), CUSIM_F32(32), CUSIM_F32(64), CUSIM_F32(96));
    }
};
template <> struct Wgmma<256, true> {
    CUSIM_MEMBER void run(float (&d)[128], u64 a, u64 b, u32 add) {
        CUSIM_WGMMA_ASM(256, "bf16", CUSIM_R0 ", " CUSIM_R1 ", " CUSIM_R2 ", " CUSIM_R3, 128, 129, 130, CUSIM_F32(0), CUSIM_F32(32), CUSIM_F32(64), CUSIM_F32(96));
    }
};
